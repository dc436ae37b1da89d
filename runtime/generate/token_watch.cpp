#include "generate/token_watch.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {

TokenWatch::TokenWatch(const GenerateOptions& options, const SearchParams& params,
                       const std::vector<size_t>& items, uint32_t prompt_end, int64_t new_tokens)
    : on_token_(options.on_token),
      forced_first_(options.forced_bos),
      forced_last_(options.forced_eos),
      masks_tokens_(options.grammar != nullptr),
      layout_{params},
      prompt_end_(prompt_end),
      new_tokens_(new_tokens) {
  const auto sequences = static_cast<size_t>(options.return_sequences);
  for (size_t place : items) {
    Row row{.input = place / sequences, .sequence = place % sequences, .seen = prompt_end};
    if (options.grammar) row.grammar.emplace(options.grammar);
    rows_.push_back(std::move(row));
  }
}

Status TokenWatch::follow(Row& row, int64_t id, float log_probability) {
  const bool forced_first = row.seen == prompt_end_ && id == forced_first_;
  const bool forced_last = row.seen + 1 == prompt_end_ + new_tokens_ && id == forced_last_;
  ++row.seen;
  // What is forced is no part of the text.
  if (row.grammar && !forced_first && !forced_last) VKF_CHECK(row.grammar->accept(id));
  if (!on_token_) return {};
  const TokenVerdict verdict =
      on_token_({row.input, row.sequence, id, static_cast<double>(log_probability)});
  if (verdict == TokenVerdict::kEnd) row.ended_at = row.seen;
  if (verdict != TokenVerdict::kCancel) return {};
  return cancelled(message({"[generate] the caller asked to stop after token ",
                            row.seen - prompt_end_, " of input ", row.input}));
}

Result<std::vector<uint32_t>> TokenWatch::read(std::span<const uint32_t> search, uint32_t length) {
  std::vector<uint32_t> ended;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const size_t item = layout_.item(i);
    if (row.ended_at != 0 || search[item + VKF_ITEM_STATUS] != 0) continue;
    const bool runs = search[item + VKF_ITEM_ACTIVE] != 0;
    if (row.grammar && row.grammar->complete()) {
      row.ended_at = row.seen;
    } else {
      const uint32_t end = runs ? length : search[item + VKF_ITEM_LENGTH];
      while (row.seen < end && row.ended_at == 0) {
        VKF_CHECK(follow(row, search[layout_.tokens(i) + row.seen],
                         std::bit_cast<float>(search[layout_.sequence(i, 0) + row.seen])));
      }
    }
    if (runs && row.ended_at != 0) ended.push_back(i);
  }
  return ended;
}

Result<std::vector<uint32_t>> TokenWatch::masks() {
  const size_t each = (size_t{layout_.p.vocab} + 31) / 32;
  std::vector<uint32_t> words(each * rows_.size(), UINT32_MAX);
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.ended_at != 0) continue;
    const int64_t left = new_tokens_ - (int64_t{row.seen} - prompt_end_);
    VKF_CHECK(row.grammar->mask(left, std::span(words).subspan(i * each, each)));
  }
  return words;
}

Status TokenWatch::check_complete() const {
  for (const Row& row : rows_) {
    // A caller who ends a text wants it as it is.
    if (!row.grammar || row.grammar->may_end() || row.ended_at != 0) continue;
    return invalid_argument(
        message({"[grammar] the text of input ", row.input,
                 " cannot be completed within max_new_tokens, ", new_tokens_, "; allow more"}));
  }
  return {};
}

}  // namespace vkformer
