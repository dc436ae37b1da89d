#include "model/config_reading.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// The config that has the key: generation settings first.
const JsonConfig& holder(const JsonConfig& config, const JsonConfig& generation,
                         const std::string& key) {
  return generation.has(key) ? generation : config;
}

Result<std::optional<int64_t>> optional_int(const JsonConfig& from, const std::string& key) {
  if (!from.has(key)) return std::optional<int64_t>();
  VKF_ASSIGN(std::vector<int64_t> values, from.get_int_list_or(key, {}));
  if (values.empty()) return std::optional<int64_t>();
  if (values.size() > 1) {
    return unsupported(message({"[", key, "] in ", from.where(), " lists ", values.size(),
                                " tokens; only one is supported"}));
  }
  return std::optional<int64_t>(values[0]);
}

Status read_suppressed(const JsonConfig& config, const JsonConfig& generation,
                       GenerationFacts& facts) {
  const auto from = [&](const std::string& key) -> const JsonConfig& {
    return holder(config, generation, key);
  };
  VKF_ASSIGN(facts.suppress, from("suppress_tokens").get_int_list_or("suppress_tokens", {}));
  VKF_ASSIGN(facts.begin_suppress,
             from("begin_suppress_tokens").get_int_list_or("begin_suppress_tokens", {}));
  VKF_ASSIGN(std::vector<std::vector<int64_t>> bad,
             from("bad_words_ids").get_int_lists_or("bad_words_ids", {}));
  for (const std::vector<int64_t>& word : bad) {
    // transformers leaves end tokens out.
    if (word.size() == 1 &&
        std::find(facts.eos.begin(), facts.eos.end(), word[0]) != facts.eos.end())
      continue;
    if (word.size() == 1) {
      facts.suppress.push_back(word[0]);
    } else if (!word.empty()) {
      facts.penalties.bad_words.push_back(word);
    }
  }
  return {};
}

// How tokens are sampled where they are, and penalties, with the defaults of transformers.
Status read_choice(const JsonConfig& config, const JsonConfig& generation, GenerationFacts& facts) {
  const auto from = [&](const std::string& key) -> const JsonConfig& {
    return holder(config, generation, key);
  };
  constexpr int64_t kUsualTopK = 50;
  constexpr int64_t kMost = INT32_MAX;
  const auto number = [&](const char* key, double& to) -> Status {
    VKF_ASSIGN(to, from(key).get_double_or(key, to));
    return {};
  };
  VKF_ASSIGN(const bool draws, from("do_sample").get_bool_or("do_sample", false));
  facts.choice = draws ? TokenChoice::kSampled : TokenChoice::kBest;
  SamplingOptions& sampling = facts.sampling;
  VKF_ASSIGN(const int64_t top_k, from("top_k").get_int_or("top_k", kUsualTopK));
  sampling.top_k = static_cast<int>(std::clamp<int64_t>(top_k, 0, kMost));
  VKF_CHECK(number("temperature", sampling.temperature));
  VKF_CHECK(number("top_p", sampling.top_p));
  VKF_CHECK(number("min_p", sampling.min_p));
  VKF_CHECK(number("typical_p", sampling.typical_p));
  VKF_CHECK(number("repetition_penalty", facts.penalties.repetition));
  VKF_ASSIGN(const int64_t ngram,
             from("no_repeat_ngram_size").get_int_or("no_repeat_ngram_size", 0));
  facts.penalties.no_repeat_ngram = static_cast<int>(std::clamp<int64_t>(ngram, 0, kMost));
  VKF_ASSIGN(const auto biases, from("sequence_bias").get_weighted_lists_or("sequence_bias", {}));
  for (const auto& [tokens, bias] : biases) facts.penalties.biases.push_back({tokens, bias});
  return {};
}

// Searches: contrastive without sampling and without beams, as transformers has it.
Status read_search(const JsonConfig& config, const JsonConfig& generation, GenerationFacts& facts) {
  const auto from = [&](const std::string& key) -> const JsonConfig& {
    return holder(config, generation, key);
  };
  VKF_ASSIGN(facts.beams, from("num_beams").get_int_or("num_beams", 1));
  VKF_ASSIGN(facts.return_sequences,
             from("num_return_sequences").get_int_or("num_return_sequences", 1));
  VKF_ASSIGN(facts.beam_groups, from("num_beam_groups").get_int_or("num_beam_groups", 1));
  VKF_ASSIGN(facts.diversity, from("diversity_penalty").get_double_or("diversity_penalty", 0.0));
  VKF_ASSIGN(facts.contrast, from("penalty_alpha").get_double_or("penalty_alpha", 0.0));
  const int candidates = facts.sampling.top_k;
  const bool plain = facts.beams == 1 && facts.choice == TokenChoice::kBest;
  if (plain && facts.contrast > 0 && candidates > 1) facts.contrastive_tokens = candidates;
  return {};
}

Result<EarlyStopping> read_early_stopping(const JsonConfig& from) {
  if (!from.has("early_stopping")) return EarlyStopping::kFalse;
  auto flag = from.get_bool("early_stopping");
  if (flag) return *flag ? EarlyStopping::kTrue : EarlyStopping::kFalse;
  VKF_ASSIGN(const std::string text, from.get_string("early_stopping"));
  const auto when = choice_from_name<EarlyStopping>(text);
  if (!when) return invalid_file(message({from.where(), ": ", when.error().message}));
  return *when;
}

}  // namespace

Result<int64_t> get_size(const JsonConfig& config, const std::string& key, int64_t most) {
  VKF_ASSIGN(int64_t value, config.get_int(key));
  if (value >= 1 && value <= most) return value;
  return invalid_file(message(
      {"[", key, "] in ", config.where(), " is ", value, ", but must lie between 1 and ", most}));
}

Result<int64_t> get_size_or(const JsonConfig& config, const std::string& key, int64_t fallback,
                            int64_t most) {
  if (!config.has(key)) return fallback;
  return get_size(config, key, most);
}

Result<ActivationKind> get_activation(const JsonConfig& config, const std::string& key,
                                      const std::string& fallback) {
  VKF_ASSIGN(std::string name, config.get_string_or(key, fallback));
  auto kind = activation_from_name(name);
  if (!kind) return kind.error().with_context(message({"[", key, "] in ", config.where()}));
  return *kind;
}

Result<float> get_epsilon(const JsonConfig& config, const std::string& key, double fallback) {
  VKF_ASSIGN(double value, config.get_double_or(key, fallback));
  if (value >= 0 && value < 1) return static_cast<float>(value);
  return invalid_file(message(
      {"[", key, "] in ", config.where(), " is ", value, ", but must lie between 0 and 1"}));
}

Result<std::string> get_architecture(const JsonConfig& config, const std::string& fallback) {
  VKF_ASSIGN(std::vector<std::string> names, config.get_string_list_or("architectures", {}));
  return names.empty() ? fallback : names[0];
}

HeadKind head_of(const std::string& architecture) {
  constexpr struct {
    const char* ending;
    HeadKind head;
  } kHeads[] = {{"ForMaskedLM", HeadKind::kMasked},
                {"ForPreTraining", HeadKind::kMasked},
                {"ForCausalLM", HeadKind::kLanguage},
                {"LMHeadModel", HeadKind::kLanguage},
                {"ForConditionalGeneration", HeadKind::kLanguage},
                {"MTModel", HeadKind::kLanguage},
                {"VisionEncoderDecoderModel", HeadKind::kLanguage},
                {"ForSequenceClassification", HeadKind::kSequence},
                {"ForImageClassification", HeadKind::kSequence},
                {"ForImageClassificationWithTeacher", HeadKind::kSequence},
                {"ForTokenClassification", HeadKind::kTokens},
                {"ForObjectDetection", HeadKind::kObjects},
                {"ForDepthEstimation", HeadKind::kDepth},
                {"ForQuestionAnswering", HeadKind::kSpans}};
  for (const auto& [ending, head] : kHeads) {
    if (architecture.ends_with(ending)) return head;
  }
  return HeadKind::kNone;
}

Result<std::vector<std::string>> get_labels(const JsonConfig& config) {
  const JsonConfig named = config.object("id2label");
  VKF_CHECK(named.status());
  const size_t count = named.keys().size();
  std::vector<std::string> labels;
  if (count > 0) {
    for (size_t i = 0; i < count; ++i) {
      VKF_ASSIGN(std::string label, named.get_string(std::to_string(i)));
      labels.push_back(std::move(label));
    }
    return labels;
  }
  VKF_ASSIGN(int64_t classes, get_size_or(config, "num_labels", 2, 1 << 20));
  for (int64_t i = 0; i < classes; ++i) labels.push_back("LABEL_" + std::to_string(i));
  return labels;
}

Result<GenerationFacts> read_generation(const JsonConfig& config, const JsonConfig& generation) {
  const auto from = [&](const std::string& key) -> const JsonConfig& {
    return holder(config, generation, key);
  };
  GenerationFacts facts;
  VKF_ASSIGN(facts.eos, from("eos_token_id").get_int_list_or("eos_token_id", {}));
  const int64_t first_eos = facts.eos.empty() ? 0 : facts.eos[0];
  VKF_ASSIGN(facts.pad, from("pad_token_id").get_int_or("pad_token_id", first_eos));
  VKF_ASSIGN(facts.decoder_start,
             from("decoder_start_token_id").get_int_or("decoder_start_token_id", -1));
  if (facts.decoder_start < 0) {
    VKF_ASSIGN(facts.decoder_start, from("bos_token_id").get_int_or("bos_token_id", facts.pad));
  }
  VKF_ASSIGN(facts.forced_bos, optional_int(from("forced_bos_token_id"), "forced_bos_token_id"));
  VKF_ASSIGN(facts.forced_eos, optional_int(from("forced_eos_token_id"), "forced_eos_token_id"));
  VKF_CHECK(read_suppressed(config, generation, facts));
  VKF_CHECK(read_choice(config, generation, facts));
  VKF_CHECK(read_search(config, generation, facts));
  VKF_ASSIGN(facts.max_new_tokens, from("max_new_tokens").get_int_or("max_new_tokens", 0));
  if (facts.max_new_tokens == 0) {
    VKF_ASSIGN(int64_t length, from("max_length").get_int_or("max_length", 0));
    facts.max_new_tokens = length > 1 ? length - 1 : 0;
  }
  VKF_ASSIGN(facts.min_new_tokens, from("min_new_tokens").get_int_or("min_new_tokens", 0));
  if (facts.min_new_tokens == 0) {
    VKF_ASSIGN(int64_t length, from("min_length").get_int_or("min_length", 0));
    facts.min_new_tokens = length > 1 ? length - 1 : 0;
  }
  VKF_ASSIGN(facts.length_penalty, from("length_penalty").get_double_or("length_penalty", 1.0));
  VKF_ASSIGN(facts.early_stopping, read_early_stopping(from("early_stopping")));
  return facts;
}

Result<int64_t> head_width(const JsonConfig& config, int64_t width, int64_t heads) {
  if (width % heads != 0 || width / heads > kMostHeadWidth) {
    return invalid_file(
        message({"[", config.where(), "] splits a width of ", width, " over ", heads,
                 " heads; the width must be a multiple of the heads and a head at most ",
                 kMostHeadWidth, " wide"}));
  }
  return width / heads;
}

}  // namespace vkformer
