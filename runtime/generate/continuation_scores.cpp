#include "generate/continuation_scores.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"

namespace vkformer {
namespace {

// A prompt with its continuation, but for the last token, which nothing is asked about.
struct ScoredRow {
  std::vector<int64_t> ids;
  size_t prompt = 0;
  const std::vector<int64_t>* continuation = nullptr;
};

Status check_continuations(const std::vector<std::vector<int64_t>>& continuations, size_t inputs,
                           int64_t vocab) {
  if (continuations.size() != inputs) {
    return invalid_argument(
        message({"[score] there are ", inputs, " inputs and ", continuations.size(),
                 " continuations; give one for each input"}));
  }
  for (const auto& tokens : continuations) {
    for (int64_t token : tokens) {
      if (token >= 0 && token < vocab) continue;
      return invalid_argument(message({"[score] a continuation has the token ", token,
                                       ", but the vocabulary has ids 0 to ", vocab - 1}));
    }
  }
  return {};
}

Result<std::vector<float>> log_probabilities(const ScoredRow& row, std::span<const float> logits,
                                             int64_t vocab) {
  std::vector<float> result;
  for (size_t t = 0; t < row.continuation->size(); ++t) {
    const auto at = (row.prompt - 1 + t) * static_cast<size_t>(vocab);
    const auto x = logits.subspan(at, static_cast<size_t>(vocab));
    const auto peak = static_cast<double>(*std::max_element(x.begin(), x.end()));
    double sum = 0;
    for (float v : x) sum += std::exp(static_cast<double>(v) - peak);
    const auto token = static_cast<size_t>((*row.continuation)[t]);
    result.push_back(static_cast<float>(static_cast<double>(x[token]) - peak - std::log(sum)));
    if (!std::isnan(result.back())) continue;
    return Error{
        ErrorCode::kDriver,
        message({"[score] the logits of token ", t,
                 " of a continuation are NaN; the weights hold NaN or infinity, or this driver "
                 "computes wrong results"})};
  }
  return result;
}

// Of the model's settings, those that say how a text begins. The others would have an input read
// once for each sequence or beam group that it generates.
GenerateOptions scoring_options(const ModelFamily& family) {
  const GenerateOptions made = generation_defaults(family);
  GenerateOptions options;
  options.decoder_start = made.decoder_start;
  options.decoder_prompt = made.decoder_prompt;
  return options;
}

}  // namespace

Result<std::vector<std::vector<float>>> score_continuations(
    const ModelFamily& family, const TensorMap& inputs,
    const std::vector<std::vector<int64_t>>& continuations, const RunPass& run) {
  const ModelFacts& facts = family.facts();
  StepShape shape;
  VKF_ASSIGN(const GenerationInputs read,
             read_generation_inputs(family, inputs, scoring_options(family), shape));
  if (!read.pictures.more.empty()) {
    return unsupported(
        "[score] the inputs hold images, or prompts that see themselves both ways; scores are "
        "computed of text that is read from left to right.");
  }
  VKF_CHECK(check_continuations(continuations, read.prompts.size(), facts.target_vocab));
  std::vector<std::vector<float>> scores(continuations.size());
  for (size_t i = 0; i < continuations.size(); ++i) {
    if (continuations[i].empty()) continue;
    ScoredRow row{read.prompts[i], read.prompts[i].size(), &continuations[i]};
    row.ids.insert(row.ids.end(), continuations[i].begin(), continuations[i].end() - 1);
    const int64_t length = padded_length(facts, static_cast<int64_t>(row.ids.size()));
    VKF_CHECK(check_logits(facts, length, "score"));
    const bool decoder = facts.kind == ModelKind::kDecoder;
    TensorMap source = decoder ? TensorMap() : input_row(inputs, static_cast<int64_t>(i));
    const TensorMap given = pass_inputs(facts, std::move(source), {row.ids}, length);
    VKF_ASSIGN(const TensorMap outputs, run(given));
    VKF_ASSIGN(const std::vector<float> logits, outputs.at("logits").to_floats());
    VKF_ASSIGN(scores[i], log_probabilities(row, logits, facts.target_vocab));
  }
  return scores;
}

}  // namespace vkformer
