// The part of SessionState that gives log-probabilities of continuations.
#include <algorithm>
#include <cmath>

#include "session/session_state.h"

namespace vkformer {
namespace {

constexpr int64_t kRowBucket = 32;  // tokens that lengths are rounded up to
// Logits that one pass hands out at most.
constexpr int64_t kMostLogits = int64_t{1} << 26;

// A prompt with its continuation, but for the last token, which nothing is asked about.
struct ScoredRow {
  std::vector<int64_t> ids;
  size_t prompt = 0;
  const std::vector<int64_t>* continuation = nullptr;
};

Status check_continuations(const std::vector<std::vector<int64_t>>& continuations, size_t inputs,
                           int64_t vocab) {
  if (continuations.size() != inputs) {
    return invalid_argument("[score] there are " + std::to_string(inputs) + " inputs and " +
                            std::to_string(continuations.size()) +
                            " continuations; give one for each input");
  }
  for (const auto& tokens : continuations) {
    for (int64_t token : tokens) {
      if (token >= 0 && token < vocab) continue;
      return invalid_argument("[score] a continuation has the token " + std::to_string(token) +
                              ", but the vocabulary has ids 0 to " + std::to_string(vocab - 1));
    }
  }
  return {};
}

// input_ids and attention_mask (1,T), or those of the decoder, padded on the right.
void add_tokens(const ScoredRow& row, int64_t length, const std::string& prefix,
                TensorMap& inputs) {
  std::vector<int64_t> ids = row.ids;
  ids.resize(static_cast<size_t>(length), row.ids.front());
  std::vector<int64_t> mask(row.ids.size(), 1);
  mask.resize(ids.size(), 0);
  const Shape shape = {1, length};
  inputs[prefix + "input_ids"] = Tensor::from_ints(shape, ids);
  inputs[prefix + "attention_mask"] = Tensor::from_ints(shape, mask);
}

// Row `index` of every input.
TensorMap row_of(const TensorMap& inputs, int64_t index) {
  TensorMap made;
  for (const auto& [name, tensor] : inputs) {
    Tensor row{tensor.dtype, tensor.shape, {}};
    const auto bytes =
        static_cast<int64_t>(tensor.bytes.size()) / std::max<int64_t>(row.shape[0], 1);
    row.shape[0] = 1;
    const auto begin = tensor.bytes.begin() + index * bytes;
    row.bytes.assign(begin, begin + bytes);
    made.emplace(name, std::move(row));
  }
  return made;
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
    return Error{ErrorCode::kDriver,
                 "[score] the logits of token " + std::to_string(t) +
                     " of a continuation are NaN; the weights hold NaN or infinity, or this driver "
                     "computes wrong results"};
  }
  return result;
}

}  // namespace

Result<std::vector<std::vector<float>>> SessionState::score(
    const TensorMap& inputs, const std::vector<std::vector<int64_t>>& continuations) {
  VKF_CHECK(check_idle());
  const ModelFacts& facts = model_->family().facts();
  StepShape shape;
  VKF_ASSIGN(const GenerationInputs read,
             read_generation_inputs(model_->family(), inputs, generation_defaults(), shape));
  VKF_CHECK(check_continuations(continuations, read.prompts.size(), facts.target_vocab));
  std::vector<std::vector<float>> scores(continuations.size());
  for (size_t i = 0; i < continuations.size(); ++i) {
    if (continuations[i].empty()) continue;
    ScoredRow row{read.prompts[i], read.prompts[i].size(), &continuations[i]};
    row.ids.insert(row.ids.end(), continuations[i].begin(), continuations[i].end() - 1);
    const auto tokens = static_cast<int64_t>(row.ids.size());
    const bool exact = facts.prompts == ModelFacts::Prompts::kExact;
    const int64_t rounded = (tokens + kRowBucket - 1) / kRowBucket * kRowBucket;
    const int64_t length = exact ? tokens : std::max(tokens, std::min(rounded, facts.max_target));
    if (length > kMostLogits / facts.target_vocab) {
      return invalid_argument("[score] input " + std::to_string(i) + " has " +
                              std::to_string(tokens) + " tokens with its continuation, but " +
                              std::to_string(facts.target_vocab) + " logits for each of at most " +
                              std::to_string(kMostLogits / facts.target_vocab) +
                              " are kept; score it in shorter pieces");
    }
    const bool decoder = facts.kind == ModelKind::kDecoder;
    TensorMap given = decoder ? TensorMap() : row_of(inputs, static_cast<int64_t>(i));
    add_tokens(row, length, decoder ? "" : "decoder_", given);
    VKF_ASSIGN(const TensorMap outputs, run(given, {}));
    VKF_ASSIGN(const std::vector<float> logits, outputs.at("logits").to_floats());
    VKF_ASSIGN(scores[i], log_probabilities(row, logits, facts.target_vocab));
  }
  return scores;
}

}  // namespace vkformer
