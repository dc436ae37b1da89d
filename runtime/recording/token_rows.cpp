#include "recording/token_rows.h"

#include <algorithm>

#include "base/message.h"
#include "model/mask_input.h"
#include "ops/score_terms.h"

namespace vkformer {
namespace {

Status check_ids(const std::string& name, const Shape& shape, const std::vector<int64_t>& ids,
                 int64_t vocab) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab) continue;
    const auto column = static_cast<int64_t>(i) % shape[1];
    const auto row = static_cast<int64_t>(i) / shape[1];
    return invalid_argument(
        message({"[", name, "] holds the id ", ids[i], " in row ", row, ", column ", column,
                 ", but the vocabulary has ids 0 to ", vocab - 1}));
  }
  return {};
}

}  // namespace

std::vector<uint32_t> TokenRows::mask_words() const {
  return pack_key_mask(allowed, batch, tokens);
}

TokenRows TokenRows::padded(int64_t to_tokens, int64_t pad) const {
  TokenRows wide{.batch = batch, .tokens = to_tokens, .masked = masked || to_tokens != tokens};
  wide.ids.assign(static_cast<size_t>(batch * to_tokens), static_cast<uint32_t>(pad));
  wide.allowed.assign(static_cast<size_t>(batch * to_tokens), 0);
  for (int64_t b = 0; b < batch; ++b) {
    std::copy_n(ids.begin() + b * tokens, tokens, wide.ids.begin() + b * to_tokens);
    std::copy_n(allowed.begin() + b * tokens, tokens, wide.allowed.begin() + b * to_tokens);
  }
  return wide;
}

Result<TokenRows> token_rows(const TensorMap& inputs, const std::string& name,
                             const std::string& mask_name, TokenLimits limits) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) return not_found(message({"[", name, "] is missing from the inputs"}));
  const Tensor& tensor = found->second;
  if (tensor.shape.size() != 2 || tensor.shape[0] < 1 || tensor.shape[1] < 1) {
    return invalid_argument(message({"[", name, "] has shape ", shape_text(tensor.shape),
                                     ", but must be (B, T) with at least one row and one token"}));
  }
  if (tensor.shape[1] > limits.most) {
    return invalid_argument(message({"[", name, "] has ", tensor.shape[1],
                                     " tokens a row, but this model takes at most ", limits.most,
                                     "; shorten or split the input"}));
  }
  VKF_ASSIGN(std::vector<int64_t> ids, tensor.to_ints());
  VKF_CHECK(check_ids(name, tensor.shape, ids, limits.vocab));
  TokenRows rows{.batch = tensor.shape[0], .tokens = tensor.shape[1]};
  rows.ids.assign(ids.begin(), ids.end());
  rows.allowed.assign(ids.size(), 1);
  const auto mask = inputs.find(mask_name);
  if (mask == inputs.end()) return rows;
  if (mask->second.shape != tensor.shape) {
    return invalid_argument(message({"[", mask_name, "] has shape ", shape_text(mask->second.shape),
                                     ", but ", name, " has ", shape_text(tensor.shape)}));
  }
  VKF_ASSIGN(rows.allowed, mask_flags(mask_name, mask->second));
  rows.masked = true;
  return rows;
}

Result<TensorMap> pad_rows(const std::vector<std::vector<int64_t>>& rows) {
  size_t longest = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) {
      return invalid_argument(
          message({"[inputs] row ", i, " is empty; every input needs at least one token"}));
    }
    longest = std::max(longest, rows[i].size());
  }
  if (rows.empty()) return invalid_argument("[inputs] there are no rows");
  std::vector<int64_t> ids(rows.size() * longest, 0);
  std::vector<int64_t> mask(rows.size() * longest, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), ids.begin() + static_cast<int64_t>(i * longest));
    std::fill_n(mask.begin() + static_cast<int64_t>(i * longest), rows[i].size(), 1);
  }
  const Shape shape = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)};
  TensorMap inputs;
  inputs.emplace("input_ids", Tensor::from_ints(shape, ids));
  inputs.emplace("attention_mask", Tensor::from_ints(shape, mask));
  return inputs;
}

}  // namespace vkformer
