#include "generate/pass_rows.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

constexpr int64_t kRowBucket = 32;  // tokens that lengths are rounded up to
// Logits that one pass hands out at most.
constexpr int64_t kMostLogits = int64_t{1} << 26;

}  // namespace

int64_t padded_length(const ModelFacts& facts, int64_t tokens) {
  if (facts.prompts == ModelFacts::Prompts::kExact) return tokens;
  const int64_t rounded = (tokens + kRowBucket - 1) / kRowBucket * kRowBucket;
  return std::max(tokens, std::min(rounded, facts.max_target));
}

Status check_logits(const ModelFacts& facts, int64_t tokens, const char* what) {
  const int64_t most = kMostLogits / facts.target_vocab;
  if (tokens <= most) return {};
  return invalid_argument(
      message({"[", what, "] ", tokens, " tokens would be read at once with ", facts.target_vocab,
               " logits each, but at most ", most, " can be; use shorter texts"}));
}

TensorMap pass_inputs(const ModelFacts& facts, TensorMap source,
                      const std::vector<std::vector<int64_t>>& rows, int64_t length) {
  std::vector<int64_t> ids, mask;
  for (const std::vector<int64_t>& row : rows) {
    const size_t padding = static_cast<size_t>(length) - row.size();
    ids.insert(ids.end(), row.begin(), row.end());
    ids.insert(ids.end(), padding, row.front());
    mask.insert(mask.end(), row.size(), 1);
    mask.insert(mask.end(), padding, 0);
  }
  const Shape shape = {static_cast<int64_t>(rows.size()), length};
  const std::string prefix = facts.kind == ModelKind::kDecoder ? "" : "decoder_";
  source[prefix + "input_ids"] = Tensor::from_ints(shape, ids);
  source[prefix + "attention_mask"] = Tensor::from_ints(shape, mask);
  return source;
}

TensorMap input_row(const TensorMap& inputs, int64_t index) {
  TensorMap made;
  for (const auto& [name, tensor] : inputs) {
    Tensor row{tensor.dtype, tensor.shape, {}};
    const auto bytes =
        static_cast<int64_t>(tensor.bytes.size()) / std::max<int64_t>(row.shape[0], 1);
    row.shape[0] = 1;
    const auto begin = tensor.bytes.begin() + index * bytes;
    row.bytes.assign(begin, begin + bytes);
    made.emplace(name, std::move(row));
  }
  return made;
}

}  // namespace vkformer
