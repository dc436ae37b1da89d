// Texts to batches of token rows, and outputs to scores.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

// Rows of a pass are rounded up to this many tokens; masked tokens change nothing.
constexpr size_t kLengthStep = 16;

constexpr size_t kMostLogitBytes = 256u << 20;  // that one pass hands out

enum class ScoreKind : uint8_t { kSoftmax, kSigmoid, kRaw };

// Hugging Face's text-classification and image-classification pipelines.
Result<ScoreKind> score_kind(const TaskModel& task, size_t classes) {
  VKF_ASSIGN(const std::string type, task.config.get_string_or("problem_type", ""));
  if (type == "regression") return ScoreKind::kRaw;
  if (type == "multi_label_classification" || classes == 1) return ScoreKind::kSigmoid;
  if (type.empty() || type == "single_label_classification") return ScoreKind::kSoftmax;
  return unsupported(message(
      {"[problem_type] in ", task.config.where(), " is '", type,
       "'; supported are single_label_classification, multi_label_classification and regression"}));
}

}  // namespace

Status run_batches(const std::vector<size_t>& lengths, size_t batch, const BatchRun& run) {
  std::vector<size_t> order;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] < lengths[b]; });
  const std::span<const size_t> all(order);
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    VKF_CHECK(run(all.subspan(begin, std::min(batch, order.size() - begin))));
  }
  return {};
}

namespace {

Result<Encoding> encode_with(const TaskModel& task, std::span<const std::string_view> texts,
                             size_t index, int64_t limit, EncodeOptions options) {
  const std::string name = "[text " + std::to_string(index + 1) + "]";
  if (task.long_text == LongText::kTruncate) {
    options.truncation.mode = TruncationMode::kToLength;
    options.truncation.max_length = static_cast<int32_t>(std::min<int64_t>(limit, INT32_MAX));
  }
  auto encoding = task.tokenizer->encode(texts, options);
  if (!encoding) return encoding.error().with_context(name);
  const size_t tokens = encoding->ids.size();
  if (tokens > static_cast<size_t>(limit)) {
    return invalid_argument(message({name, " has ", tokens, " tokens, but the model takes at most ",
                                     limit, "; shorten it, or ask for truncation"}));
  }
  if (tokens == 0) {
    return invalid_argument(name + " has no tokens; give a text that is not empty");
  }
  return encoding;
}

}  // namespace

Result<Encoding> encode_task_text(const TaskModel& task, std::span<const std::string_view> texts,
                                  size_t index, int64_t limit, SpecialTokens special_tokens) {
  EncodeOptions options;
  options.special_tokens = special_tokens;
  return encode_with(task, texts, index, limit, options);
}

Result<Encoding> encode_task_pair(const TaskModel& task, const std::string& first,
                                  const std::string& second, size_t index,
                                  TruncationStrategy strategy) {
  const std::string_view texts[] = {first, second};
  EncodeOptions options;
  options.truncation.strategy = strategy;
  return encode_with(task, texts, index, task.token_limit(), options);
}

Result<std::vector<Encoding>> encode_task_texts(const TaskModel& task,
                                                std::span<const std::string> texts, int64_t limit) {
  std::vector<Encoding> encodings;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    VKF_ASSIGN(Encoding encoding, encode_task_text(task, {&text, 1}, i, limit));
    encodings.push_back(std::move(encoding));
  }
  return encodings;
}

size_t logits_batch(const TaskModel& task, const std::vector<size_t>& lengths) {
  const ModelFacts& facts = task.facts();
  if (facts.head != HeadKind::kMasked && facts.head != HeadKind::kLanguage) return task.batch;
  size_t longest = kLengthStep;
  for (size_t length : lengths) longest = std::max(longest, length + kLengthStep);
  const int64_t vocab = std::max({int64_t{1}, facts.source_vocab, facts.target_vocab});
  const size_t row_bytes = longest * static_cast<size_t>(vocab) * sizeof(float);
  return std::clamp<size_t>(kMostLogitBytes / row_bytes, 1, task.batch);
}

std::vector<size_t> token_counts(const std::vector<Encoding>& encodings) {
  std::vector<size_t> counts;
  for (const Encoding& encoding : encodings) counts.push_back(encoding.ids.size());
  return counts;
}

TensorMap token_inputs(const TaskModel& task, const std::vector<Encoding>& encodings,
                       std::span<const size_t> places) {
  const ModelFacts& facts = task.facts();
  size_t tokens = 0;
  for (size_t place : places) tokens = std::max(tokens, encodings[place].ids.size());
  tokens = std::min((tokens + kLengthStep - 1) / kLengthStep * kLengthStep,
                    static_cast<size_t>(facts.max_source));
  const int64_t pad = std::clamp<int64_t>(facts.source_tokens.pad, 0, facts.source_vocab - 1);
  std::vector<int64_t> ids(places.size() * tokens, pad);
  std::vector<int64_t> mask(ids.size(), 0);
  std::vector<int64_t> types(ids.size(), 0);
  for (size_t row = 0; row < places.size(); ++row) {
    const Encoding& encoding = encodings[places[row]];
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      ids[row * tokens + i] = encoding.ids[i];
      mask[row * tokens + i] = 1;
      types[row * tokens + i] = encoding.type_ids[i];
    }
  }
  const Shape shape = {static_cast<int64_t>(places.size()), static_cast<int64_t>(tokens)};
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints(shape, ids);
  inputs["attention_mask"] = Tensor::from_ints(shape, mask);
  // A model without token types (RoBERTa) is not told which text of a pair is which.
  if (facts.source_tokens.types > 1) inputs["token_type_ids"] = Tensor::from_ints(shape, types);
  return inputs;
}

std::span<const float> TaskOutput::row(size_t index) const {
  const size_t width = values.size() / static_cast<size_t>(std::max<int64_t>(1, shape[0]));
  return std::span<const float>(values).subspan(index * width, width);
}

Result<TaskOutput> task_output(const TensorMap& outputs, const std::string& name) {
  const auto found = outputs.find(name);
  if (found == outputs.end()) {
    return unsupported(message({"[", name, "] is not among the outputs of this model"}));
  }
  TaskOutput output{{}, found->second.shape};
  VKF_ASSIGN(output.values, found->second.to_floats());
  return output;
}

std::vector<double> softmax_of(std::span<const float> logits) {
  std::vector<double> values(logits.begin(), logits.end());
  if (values.empty()) return values;
  const double most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - most);
  for (double& value : values) value /= sum;
  return values;
}

std::vector<size_t> largest(std::span<const double> values, size_t top) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = top == 0 ? order.size() : std::min(top, order.size());
  // A NaN is smaller than all numbers, so that the order is one.
  const auto key = [&](size_t i) { return std::isnan(values[i]) ? -HUGE_VAL : values[i]; };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), end, order.end(),
                    [&](size_t a, size_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  order.resize(count);
  return order;
}

std::string text_slice(const std::string& text, TextRange range) {
  std::string slice;
  int32_t place = -1;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++place;
    if (place >= range.begin && place < range.end) slice += c;
  }
  return slice;
}

std::string label_name(const TaskModel& task, size_t index) {
  const std::vector<std::string>& labels = task.facts().labels;
  return index < labels.size() ? labels[index] : "LABEL_" + std::to_string(index);
}

Result<std::vector<LabelScore>> label_scores(const TaskModel& task, std::span<const float> logits,
                                             int top) {
  VKF_ASSIGN(const ScoreKind kind, score_kind(task, logits.size()));
  std::vector<double> scores(logits.begin(), logits.end());
  if (kind == ScoreKind::kSoftmax) scores = softmax_of(logits);
  if (kind == ScoreKind::kSigmoid) {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
  }
  std::vector<LabelScore> labels;
  for (size_t i : largest(scores, static_cast<size_t>(std::max(0, top)))) {
    labels.push_back({label_name(task, i), scores[i]});
  }
  return labels;
}

}  // namespace vkformer
