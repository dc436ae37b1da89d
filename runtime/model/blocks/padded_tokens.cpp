#include "model/blocks/padded_tokens.h"

#include "ops/gather_rows.h"
#include "ops/score_terms.h"

namespace vkformer {
namespace {

// Rows (B, from) as (B, to); `fill` gives what stands at the token of that index.
template <class Fill>
void pad_rows(std::vector<uint32_t>& words, int64_t from, int64_t to, Fill fill) {
  const auto batch = static_cast<int64_t>(words.size()) / from;
  std::vector<uint32_t> padded;
  padded.reserve(static_cast<size_t>(batch * to));
  for (int64_t b = 0; b < batch; ++b) {
    padded.insert(padded.end(), words.begin() + b * from, words.begin() + (b + 1) * from);
    for (int64_t t = from; t < to; ++t) padded.push_back(fill(t));
  }
  words = std::move(padded);
}

}  // namespace

bool is_kept(const std::vector<uint32_t>& mask, int64_t tokens, int64_t row, int64_t token) {
  const auto word = static_cast<size_t>(row * ((tokens + 31) / 32) + token / 32);
  return (mask[word] >> (token % 32) & 1u) != 0;
}

bool keeps_all(const ForwardInputs& inputs) {
  const std::vector<uint32_t>& mask = inputs.words.at("key_mask");
  const int64_t tokens = inputs.shape.source;
  for (int64_t b = 0; b < inputs.shape.batch; ++b) {
    for (int64_t t = 0; t < tokens; ++t) {
      if (!is_kept(mask, tokens, b, t)) return false;
    }
  }
  return true;
}

void pad_tokens(ForwardInputs& inputs, int64_t to, int64_t pad) {
  const int64_t from = inputs.shape.source;
  const int64_t batch = inputs.shape.batch;
  if (to == from) return;
  std::vector<uint32_t>& mask = inputs.words.at("key_mask");
  std::vector<uint8_t> kept(static_cast<size_t>(batch * to), 0);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < from; ++t) {
      kept[static_cast<size_t>(b * to + t)] = is_kept(mask, from, b, t) ? 1 : 0;
    }
  }
  mask = pack_key_mask(kept, batch, to);
  pad_rows(inputs.words.at("input_ids"), from, to,
           [&](int64_t) { return static_cast<uint32_t>(pad); });
  for (const char* name : {"token_type_ids", "position_ids"}) {
    const auto found = inputs.words.find(name);
    if (found == inputs.words.end()) continue;
    const bool counts = found->first == "position_ids";
    pad_rows(found->second, from, to,
             [&](int64_t t) { return counts ? static_cast<uint32_t>(t) : 0u; });
  }
}

Result<TensorId> add_crop(ModelBuilder& b, TensorId x, int64_t padded, int64_t tokens) {
  if (padded == tokens) return x;
  const int64_t rows = static_cast<int64_t>(element_count(b.graph().tensor(x).shape)) /
                       b.graph().tensor(x).shape.back() / padded;
  const std::string name = "crop." + std::to_string(padded) + "." + std::to_string(rows);
  std::vector<uint32_t> kept;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t t = 0; t < tokens; ++t) kept.push_back(static_cast<uint32_t>(r * padded + t));
  }
  const TensorId indices = b.host_tensor(name, DType::kU32, {rows, tokens}, std::move(kept));
  return add_gather_rows(b.graph(), {.x = x, .indices = indices});
}

}  // namespace vkformer
