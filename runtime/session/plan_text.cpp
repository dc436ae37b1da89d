#include "session/plan_text.h"

namespace vkformer {
namespace {

Status check_sizes(const ModelFacts& facts, const PlanOptions& o) {
  const bool fits = o.batch >= 1 && o.beams >= 1 && o.source >= 1 && o.source <= facts.max_source &&
                    o.target >= 0 && o.target <= facts.max_target;
  if (fits) return {};
  return invalid_argument(
      "[plan] batch " + std::to_string(o.batch) + ", beams " + std::to_string(o.beams) +
      ", source " + std::to_string(o.source) + ", target " + std::to_string(o.target) +
      " do not fit the model, which takes up to " + std::to_string(facts.max_source) +
      " source and " + std::to_string(facts.max_target) + " target tokens");
}

}  // namespace

Result<std::string> plan_text(const LoadedModel& model, const PlanOptions& o) {
  const ModelFamily& family = model.family();
  VKF_CHECK(check_sizes(family.facts(), o));
  Graph graph;
  ModelBuilder builder(graph, model.weights());
  const StepShape step{o.batch, o.beams, o.source, std::max<int64_t>(o.target, 1)};
  if (o.pass == "forward") {
    VKF_CHECK(family.build_forward(builder, {o.batch, o.source, o.target}, {}));
  } else if (o.pass == "encode") {
    VKF_CHECK(family.build_encode(builder, step));
  } else if (o.pass == "step") {
    VKF_CHECK(family.build_step(builder, step));
  } else {
    return invalid_argument("[pass] '" + o.pass + "' is unknown; use forward, encode or step");
  }
  VKF_ASSIGN(Plan plan, make_plan(graph, model.device()->caps(), model.precision()));
  return graph.dump() + "\n" + plan.dump();
}

}  // namespace vkformer
