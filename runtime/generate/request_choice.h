// How one request of a batch chooses its tokens, place by place. It has its settings as the words
// that the kernels read, end tokens, and tokens that are forced.
#pragma once

#include <optional>

#include "generate/slot_pass.h"
#include "vkformer/session.h"

namespace vkformer {

class RequestChoice {
 public:
  // Refuses settings that the vocabulary of `vocab` tokens or a batch does not have. `sequence` is
  // which of the request's it is for.
  static Result<RequestChoice> create(const GenerateOptions& options, uint32_t vocab,
                                      uint32_t sequence);

  // For the token after `text`, which is the n-th that is generated, from 0.
  SlotChoice at(std::span<const uint32_t> text, size_t n) const;
  // Where that one is not free: which it is. `most`: tokens that are generated at most.
  std::optional<uint32_t> forced(size_t n, size_t most) const;
  bool ends(uint32_t token) const;

 private:
  RequestChoice() = default;
  // Takes bits out of the masks.
  Status forbid(const char* name, const std::vector<int64_t>& tokens,
                std::vector<uint32_t>& allowed) const;

  uint32_t vocab_ = 0;
  SlotChoice plain_;
  bool looks_back_ = false;  // settings depend on the text
  size_t min_new_ = 0;
  std::vector<uint32_t> eos_;
  std::optional<uint32_t> first_, last_;
  // Bits of tokens that may be chosen (ceil(V/32)); empty: all. One set is for later tokens, one
  // for those before an end token may come. Two are for the first token, as it is and with no end
  // token.
  std::vector<uint32_t> later_, unending_, first_allowed_, first_unending_;
};

}  // namespace vkformer
