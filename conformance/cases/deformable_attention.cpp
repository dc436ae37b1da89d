// The cases of deformable_attention: its checks, and what the benchmark times.
#include "ops/deformable_attention.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/deformable_attention.h"

namespace vkformer::conformance {
namespace {

using reference::DeformableOptions;

struct DeformableSize {
  const char* name;
  int64_t batch, queries, head_width;
  DeformableOptions options;
};

const DeformableSize kDeformables[] = {
    {"one", 1, 1, 1, {1, 1, {{1, 1}}}},
    {"line", 2, 3, 5, {2, 3, {{1, 9}}}},
    {"prime", 2, 31, 7, {3, 5, {{7, 11}, {3, 5}}}},
    {"eight-levels",
     1,
     5,
     3,
     {2, 1, {{9, 8}, {8, 7}, {7, 6}, {6, 5}, {5, 4}, {4, 3}, {3, 2}, {2, 1}}}},
    {"most-samples", 1, 2, 2, {16, 16, {{6, 5}, {3, 3}, {2, 2}, {1, 1}}}},
    {"rt-detr", 1, 33, 32, {8, 4, {{20, 20}, {10, 10}, {5, 5}}}}};

// Boxes within the picture, and offsets that leave it now and then.
Result<CheckCase> deformable_case(const DeformableSize& size, Content content) {
  const DeformableOptions& o = size.options;
  DeformableAttentionAttrs attrs{.heads = u32(o.heads), .points = u32(o.points)};
  int64_t tokens = 0;
  for (const auto& [height, width] : o.levels) {
    attrs.levels.push_back({u32(height), u32(width)});
    tokens += height * width;
  }
  const int64_t places = o.heads * o.points * static_cast<int64_t>(o.levels.size());
  const Array value = random_array({size.batch, tokens, o.heads * size.head_width}, 1, content);
  const Array samples = random_array({size.batch, size.queries, 3 * places}, 2);
  Array boxes = random_array({size.batch, size.queries, 4}, 3);
  for (int64_t i = 0; i < boxes.size(); ++i) boxes[i] = 0.5 + boxes[i] / 16.0;
  boxes = reference::round_to_f32(std::move(boxes));
  VKF_ASSIGN(Array y, reference::deformable_attention(value, samples, boxes, o));
  CheckCase made;
  const TensorId value_id = made.op.bind("value", floats(value));
  const TensorId samples_id = made.op.bind("samples", floats(samples));
  const TensorId boxes_id = made.op.bind("boxes", floats(boxes));
  VKF_ASSIGN(
      const TensorId to,
      add_deformable_attention(
          made.op.graph, {.value = value_id, .samples = samples_id, .boxes = boxes_id}, attrs));
  made.op.name_output(to, "y");
  // Places are f32 in tokens: their rounding is that of as many terms as a grid has tokens a side.
  made.expected.emplace("y", Expected{std::move(y), terms(32), magnitude_of(value)});
  return made;
}

Status deformable_graph(StepGraph& in) {
  const uint32_t side = u32(in.number("side"));
  DeformableAttentionAttrs attrs{.heads = 8, .points = 4};
  attrs.levels = {{side, side}, {side / 2, side / 2}, {side / 4, side / 4}};
  int64_t tokens = 0;
  for (const DeformableLevel& level : attrs.levels) tokens += int64_t{level.height} * level.width;
  const int64_t queries = in.number("queries");
  const TensorId value = in.floats("value", {1, tokens, in.number("width")});
  const TensorId samples = in.floats("samples", {1, queries, 3 * 8 * 4 * 3});
  const TensorId boxes = in.floats("boxes", {1, queries, 4});
  VKF_ASSIGN(const TensorId y,
             add_deformable_attention(in.graph(),
                                      {.value = value, .samples = samples, .boxes = boxes}, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void deformable_attention_cases(OperatorCases& cases) {
  for (const DeformableSize& size : kDeformables) {
    cases.check(std::string("normal/") + size.name, size.queries == 31,
                [=] { return deformable_case(size, Content::kNormal); });
  }
  for (const Content content : {Content::kWide, Content::kTiny}) {
    cases.check(content_name(content), true,
                [=] { return deformable_case(kDeformables[2], content); });
  }
  cases.time_graph("rt-detr-r50 640", "side=80 queries=300 width=256", deformable_graph);
  cases.limited_by("each sample reads four other tokens");
}

}  // namespace vkformer::conformance
