// Follows a generation between submits: hands every new token to the caller, keeps texts to a
// grammar, and says which items end.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "generate/grammar_text.h"
#include "generate/search_layout.h"
#include "vkformer/generation.h"
#include "vkformer/result.h"

namespace vkformer {

class TokenWatch {
 public:
  // `items` are the places of the job's items among those of the call, of which each input has
  // options.return_sequences. At most `new_tokens` come.
  TokenWatch(const GenerateOptions& options, const SearchParams& params,
             const std::vector<size_t>& items, uint32_t prompt_end, int64_t new_tokens);

  // Reads the search buffer after a submit that leaves live items with `length` positions. Gives
  // the items that end here though the search goes on with them.
  Result<std::vector<uint32_t>> read(std::span<const uint32_t> search, uint32_t length);
  // Words of the tokens that every row may choose next, (R, ceil(V/32)). Rows that cannot go on,
  // because their text is complete, may choose anything; the next read() ends them.
  Result<std::vector<uint32_t>> masks();
  bool masks_tokens() const { return masks_tokens_; }
  // Where an item ended before the search did: positions, or 0.
  uint32_t ended_at(size_t item) const { return rows_[item].ended_at; }
  // That every text is complete.
  Status check_complete() const;

 private:
  struct Row {
    size_t input, sequence;
    uint32_t seen;          // positions
    uint32_t ended_at = 0;  // positions
    std::optional<GrammarText> grammar;
  };
  Status follow(Row& row, int64_t id, float log_probability);

  // Of the caller's options, which may be gone when the next slice runs.
  OnToken on_token_;
  int64_t forced_first_, forced_last_;  // tokens; negative: none
  bool masks_tokens_;
  SearchLayout layout_;
  uint32_t prompt_end_;
  int64_t new_tokens_;
  std::vector<Row> rows_;
};

}  // namespace vkformer
