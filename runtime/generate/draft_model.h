// A smaller model that drafts the next tokens of rows (Leviathan et al. 2023, "Fast Inference from
// Transformers via Speculative Decoding"). It chooses as the request does, by the same random
// numbers. So it drafts the token that the large model will sample, not only a likely one.
#pragma once

#include "generate/cached_row.h"
#include "generate/request_choice.h"

namespace vkformer {

// What is wanted of a row.
struct DraftWish {
  uint32_t row = 0;
  std::span<const uint32_t> text;  // prompt and what was generated
  size_t generated = 0;            // tokens of it
  size_t drafts = 0;               // at most; 0: only reads the text
  const RequestChoice* choice = nullptr;
};

class DraftModel {
 public:
  // As many rows and slots as the batch has; fewer positions where the model has fewer.
  static Result<std::unique_ptr<DraftModel>> create(std::shared_ptr<const LoadedModel> model,
                                                    const StepShape& shape);

  // Draft tokens for each wish, in order. A row whose text the model has not read yet is read as
  // far as one step goes, and has none.
  Result<std::vector<std::vector<uint32_t>>> propose(std::span<const DraftWish> wishes);

  uint32_t vocab() const { return pass_->vocab(); }
  int64_t steps() const { return steps_; }
  int64_t submits() const { return pass_->submits(); }
  int64_t cache_bytes() const { return pass_->cache_bytes(); }

 private:
  DraftModel() = default;
  // Feeds what the rows lack of their texts; the first draft token of those that are read.
  Status read_texts(std::span<const DraftWish> wishes, std::vector<std::vector<uint32_t>>& drafts);
  // Feeds the last draft token of every row that wants more; false where none does.
  Result<bool> go_on(std::span<const DraftWish> wishes, std::vector<std::vector<uint32_t>>& drafts);
  // Where `wish` has room for one more draft token.
  bool wants_more(const DraftWish& wish, size_t drafts) const;
  Status step(std::span<const DraftWish> wishes, std::span<const FedToken> fed,
              std::span<const size_t> chosen, std::vector<std::vector<uint32_t>>& drafts);

  std::unique_ptr<SlotPass> pass_;
  std::vector<CachedRow> rows_;
  int64_t steps_ = 0;
};

}  // namespace vkformer
