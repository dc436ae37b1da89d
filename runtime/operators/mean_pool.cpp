#include "ops/mean_pool.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "operators/operator_scores.h"

namespace vkformer {

// mean_pool (Row-wise operators)
// attributes: `normalize` (false), `kind` ("mean"; "max", "last", "weighted_mean",
//             "mean_sqrt_length")
// inputs:     X (B, T, D); optional mask (B, T)
// outputs:    Y (B, D)
// computes:   mean over the kept tokens, their maximum, the last one, the mean with token t
//             weighing t + 1, or the sum divided by the root of their number; zeros without any;
//             then divided by max(length, 1e-12) if `normalize`
Result<PreparedOperator> prepare_mean_pool(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "mask"}, {"normalize", "kind"}));
  VKF_ASSIGN(const bool normalize, arguments.attributes().get_bool_or("normalize", false));
  VKF_ASSIGN(const std::string kind, arguments.attributes().get_string_or("kind", "mean"));
  VKF_ASSIGN(const PoolKind pool, pool_kind_from_name(kind));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  if (x.shape.size() != 3) {
    return arguments.error("X has shape " + shape_text(x.shape) +
                           ", but must have three dimensions (B, T, D).");
  }
  const int64_t batch = x.shape[0];
  const int64_t tokens = x.shape[1];
  PreparedOperator op;
  TensorId mask_id = kNoTensor;
  if (arguments.find("mask") != nullptr) {
    VKF_ASSIGN(const std::vector<uint32_t> words, packed_mask(arguments, "mask", {batch, tokens}));
    mask_id = op.bind("mask", words_tensor(words, {batch, (tokens + 31) / 32}));
  }
  const MeanPoolAttrs attrs{
      pool, normalize ? MeanPoolAttrs::Normalize::kOn : MeanPoolAttrs::Normalize::kOff};
  VKF_ASSIGN(const TensorId y, add_mean_pool(op.graph, op.bind("X", std::move(x)), mask_id, attrs));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
