#include "ops/deformable_attention.h"

#include "base/message.h"
#include "base/narrow.h"
#include "ops/row_op.h"
#include "params/deformable_attention.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostLevelSide = 1 << 15;  // tokens

std::string levels_text(const DeformableAttentionAttrs& a) {
  std::string text = "H=" + std::to_string(a.heads) + " P=" + std::to_string(a.points) + " levels";
  for (const DeformableLevel& level : a.levels) {
    text += " " + std::to_string(level.height) + "x" + std::to_string(level.width);
  }
  return text;
}

int64_t samples_of(const DeformableAttentionAttrs& a) {
  return int64_t{a.heads} * a.points * static_cast<int64_t>(a.levels.size());
}

Status check_levels(const DeformableAttentionAttrs& a) {
  const int64_t samples = samples_of(a);
  bool fits = a.levels.size() <= VKF_MOST_DEFORMABLE_LEVELS && samples >= 1 &&
              a.points <= VKF_MOST_DEFORMABLE_SAMPLES && samples <= VKF_MOST_DEFORMABLE_SAMPLES;
  for (const DeformableLevel& level : a.levels) {
    fits = fits && level.height >= 1 && level.width >= 1 && level.height <= kMostLevelSide &&
           level.width <= kMostLevelSide;
  }
  if (fits) return {};
  return op_error(
      OpId::k_deformable_attention,
      message({"The places are ", levels_text(a), ", but there must be 1 to ",
               VKF_MOST_DEFORMABLE_LEVELS, " levels of 1 to ", kMostLevelSide,
               " tokens a side, and 1 to ", VKF_MOST_DEFORMABLE_SAMPLES, " samples of a query."}));
}

}  // namespace

Result<TensorDesc> check_deformable_attention(const TensorDesc& value, const TensorDesc& samples,
                                              const TensorDesc& boxes,
                                              const DeformableAttentionAttrs& a) {
  VKF_CHECK(check_floats(OpId::k_deformable_attention, "value", value, 3));
  VKF_CHECK(check_floats(OpId::k_deformable_attention, "samples", samples, 3));
  VKF_CHECK(check_floats(OpId::k_deformable_attention, "boxes", boxes, 3));
  VKF_CHECK(check_levels(a));
  int64_t tokens = 0;
  for (const DeformableLevel& level : a.levels) tokens += int64_t{level.height} * level.width;
  const Shape& v = value.shape;
  const int64_t queries = samples.shape[1];
  const bool fits = v.size() == 3 && v[1] == tokens && v[2] >= 1 && v[2] % a.heads == 0 &&
                    samples.shape == Shape{v[0], queries, 3 * samples_of(a)} &&
                    boxes.shape == Shape{v[0], queries, 4};
  if (!fits) {
    return op_error(
        OpId::k_deformable_attention,
        message({"value has shape ", shape_text(v), ", samples ", shape_text(samples.shape),
                 " and boxes ", shape_text(boxes.shape), ", but must be (B, ", tokens, ", ",
                 a.heads, " * E), (B, Q, ", 3 * samples_of(a), ") and (B, Q, 4)."}));
  }
  const auto most = int64_t{1} << 32;
  if (element_count(v) >= most || element_count(samples.shape) >= most ||
      v[0] * queries * v[2] >= most) {
    return op_error(
        OpId::k_deformable_attention,
        message({"value has shape ", shape_text(v), " and samples ", shape_text(samples.shape),
                 ", but at most 2^32 - 1 elements are "
                 "possible."}));
  }
  return TensorDesc{"deformable_attention", DType::kF32, {v[0], queries, v[2]}};
}

Result<TensorId> add_deformable_attention(Graph& graph, const DeformableAttentionInputs& in,
                                          const DeformableAttentionAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out,
             check_deformable_attention(graph.tensor(in.value), graph.tensor(in.samples),
                                        graph.tensor(in.boxes), attrs));
  Node node = make_node<OpId::k_deformable_attention>(attrs, levels_text(attrs));
  node.inputs = {in.value, in.samples, in.boxes};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_deformable_attention(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[deformable_attention] There is no kernel for a decoding step; use it in full passes");
  }
  const auto& a = attrs_of<DeformableAttentionAttrs>(node);
  const Shape& value = context.desc(node.inputs[0]).shape;
  const Shape& y = context.desc(node.outputs[0]).shape;
  DeformableAttentionParams params{};
  params.rows = u32(y[0] * y[1]);
  params.queries = u32(y[1]);
  params.tokens = u32(value[1]);
  params.width = u32(y[2]);
  params.heads = a.heads;
  params.levels = u32(static_cast<int64_t>(a.levels.size()));
  params.points = a.points;
  for (size_t i = 0; i < a.levels.size(); ++i) {
    params.sizes[i] = a.levels[i].height << 16 | a.levels[i].width;
  }
  const uint32_t samples = u32(samples_of(a));
  Dispatch d = make_row_dispatch(context, node, KernelId::deformable_attention_row__f32_none_f32,
                                 params.rows, params.width);
  d.set_constants(DeformableAttentionConstants{
      .local_size = row_local_size(context.caps, params.width), .samples = samples});
  d.set_push(params);
  const double read = static_cast<double>(params.rows) * params.width * samples / a.heads;
  d.flops = 12.0 * read + 8.0 * params.rows * samples * (samples / a.heads);
  d.bytes = 16.0 * read + 12.0 * params.rows * samples + 4.0 * params.rows * params.width;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
