#include "generate/token_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Those that count tokens.
bool has_penalties(const PenaltyOptions& p) {
  return p.repetition != 1 || p.presence != 0 || p.frequency != 0 || p.no_repeat_ngram != 0;
}

struct Range {
  const char* name;
  double value, least, most;
  const char* bounds;
};

Status check_range(const Range& r) {
  if (r.value >= r.least && r.value <= r.most) return {};
  return invalid_argument(message({"[", r.name, "] is ", r.value, ", but must lie ", r.bounds}));
}

Status check_sampling(const SamplingOptions& s) {
  constexpr double kLarge = 1e9;
  for (const Range& r : {Range{"temperature", s.temperature, 0, kLarge, "between 0 and 1e9"},
                         Range{"top_p", s.top_p, 0, 1, "between 0 and 1"},
                         Range{"min_p", s.min_p, 0, 1, "between 0 and 1"},
                         Range{"typical_p", s.typical_p, 1e-9, 1, "above 0 and be at most 1"}}) {
    VKF_CHECK(check_range(r));
  }
  if (s.top_k >= 0) return {};
  return invalid_argument(
      message({"[top_k] is ", s.top_k, ", but must be at least 1, or 0 for all tokens"}));
}

Status check_tokens(const char* name, const std::vector<int64_t>& tokens, int64_t vocab) {
  if (tokens.empty()) {
    return invalid_argument(
        message({"[", name, "] has an entry without tokens; name at least one"}));
  }
  for (int64_t token : tokens) VKF_CHECK(check_token_id(name, token, vocab));
  return {};
}

Status check_penalties(const PenaltyOptions& p, int64_t vocab) {
  constexpr double kLarge = 1e9;
  for (const Range& r :
       {Range{"repetition_penalty", p.repetition, 1e-9, kLarge, "above 0 and be at most 1e9"},
        Range{"presence_penalty", p.presence, -kLarge, kLarge, "between -1e9 and 1e9"},
        Range{"frequency_penalty", p.frequency, -kLarge, kLarge, "between -1e9 and 1e9"},
        Range{"no_repeat_ngram", static_cast<double>(p.no_repeat_ngram), 0, VKF_MAX_NO_REPEAT,
              "between 0 and 32"}}) {
    VKF_CHECK(check_range(r));
  }
  for (const TokenBias& bias : p.biases) {
    VKF_CHECK(check_tokens("logit_bias", bias.tokens, vocab));
    if (std::isfinite(bias.bias) || bias.bias < 0) continue;
    return invalid_argument(
        message({"[logit_bias] of token ", bias.tokens.back(), " is ", bias.bias,
                 ", but must be finite, or -infinity to forbid the token"}));
  }
  for (const auto& word : p.bad_words) VKF_CHECK(check_tokens("bad_words", word, vocab));
  return {};
}

}  // namespace

bool needs_choice(const GenerateOptions& o) {
  const PenaltyOptions& p = o.penalties;
  return o.choice == TokenChoice::kSampled || has_penalties(p) || !p.biases.empty() ||
         !p.bad_words.empty() || o.grammar != nullptr;
}

bool looks_back(const PenaltyOptions& p) {
  const auto several = [](const auto& words) {
    return std::any_of(words.begin(), words.end(),
                       [](const std::vector<int64_t>& word) { return word.size() > 1; });
  };
  return has_penalties(p) || several(p.bad_words) ||
         std::any_of(p.biases.begin(), p.biases.end(),
                     [](const TokenBias& bias) { return bias.tokens.size() > 1; });
}

Status check_token_id(const char* name, int64_t token, int64_t vocab) {
  if (token >= 0 && token < vocab) return {};
  return invalid_argument(message(
      {"[", name, "] names the token ", token, ", but the vocabulary has ids 0 to ", vocab - 1}));
}

Status check_choice(const GenerateOptions& o, int64_t vocab) {
  if (o.choice == TokenChoice::kSampled) VKF_CHECK(check_sampling(o.sampling));
  VKF_CHECK(check_penalties(o.penalties, vocab));
  if (o.beams == 1) return {};
  if (o.on_token || o.grammar != nullptr) {
    return unsupported(
        message({"[generate] there are ", o.beams,
                 " beams, whose texts change until the end, so that on_token and grammar "
                 "cannot follow them; use one beam"}));
  }
  return {};
}

std::vector<TokenRule> token_rules(const PenaltyOptions& penalties) {
  std::vector<TokenRule> rules;
  for (const TokenBias& bias : penalties.biases) {
    rules.push_back({bias.tokens, static_cast<float>(bias.bias)});
  }
  for (const auto& word : penalties.bad_words) {
    rules.push_back({word, -std::numeric_limits<float>::infinity()});
  }
  return rules;
}

ChoiceRow choice_row(const GenerateOptions& o, uint32_t stream, uint32_t rules) {
  const bool drawn = o.choice == TokenChoice::kSampled;
  const SamplingOptions& s = o.sampling;
  ChoiceRow row{};
  // So cold that only the best token is left, and its reciprocal no float any more.
  constexpr double kCold = 1e-6;
  row.temperature = drawn && s.temperature > kCold ? static_cast<float>(s.temperature) : 0.0f;
  row.top_p = static_cast<float>(s.top_p);
  row.min_p = static_cast<float>(s.min_p);
  row.typical_p = static_cast<float>(s.typical_p);
  row.top_k = static_cast<uint32_t>(s.top_k);
  row.seed_low = static_cast<uint32_t>(s.seed);
  row.seed_high = static_cast<uint32_t>(s.seed >> 32);
  row.stream = stream;
  row.repetition = static_cast<float>(o.penalties.repetition);
  row.presence = static_cast<float>(o.penalties.presence);
  row.frequency = static_cast<float>(o.penalties.frequency);
  row.no_repeat = static_cast<uint32_t>(o.penalties.no_repeat_ngram);
  row.masked = o.grammar != nullptr ? 1u : 0u;
  row.rules = rules;
  return row;
}

}  // namespace vkformer
