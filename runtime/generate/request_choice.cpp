#include "generate/request_choice.h"

#include <algorithm>

#include "base/message.h"
#include "generate/token_choice.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

std::optional<uint32_t> token_or_none(int64_t token) {
  if (token < 0) return std::nullopt;
  return static_cast<uint32_t>(token);
}

Status check_batched(const GenerateOptions& o) {
  if (o.beams != 1 || o.contrastive_tokens > 0) {
    return unsupported(
        message({"[submit] beams is ", o.beams, " and contrastive_tokens ", o.contrastive_tokens,
                 ", but every sequence of a batch is one row that goes on by itself; use 1 "
                 "and 0, or Session::generate"}));
  }
  const int sequences = o.choice == TokenChoice::kSampled ? int{VKF_MAX_SLOTS} : 1;
  if (o.return_sequences < 1 || o.return_sequences > sequences) {
    return invalid_argument(
        message({"[return_sequences] is ", o.return_sequences, ", but must lie between 1 and ",
                 sequences, "; several differ only where tokens are sampled"}));
  }
  if (o.context) {
    return invalid_argument(
        "[context] belongs to the whole batch; set it when the batch is made, and leave it away in "
        "a request");
  }
  if (o.min_new_tokens >= 0 && o.max_new_tokens >= 0) return {};
  return invalid_argument(
      message({"[submit] min_new_tokens is ", o.min_new_tokens, " and max_new_tokens ",
               o.max_new_tokens, ", but neither may be negative"}));
}

}  // namespace

Status RequestChoice::forbid(const char* name, const std::vector<int64_t>& tokens,
                             std::vector<uint32_t>& allowed) const {
  if (!tokens.empty() && allowed.empty()) allowed.assign((vocab_ + 31) / 32, ~0u);
  for (int64_t token : tokens) {
    VKF_CHECK(check_token_id(name, token, vocab_));
    allowed[static_cast<size_t>(token / 32)] &= ~(1u << (token % 32));
  }
  return {};
}

Result<RequestChoice> RequestChoice::create(const GenerateOptions& o, uint32_t vocab,
                                            uint32_t sequence) {
  VKF_CHECK(check_batched(o));
  VKF_CHECK(check_choice(o, vocab));
  RequestChoice made;
  made.vocab_ = vocab;
  if (o.forced_bos >= 0) VKF_CHECK(check_token_id("forced_bos", o.forced_bos, vocab));
  if (o.forced_eos >= 0) VKF_CHECK(check_token_id("forced_eos", o.forced_eos, vocab));
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
  made.plain_.settings = choice_row(o, sequence, 0);
  const std::vector<TokenRule> rules = token_rules(o.penalties);
  made.looks_back_ = looks_back(o.penalties);
  if (rules.empty()) return made;
  made.plain_.rules = std::make_shared<const std::vector<uint32_t>>(rule_list(rules));
  if (made.plain_.rules->size() <= kSlotRuleWords) return made;
  return invalid_argument(
      message({"[logit_bias] and bad_words take ", made.plain_.rules->size(),
               " words, but a request of a batch has room for ", kSlotRuleWords, "; use fewer"}));
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
