#include "generate/grammar_text.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer {

Status GrammarText::accept(int64_t token) {
  VKF_ASSIGN(state_, grammar_->accept(state_, token));
  return {};
}

Status GrammarText::mask(int64_t left, std::span<uint32_t> words) {
  if (complete_ || state_.has_ended()) return {};
  const auto allowed = grammar_->allowed_within(state_, left - 1);
  if (!allowed) {
    complete_ = state_.may_end();
    return complete_ ? Status{} : Status{allowed.error()};
  }
  if (allowed->size() != words.size()) {
    return invalid_argument(message({"[grammar] its vocabulary takes ", allowed->size(),
                                     " words of 32 tokens, but the model's logits take ",
                                     words.size(), "; make it for the width of the logits"}));
  }
  for (size_t i = 0; i < words.size(); ++i) words[i] &= (*allowed)[i];
  return {};
}

}  // namespace vkformer
