#include "session/request_choice.h"

#include <algorithm>

#include "session/token_choice.h"

namespace vkformer {
namespace {

std::optional<uint32_t> token_or_none(int64_t token) {
  if (token < 0) return std::nullopt;
  return static_cast<uint32_t>(token);
}

Status check_batched(const GenerateOptions& o) {
  if (o.beams != 1 || o.return_sequences != 1) {
    return unsupported("[submit] beams is " + std::to_string(o.beams) + " and return_sequences " +
                       std::to_string(o.return_sequences) +
                       ", but a request of a batch is one row; use 1 of each, or "
                       "Session::generate");
  }
  if (o.grammar != nullptr || o.on_token || o.contrastive_tokens > 0) {
    return unsupported(
        "[submit] a request has a grammar, on_token or contrastive search, which rows of a batch "
        "do "
        "not know; leave them away, look at what step() tells, or use Session::generate");
  }
  if (o.context) {
    return invalid_argument(
        "[context] belongs to the whole batch; set it when the batch is made, and leave it away in "
        "a request");
  }
  if (o.min_new_tokens >= 0 && o.max_new_tokens >= 0) return {};
  return invalid_argument("[submit] min_new_tokens is " + std::to_string(o.min_new_tokens) +
                          " and max_new_tokens " + std::to_string(o.max_new_tokens) +
                          ", but neither may be negative");
}

}  // namespace

Status RequestChoice::forbid(const char* name, const std::vector<int64_t>& tokens,
                             std::vector<uint32_t>& allowed) const {
  if (!tokens.empty() && allowed.empty()) allowed.assign((vocab_ + 31) / 32, ~0u);
  for (int64_t token : tokens) {
    if (token < 0 || token >= vocab_) {
      return invalid_argument("[" + std::string(name) + "] names the token " +
                              std::to_string(token) + ", but the vocabulary has ids 0 to " +
                              std::to_string(vocab_ - 1));
    }
    allowed[static_cast<size_t>(token / 32)] &= ~(1u << (token % 32));
  }
  return {};
}

Result<RequestChoice> RequestChoice::create(const GenerateOptions& o, uint32_t vocab) {
  VKF_CHECK(check_batched(o));
  VKF_CHECK(check_choice(o, vocab));
  RequestChoice made;
  made.vocab_ = vocab;
  std::vector<uint32_t> scratch;
  VKF_CHECK(made.forbid("forced_bos", {std::max<int64_t>(o.forced_bos, 0)}, scratch));
  VKF_CHECK(made.forbid("forced_eos", {std::max<int64_t>(o.forced_eos, 0)}, scratch));
  VKF_CHECK(made.forbid("suppress", o.suppress, made.later_));
  made.unending_ = made.first_allowed_ = made.later_;
  VKF_CHECK(made.forbid("eos", o.eos, made.unending_));
  VKF_CHECK(made.forbid("begin_suppress", o.begin_suppress, made.first_allowed_));
  made.first_unending_ = made.first_allowed_;
  VKF_CHECK(made.forbid("eos", o.eos, made.first_unending_));
  for (int64_t token : o.eos) made.eos_.push_back(static_cast<uint32_t>(token));
  made.first_ = token_or_none(o.forced_bos);
  made.last_ = token_or_none(o.forced_eos);
  made.min_new_ = static_cast<size_t>(o.min_new_tokens);
  made.plain_.settings = choice_row(o, 0, 0);
  const std::vector<TokenRule> rules = token_rules(o.penalties);
  const PenaltyOptions& p = o.penalties;
  made.looks_back_ = p.repetition != 1 || p.presence != 0 || p.frequency != 0 ||
                     p.no_repeat_ngram != 0 ||
                     std::any_of(rules.begin(), rules.end(),
                                 [](const TokenRule& r) { return r.tokens.size() > 1; });
  if (rules.empty()) return made;
  made.plain_.rules = rule_list(rules);
  if (made.plain_.rules.size() <= kSlotRuleWords) return made;
  return invalid_argument("[logit_bias] and bad_words take " +
                          std::to_string(made.plain_.rules.size()) +
                          " words, but a request of a batch has room for " +
                          std::to_string(kSlotRuleWords) + "; use fewer");
}

SlotChoice RequestChoice::at(std::span<const uint32_t> text, size_t n) const {
  SlotChoice choice = plain_;
  choice.settings.next = static_cast<uint32_t>(n + 1);
  if (looks_back_) choice.history.assign(text.begin(), text.end());
  const bool early = n < min_new_;
  if (n == 0) {
    choice.allowed = early ? first_unending_ : first_allowed_;
  } else {
    choice.allowed = early ? unending_ : later_;
  }
  return choice;
}

std::optional<uint32_t> RequestChoice::forced(size_t n, size_t most) const {
  // As token_candidates has it, what ends a text comes before what begins it.
  if (n + 1 == most && last_) return last_;
  return n == 0 ? first_ : std::nullopt;
}

bool RequestChoice::ends(uint32_t token) const {
  return std::find(eos_.begin(), eos_.end(), token) != eos_.end();
}

}  // namespace vkformer
