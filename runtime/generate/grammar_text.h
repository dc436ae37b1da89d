// One text that keeps to a grammar, token by token.
#pragma once

#include <memory>
#include <span>

#include "vkformer/grammar.h"
#include "vkformer/result.h"

namespace vkformer {

class GrammarText {
 public:
  explicit GrammarText(std::shared_ptr<GrammarConstraint> grammar)
      : grammar_(std::move(grammar)), state_(grammar_->start()) {}

  // Takes from `words`, bits of all tokens (ceil(V/32)), those that may not come next where at most
  // `left` tokens still come. Where the text is complete and no token stands for its end, all may
  // come, and complete() says so.
  Status mask(int64_t left, std::span<uint32_t> words);
  // An error names a token that the grammar does not allow.
  Status accept(int64_t token);

  bool may_end() const { return state_.may_end(); }
  // Nothing can follow.
  bool complete() const { return complete_; }

 private:
  std::shared_ptr<GrammarConstraint> grammar_;
  GrammarState state_;
  bool complete_ = false;
};

}  // namespace vkformer
