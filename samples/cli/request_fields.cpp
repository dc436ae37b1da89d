#include "request_fields.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "text_inputs.h"

namespace vkformer::cli {

namespace {

// Settings of a request: where they go, and what they may be.
struct WholeField {
  const char* key;
  int* setting;
};
struct NumberField {
  const char* key;
  double* setting;
  bool draws;  // whether it says that tokens are sampled
};

constexpr const char* kFields[] = {"id",
                                   "text",
                                   "ids",
                                   "messages",
                                   "pictures",
                                   "client",
                                   "max_new_tokens",
                                   "min_new_tokens",
                                   "temperature",
                                   "top_k",
                                   "top_p",
                                   "min_p",
                                   "typical_p",
                                   "seed",
                                   "repetition_penalty",
                                   "presence_penalty",
                                   "frequency_penalty",
                                   "no_repeat_ngram",
                                   "bad_words",
                                   "logit_bias",
                                   "return_sequences",
                                   "log_probabilities",
                                   "stop",
                                   "grammar",
                                   "json_schema",
                                   "adapters"};

Result<std::vector<TokenId>> tokens_of(const char* key, const std::string& text,
                                       const Tokenizer& tokenizer) {
  EncodeOptions plain;
  plain.special_tokens = SpecialTokens::kExclude;
  const Result<Encoding> encoding = tokenizer.encode(text, plain);
  if (!encoding) return encoding.error();
  if (!encoding->ids.empty()) return encoding->ids;
  return bad_request(key, "'" + text + "' has no tokens; give a text that is not empty");
}

}  // namespace

Error bad_request(const std::string& key, const std::string& what) {
  return {ErrorCode::kInvalidArgument, "[" + key + "] " + what};
}

Status check_fields(const Json& fields) {
  for (const auto& [key, value] : fields.items()) {
    const auto same = [&key = key](const char* known) { return key == known; };
    if (std::any_of(std::begin(kFields), std::end(kFields), same)) continue;
    std::string names;
    for (const char* name : kFields) names += (names.empty() ? "" : ", ") + std::string(name);
    return bad_request(key, "is no field of a request; there are " + names);
  }
  return {};
}

Status read_adapters(const Json& fields, std::vector<AdapterScale>& adapters) {
  if (!fields.contains("adapters")) return {};
  const Json& given = fields["adapters"];
  if (!given.is_object()) {
    return bad_request("adapters", "must be an object of names and scales, {\"NAME\": 1}; got " +
                                       json_text(given));
  }
  for (const auto& [name, scale] : given.items()) {
    constexpr double kMost = std::numeric_limits<float>::max();
    if (!scale.is_number() || !(std::abs(scale.get<double>()) <= kMost)) {
      return bad_request(
          "adapters", "'" + name + "' must be a finite number, the scale; got " + json_text(scale));
    }
    adapters.push_back({name, scale.get<float>()});
  }
  return {};
}

Status read_settings(const Json& fields, GenerateOptions& o) {
  SamplingOptions& s = o.sampling;
  PenaltyOptions& p = o.penalties;
  for (const WholeField& f : {WholeField{"max_new_tokens", &o.max_new_tokens},
                              {"min_new_tokens", &o.min_new_tokens},
                              {"top_k", &s.top_k},
                              {"no_repeat_ngram", &p.no_repeat_ngram},
                              {"return_sequences", &o.return_sequences}}) {
    if (!fields.contains(f.key)) continue;
    const Json& value = fields[f.key];
    const bool whole = value.is_number_integer() && value >= 0 && value <= 1 << 20;
    if (!whole) {
      return bad_request(f.key,
                         "must be a whole number from 0 to 1,048,576; got " + json_text(value));
    }
    *f.setting = value.get<int>();
  }
  bool draws = fields.contains("top_k");
  for (const NumberField& f : {NumberField{"temperature", &s.temperature, true},
                               {"top_p", &s.top_p, true},
                               {"min_p", &s.min_p, true},
                               {"typical_p", &s.typical_p, true},
                               {"repetition_penalty", &p.repetition, false},
                               {"presence_penalty", &p.presence, false},
                               {"frequency_penalty", &p.frequency, false}}) {
    if (!fields.contains(f.key)) continue;
    const Json& value = fields[f.key];
    if (!value.is_number()) return bad_request(f.key, "must be a number; got " + json_text(value));
    *f.setting = value.get<double>();
    draws = draws || f.draws;
  }
  if (draws) o.choice = s.temperature == 0 ? TokenChoice::kBest : TokenChoice::kSampled;
  if (!fields.contains("seed")) return {};
  if (!fields["seed"].is_number_unsigned()) return bad_request("seed", "must be a whole number");
  s.seed = fields["seed"].get<uint64_t>();
  return {};
}

Result<std::vector<std::string>> texts_of(const Json& fields, const char* key,
                                          const Tokenizer* tokenizer) {
  std::vector<std::string> texts;
  if (!fields.contains(key)) return texts;
  const Json& given = fields[key];
  const Json list = given.is_string() ? Json::array({given}) : given;
  const bool good = list.is_array() && std::all_of(list.begin(), list.end(),
                                                   [](const Json& one) { return one.is_string(); });
  if (!good || tokenizer == nullptr) {
    return bad_request(key, "must be a text or a list of texts, and needs a tokenizer.json");
  }
  return list.get<std::vector<std::string>>();
}

Status read_words(const Json& fields, const Tokenizer* tokenizer, PenaltyOptions& penalties) {
  const Result<std::vector<std::string>> words = texts_of(fields, "bad_words", tokenizer);
  if (!words) return words.error();
  for (const std::string& word : *words) {
    const Result<std::vector<TokenId>> alone = tokens_of("bad_words", word, *tokenizer);
    if (!alone) return alone.error();
    const Result<std::vector<TokenId>> behind = tokens_of("bad_words", " " + word, *tokenizer);
    if (!behind) return behind.error();
    penalties.bad_words.push_back(*alone);
    if (*behind != *alone) penalties.bad_words.push_back(*behind);
  }
  if (!fields.contains("logit_bias")) return {};
  const Json& biases = fields["logit_bias"];
  const bool numbers =
      biases.is_object() &&
      std::all_of(biases.begin(), biases.end(), [](const Json& bias) { return bias.is_number(); });
  if (!numbers || tokenizer == nullptr) {
    return bad_request("logit_bias",
                       "must be an object of texts and numbers, and needs a tokenizer.json");
  }
  for (const auto& [text, bias] : biases.items()) {
    Result<std::vector<TokenId>> tokens = tokens_of("logit_bias", text, *tokenizer);
    if (!tokens) return tokens.error();
    penalties.biases.push_back({std::move(*tokens), bias.get<double>()});
  }
  return {};
}

}  // namespace vkformer::cli
