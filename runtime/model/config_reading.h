// What several families read from config.json and generation_config.json in the same way.
#pragma once

#include "checkpoint/json_config.h"
#include "model/model.h"
#include "ops/activation.h"

namespace vkformer {

// A size that must lie in [1, most]; the error names the key, the value and the limit.
Result<int64_t> get_size(const JsonConfig& config, const std::string& key, int64_t most);
Result<int64_t> get_size_or(const JsonConfig& config, const std::string& key, int64_t fallback,
                            int64_t most);

// An activation by its Hugging Face name.
Result<ActivationKind> get_activation(const JsonConfig& config, const std::string& key,
                                      const std::string& fallback);

Result<float> get_epsilon(const JsonConfig& config, const std::string& key, double fallback);

// The class the model was saved from ("BertForMaskedLM"), or the fallback.
Result<std::string> get_architecture(const JsonConfig& config, const std::string& fallback);
// The head that a class name ends with: ForMaskedLM, ForCausalLM and LMHeadModel,
// ForSequenceClassification, ForTokenClassification, ForQuestionAnswering,
// ForImageClassification, ForConditionalGeneration; anything else has none.
HeadKind head_of(const std::string& architecture);
// Classes of a classifying head: names from id2label, or LABEL_0 ... by num_labels, 2 without.
Result<std::vector<std::string>> get_labels(const JsonConfig& config);

// Token-choice settings: `generation` (generation_config.json) wins over `config` (config.json).
Result<GenerationFacts> read_generation(const JsonConfig& config, const JsonConfig& generation);

// width / heads, or an error where it does not divide or exceeds what attention supports.
Result<int64_t> head_width(const JsonConfig& config, int64_t width, int64_t heads);

// Limits that keep hostile configurations from asking for absurd memory.
inline constexpr int64_t kMostLayers = 1024;
inline constexpr int64_t kMostWidth = 1 << 17;
inline constexpr int64_t kMostVocabulary = 1 << 24;
inline constexpr int64_t kMostPositions = 1 << 20;
inline constexpr int64_t kMostHeadWidth = 256;

}  // namespace vkformer
