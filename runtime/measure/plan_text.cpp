#include "measure/plan_text.h"

#include "base/message.h"

namespace vkformer {
namespace {

Status check_sizes(const ModelFacts& facts, const PlanOptions& o) {
  const bool tokens = facts.source == SourceKind::kTokens;
  const bool decodes = facts.kind != ModelKind::kEncoder;
  const bool fits = o.batch >= 1 && o.beams >= 1 &&
                    (!tokens || (o.source >= 1 && o.source <= facts.max_source)) && o.target >= 0 &&
                    (!decodes || o.target <= facts.max_target);
  if (fits) return {};
  return invalid_argument(
      message({"[plan] batch ", o.batch, ", beams ", o.beams, ", source ", o.source, ", target ",
               o.target, " do not fit the model, which takes up to ", facts.max_source,
               " source and ", facts.max_target, " target tokens"}));
}

}  // namespace

Result<std::string> plan_text(const LoadedModel& model, const PlanOptions& o) {
  const ModelFamily& family = model.family();
  VKF_CHECK(check_sizes(family.facts(), o));
  Graph graph;
  ModelBuilder builder(graph, model.weights());
  const ModelFacts& facts = family.facts();
  const bool both = facts.kind == ModelKind::kEncoderDecoder;
  StepShape step{o.batch, o.beams, o.source, std::max<int64_t>(o.target, 1)};
  if (!both) step.prompt = std::min(o.source, step.capacity);
  ForwardShape shape{o.batch, o.source, both ? o.target : 0};
  shape.height = step.height = std::max<int64_t>(1, facts.grid.height);
  shape.width = step.width = std::max<int64_t>(1, facts.grid.width);
  switch (o.pass) {
    case PassKind::kForward:
      VKF_CHECK(family.build_forward(builder, shape, {}));
      break;
    case PassKind::kPrompt:
      VKF_CHECK(family.build_prompt(builder, step));
      break;
    case PassKind::kStep:
      VKF_CHECK(family.build_step(builder, step));
      break;
  }
  VKF_ASSIGN(Plan plan, make_plan(graph, model.device()->caps(), model.precision()));
  return graph.dump() + "\n" + plan.dump();
}

}  // namespace vkformer
