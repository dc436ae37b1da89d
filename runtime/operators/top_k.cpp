#include "ops/top_k.h"

#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

// (..., K, 2) words -> values (..., K), indices (..., K).
Result<TensorMap> split_best(TensorMap outputs) {
  const Tensor& best = outputs["Y"];
  const std::vector<uint32_t> words = tensor_words(best);
  const Shape shape(best.shape.begin(), best.shape.end() - 1);
  TensorMap split;
  Tensor values = Tensor::zeros(DType::kF32, shape);
  std::vector<uint32_t> indices(words.size() / 2);
  for (size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(values.bytes.data() + 4 * i, &words[2 * i], 4);
    indices[i] = words[2 * i + 1];
  }
  split.emplace("values", std::move(values));
  split.emplace("indices", index_tensor(indices, shape));
  return split;
}

}  // namespace

// top_k (Tokens and positions)
// attributes: `k` (1), at most 64
// inputs:     X (..., V)
// outputs:    values (..., k), indices (..., k) I64
// computes:   the k largest, best first, equal ones by ascending index
Result<PreparedOperator> prepare_top_k(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {"k"}));
  VKF_ASSIGN(const int64_t k, arguments.integer_or("k", 1, 1, kMaxTopK));
  VKF_ASSIGN(PreparedOperator op, unary_operator(arguments, [=](Graph& graph, TensorId x) {
               return add_top_k(graph, x, {static_cast<uint32_t>(k)});
             }));
  op.finish = split_best;
  return op;
}

}  // namespace vkformer
