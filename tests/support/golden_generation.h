// Generation as the golden cases describe it: settings of case.json, sources, expected rows.
#pragma once

#include <string>
#include <vector>

#include "support/golden.h"
#include "vkformer/session.h"

namespace vkformer::testing {

inline bool is_generation_output(const std::string& name) {
  return name == "greedy_ids" || name == "beam4_ids" || name == "beam4_scores";
}

// A number, a list of numbers or null, as a list.
inline std::vector<int64_t> json_ids(const Json& object, const char* key) {
  if (!object.contains(key) || object.at(key).is_null()) return {};
  if (object.at(key).is_number()) return {object.at(key).get<int64_t>()};
  return object.at(key).get<std::vector<int64_t>>();
}

// The case's settings, with its beams; those it does not name are the model's.
inline GenerateOptions golden_generate_options(const GoldenCase& golden, const Session& session) {
  const Json& settings = golden.facts.at("generation");
  GenerateOptions options = session.generation_defaults();
  options.beams = settings.at("num_beams").get<int>();
  options.max_new_tokens = settings.at("max_new_tokens").get<int>();
  options.min_new_tokens = 0;
  options.length_penalty = settings.at("length_penalty").get<double>();
  options.early_stopping =
      settings.at("early_stopping").get<bool>() ? EarlyStopping::kTrue : EarlyStopping::kFalse;
  options.eos = json_ids(settings, "eos_token_id");
  options.decoder_start = settings.value("decoder_start_token_id", int64_t{0});
  options.decoder_prompt.clear();
  options.pad = settings.at("pad_token_id").get<int64_t>();
  options.forced_bos = settings.value("forced_bos_token_id", int64_t{-1});
  options.forced_eos = settings.value("forced_eos_token_id", int64_t{-1});
  options.suppress = json_ids(settings, "suppress_tokens");
  options.begin_suppress = json_ids(settings, "begin_suppress_tokens");
  if (settings.contains("bad_words_ids")) {
    for (const Json& word : settings.at("bad_words_ids")) {
      REQUIRE(word.size() == 1);
      options.suppress.push_back(word[0].get<int64_t>());
    }
  }
  return options;
}

// What generation starts from: the encoder's inputs, or the prompts of a model without encoder,
// which the case calls generate.input_ids and generate.attention_mask.
inline TensorMap golden_sources(const GoldenCase& golden) {
  const std::string prefix = "generate.";
  const TensorMap inputs = golden.tensors("inputs.safetensors");
  const bool prompts = inputs.count(prefix + "input_ids") != 0;
  // Tokens beside pictures are a decoder's.
  const bool captions = !prompts && inputs.count("pixel_values") != 0;
  TensorMap sources;
  for (const auto& [name, tensor] : inputs) {
    if (captions && (name == "input_ids" || name == "attention_mask")) continue;
    if (prompts && name.rfind(prefix, 0) == 0) {
      sources.emplace(name.substr(prefix.size()), tensor);
    } else if (!prompts && name.rfind("decoder_", 0) != 0) {
      sources.emplace(name, tensor);
    } else if (prompts && (name.rfind("pixel_", 0) == 0 || name.rfind("image_", 0) == 0)) {
      sources.emplace(name, tensor);  // images in prompts are those of the pass
    }
  }
  return sources;
}

// How much padding stands before each row's prompt: expected rows have it, ours do not.
inline std::vector<size_t> golden_padding(const TensorMap& sources, size_t rows) {
  std::vector<size_t> padding(rows, 0);
  const auto mask = sources.find("attention_mask");
  if (mask == sources.end()) return padding;
  const std::vector<int64_t> values = mask->second.to_ints().value();
  for (size_t i = 0; i < values.size(); ++i) {
    padding[i * rows / values.size()] += values[i] == 0 ? 1 : 0;
  }
  return padding;
}

// The rows of an id tensor, cut after their first generated end token.
inline std::vector<std::vector<int64_t>> golden_rows(const GoldenCase& golden,
                                                     const Tensor& tensor) {
  const Json& settings = golden.facts.at("generation");
  const std::vector<int64_t> eos = json_ids(settings, "eos_token_id");
  const auto prompt = settings.at("prompt_length").get<size_t>();
  const std::vector<int64_t> ids = tensor.to_ints().value();
  std::vector<std::vector<int64_t>> rows;
  const auto width = static_cast<size_t>(tensor.shape[1]);
  for (size_t first = 0; first < ids.size(); first += width) {
    std::vector<int64_t> row;
    for (size_t i = 0; i < width; ++i) {
      row.push_back(ids[first + i]);
      const bool end = std::find(eos.begin(), eos.end(), row.back()) != eos.end();
      if (i >= prompt && end) break;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace vkformer::testing
