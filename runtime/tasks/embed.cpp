// Texts to vectors.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

// The vector of `tokens` real states of one row, (S,D) -> (D).
std::vector<float> pool(std::span<const float> states, size_t width, size_t tokens,
                        Pooling pooling) {
  std::vector<float> vector(width);
  const size_t first = pooling == Pooling::kLast ? tokens - 1 : 0;
  const size_t count = pooling == Pooling::kFirst || pooling == Pooling::kLast ? 1 : tokens;
  for (size_t d = 0; d < width; ++d) {
    double sum = 0;
    for (size_t t = first; t < first + count; ++t)
      sum += static_cast<double>(states[t * width + d]);
    vector[d] = static_cast<float>(sum / static_cast<double>(count));
  }
  return vector;
}

void make_unit(std::vector<float>& vector) {
  double sum = 0;
  for (float value : vector) sum += static_cast<double>(value) * static_cast<double>(value);
  const double length = std::max(std::sqrt(sum), 1e-12);
  for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / length);
}

}  // namespace

Result<Tensor> embed_texts(TaskModel& task, std::span<const std::string> texts,
                           const EmbedOptions& options) {
  const ModelFacts& facts = task.facts();
  VKF_ASSIGN(const auto encodings,
             encode_task_texts(task, texts, task.token_limit(task.sentence_tokens)));
  const bool own =
      options.pooling == Pooling::kModel && facts.sentence.pooling != SentenceFacts::Pooling::kNone;
  const bool unit = options.length == EmbedOptions::Length::kUnit ||
                    (!own && facts.sentence.normalize == SentenceFacts::Normalize::kYes);
  const std::string name = own                                        ? "sentence_embedding"
                           : facts.kind == ModelKind::kEncoderDecoder ? "encoder_last_hidden_state"
                                                                      : "last_hidden_state";
  std::vector<std::vector<float>> vectors(texts.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    VKF_ASSIGN(const TensorMap outputs,
               task.session->run(token_inputs(task, encodings, places), {}));
    VKF_ASSIGN(const TaskOutput states, task_output(outputs, name));
    const auto width = static_cast<size_t>(states.shape.back());
    for (size_t row = 0; row < places.size(); ++row) {
      const size_t tokens = own ? 1 : encodings[places[row]].ids.size();
      std::vector<float>& vector = vectors[places[row]];
      vector = pool(states.row(row), width, tokens, options.pooling);
      if (unit) make_unit(vector);
    }
    return {};
  };
  const std::vector<size_t> lengths = token_counts(encodings);
  VKF_CHECK(run_batches(lengths, logits_batch(task, lengths), run));
  std::vector<float> values;
  for (const auto& vector : vectors) values.insert(values.end(), vector.begin(), vector.end());
  const int64_t width = texts.empty() ? facts.width : static_cast<int64_t>(vectors[0].size());
  return Tensor::from_floats({static_cast<int64_t>(texts.size()), width}, values);
}

}  // namespace vkformer
