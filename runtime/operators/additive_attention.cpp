#include "ops/additive_attention.h"

#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "operators/operator_scores.h"
#include "ops/concat_columns.h"
#include "ops/move_columns.h"

namespace vkformer {
namespace {

constexpr int64_t kMostReach = 1 << 24;

// Mask bits, then v.
Result<Tensor> alignment_words(const OperatorArguments& arguments, const Tensor& kv,
                               AdditiveAttentionAttrs& attrs) {
  std::vector<uint32_t> words;
  if (arguments.find("key_mask") != nullptr) {
    VKF_ASSIGN(words, packed_mask(arguments, "key_mask", {kv.shape[0], kv.shape[1]}));
    attrs.masked = true;
  }
  attrs.v_offset = static_cast<uint32_t>(words.size());
  VKF_ASSIGN(const Tensor v, arguments.floats("v"));
  if (v.shape != Shape{attrs.width}) {
    return arguments.error("v has shape " + shape_text(v.shape) + ", but Q asks for " +
                           shape_text({attrs.width}) + ".");
  }
  words.resize(words.size() + attrs.width);
  std::memcpy(words.data() + attrs.v_offset, v.bytes.data(), v.bytes.size());
  const auto count = static_cast<int64_t>(words.size());
  return words_tensor(words, {count});
}

}  // namespace

// additive_attention (Recurrent layers)
// attributes: `window` (none)
// inputs:     Q (B, T, A), K (B, S, A), V (B, S, C), v (A); optional key_mask (B, S)
// outputs:    output (B, T, C), weights (B, T, S)
// computes:   softmax over the allowed keys of v · tanh(Q + K), times V; with `window` only kept
//             keys whose index among them is within it of the query's
Result<PreparedOperator> prepare_additive_attention(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"Q", "K", "V", "v", "key_mask"}, {"window"}));
  VKF_ASSIGN(Tensor q, arguments.floats("Q"));
  VKF_ASSIGN(Tensor k, arguments.floats("K"));
  VKF_ASSIGN(Tensor v, arguments.floats("V"));
  if (q.shape.size() != 3 || k.shape.size() != 3 || v.shape.size() != 3 ||
      element_count(q.shape) == 0 || element_count(k.shape) == 0 || element_count(v.shape) == 0 ||
      k.shape[0] != q.shape[0] || k.shape[2] != q.shape[2] || v.shape[0] != k.shape[0] ||
      v.shape[1] != k.shape[1]) {
    return arguments.error("Q, K and V have shapes " + shape_text(q.shape) + ", " +
                           shape_text(k.shape) + " and " + shape_text(v.shape) +
                           ", but must be (B, T, A), (B, S, A) and (B, S, C).");
  }
  AdditiveAttentionAttrs attrs{.width = static_cast<uint32_t>(q.shape[2]),
                               .value_width = static_cast<uint32_t>(v.shape[2]),
                               .queries = static_cast<uint32_t>(q.shape[1])};
  if (arguments.attributes().has("window")) {
    VKF_ASSIGN(const int64_t reach, arguments.integer_or("window", 1, 1, kMostReach));
    attrs.window = AdditiveAttentionAttrs::Window::kMonotonic;
    attrs.reach = static_cast<uint32_t>(reach);
  }
  const Shape map = {q.shape[0], q.shape[1], k.shape[1]};
  const Shape context = {q.shape[0], q.shape[1], v.shape[2]};
  PreparedOperator op;
  VKF_ASSIGN(Tensor words, alignment_words(arguments, k, attrs));
  const TensorId aux = op.bind("aux", std::move(words));
  const TensorId keys = op.bind("K", std::move(k));
  VKF_ASSIGN(const TensorId kv, add_concat_columns(op.graph, keys, op.bind("V", std::move(v))));
  VKF_ASSIGN(const TensorId y,
             add_additive_attention(op.graph, {op.bind("Q", std::move(q)), kv, aux}, attrs));
  const auto line = static_cast<uint32_t>(context[2] + map[2]);
  VKF_ASSIGN(const TensorId out, add_columns(op.graph, y, {0, line}, context));
  VKF_ASSIGN(const TensorId weights, add_columns(op.graph, y, {attrs.value_width, line}, map));
  op.name_output(out, "output");
  op.name_output(weights, "weights");
  return op;
}

}  // namespace vkformer
