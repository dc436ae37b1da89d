// Texts to vectors.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

// Tokens of one row: the real ones, from the first of them that the mean takes on.
struct PooledTokens {
  size_t begin = 0, end = 0;
};

// The vector of the real states of one row, (S,D) -> (D).
std::vector<float> pool(std::span<const float> states, size_t width, PooledTokens tokens,
                        Pooling pooling) {
  std::vector<float> vector(width);
  if (pooling == Pooling::kFirst) tokens = {0, 1};
  if (pooling == Pooling::kLast) tokens.begin = tokens.end - 1;
  const size_t count = tokens.end - tokens.begin;
  for (size_t d = 0; d < width; ++d) {
    double sum = 0;
    for (size_t t = tokens.begin; t < tokens.end; ++t)
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

// The first `count` values, which have length 1 again if all had.
void truncate(std::vector<float>& vector, int count, bool unit) {
  if (count == 0) return;
  vector.resize(static_cast<size_t>(count));
  if (unit) make_unit(vector);
}

Status check_dimensions(const EmbedOptions& options, size_t width) {
  const auto count = options.dimensions == 0 ? static_cast<int64_t>(width) : options.dimensions;
  if (count < 1 || count > static_cast<int64_t>(width)) {
    return invalid_argument(
        message({"[dimensions] is ", count, ", but this model's vectors have 1 to ", width,
                 " values that can be taken; 0 takes all."}));
  }
  if (options.values == VectorValues::kBinary && count % 8 != 0) {
    return invalid_argument(message({"[values] is binary, but ", count,
                                     " values do not fill bytes of 8; give dimensions a multiple "
                                     "of 8."}));
  }
  return {};
}

// A vector as multiples of its largest magnitude / 127. Halves go to the even neighbor.
void append_int8(const std::vector<float>& vector, std::vector<std::byte>& out) {
  float largest = 0;
  for (const float value : vector) largest = std::max(largest, std::fabs(value));
  for (const float value : vector) {
    const float scaled = largest > 0 ? std::nearbyint(value / largest * 127.0f) : 0.0f;
    out.push_back(static_cast<std::byte>(static_cast<int8_t>(scaled)));
  }
}

void append_signs(const std::vector<float>& vector, std::vector<std::byte>& out) {
  for (size_t first = 0; first < vector.size(); first += 8) {
    unsigned bits = 0;
    for (size_t i = 0; i < 8; ++i) bits = bits << 1 | (vector[first + i] > 0 ? 1u : 0u);
    out.push_back(static_cast<std::byte>(bits));
  }
}

Result<Tensor> tensor_of(const std::vector<std::vector<float>>& vectors, int64_t width,
                         VectorValues values) {
  const auto rows = static_cast<int64_t>(vectors.size());
  if (values == VectorValues::kFloat) {
    std::vector<float> all;
    for (const auto& vector : vectors) all.insert(all.end(), vector.begin(), vector.end());
    return Tensor::from_floats({rows, width}, all);
  }
  const bool signs = values == VectorValues::kBinary;
  Tensor tensor{.dtype = signs ? DType::kU8 : DType::kI8,
                .shape = {rows, signs ? width / 8 : width},
                .bytes = {}};
  for (size_t i = 0; i < vectors.size(); ++i) {
    const std::vector<float>& vector = vectors[i];
    if (!std::all_of(vector.begin(), vector.end(), [](float v) { return std::isfinite(v); })) {
      return unsupported(message({"[values] The vector of text ", i,
                                  " has NaN or an infinity, which only float values can be."}));
    }
    if (signs) {
      append_signs(vector, tensor.bytes);
    } else {
      append_int8(vector, tensor.bytes);
    }
  }
  return tensor;
}

constexpr const char* kPromptFile = "config_sentence_transformers.json";

// The prompt of that name; an error lists those that there are.
Result<std::string> named_prompt(const TaskModel& task, const std::string& name) {
  const JsonConfig prompts = task.sentence_config.object("prompts");
  VKF_CHECK(prompts.status());
  if (prompts.has(name)) return prompts.get_string(name);
  const std::string known = name_list(prompts.keys());
  return invalid_argument(
      message({"[prompt_name] is '", name, "', but ", kPromptFile, " of the model has ",
               (known.empty() ? "no prompts; give the prompt itself." : "the prompts " + known),
               (known.empty() ? "" : ".")}));
}

Result<std::string> prompt_of(const TaskModel& task, const EmbedOptions& options) {
  if (options.prompt && options.prompt_name) {
    return invalid_argument(
        "[prompt] and [prompt_name] were both given; give the prompt or the name of one of the "
        "model's.");
  }
  if (options.prompt) return *options.prompt;
  if (options.prompt_name) return named_prompt(task, *options.prompt_name);
  VKF_ASSIGN(const std::string name, task.sentence_config.get_string_or("default_prompt_name", ""));
  return name.empty() ? std::string() : named_prompt(task, name);
}

// Tokens that a prompt has before a text; a special token that ends it alone is not there.
Result<size_t> prompt_tokens(const TaskModel& task, const std::string& prompt) {
  if (prompt.empty()) return size_t{0};
  const std::string_view text = prompt;
  constexpr int64_t kAny = INT32_MAX;
  VKF_ASSIGN(const Encoding whole, encode_task_text(task, {&text, 1}, 0, kAny));
  const bool ends = whole.offsets.back() == TextRange{0, 0};
  return whole.ids.size() - (ends ? 1 : 0);
}

// 1 for the tokens that are pooled, (B,S).
Tensor pooling_mask(const std::vector<Encoding>& encodings, std::span<const size_t> places,
                    size_t skipped, const Shape& shape) {
  std::vector<int64_t> mask(static_cast<size_t>(shape[0] * shape[1]), 0);
  for (size_t row = 0; row < places.size(); ++row) {
    for (size_t t = skipped; t < encodings[places[row]].ids.size(); ++t) {
      mask[row * static_cast<size_t>(shape[1]) + t] = 1;
    }
  }
  return Tensor::from_ints(shape, mask);
}

}  // namespace

Result<Tensor> embed_texts(TaskModel& task, std::span<const std::string> texts,
                           const EmbedOptions& options) {
  const ModelFacts& facts = task.facts();
  VKF_ASSIGN(const std::string prompt, prompt_of(task, options));
  std::vector<std::string> prompted;
  if (!prompt.empty()) {
    for (const std::string& text : texts) prompted.push_back(prompt + text);
    texts = prompted;
  }
  VKF_ASSIGN(const auto encodings,
             encode_task_texts(task, texts, task.token_limit(task.sentence_tokens)));
  size_t skipped = 0;  // tokens of a prompt that is not pooled
  if (facts.sentence.pools_prompt == SentenceFacts::PoolsPrompt::kNo) {
    VKF_ASSIGN(skipped, prompt_tokens(task, prompt));
  }
  const bool own = options.pooling == Pooling::kModel && facts.sentence.pools();
  const bool unit =
      options.length == EmbedOptions::Length::kUnit || (!own && facts.sentence.normalizes());
  const std::string name = own                                        ? "sentence_embedding"
                           : facts.kind == ModelKind::kEncoderDecoder ? "encoder_last_hidden_state"
                                                                      : "last_hidden_state";
  std::vector<std::vector<float>> vectors(texts.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    TensorMap inputs = token_inputs(task, encodings, places);
    if (own && skipped > 0) {
      const Shape& shape = inputs.at("input_ids").shape;
      inputs["pooling_mask"] = pooling_mask(encodings, places, skipped, shape);
    }
    VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
    VKF_ASSIGN(const TaskOutput states, task_output(outputs, name));
    const auto width = static_cast<size_t>(states.shape.back());
    VKF_CHECK(check_dimensions(options, width));
    for (size_t row = 0; row < places.size(); ++row) {
      const size_t end = encodings[places[row]].ids.size();
      const PooledTokens tokens =
          own ? PooledTokens{0, 1} : PooledTokens{std::min(skipped, end - 1), end};
      std::vector<float>& vector = vectors[places[row]];
      vector = pool(states.row(row), width, tokens, options.pooling);
      if (unit) make_unit(vector);
      truncate(vector, options.dimensions, unit || facts.sentence.normalizes());
    }
    return {};
  };
  const std::vector<size_t> lengths = token_counts(encodings);
  VKF_CHECK(run_batches(lengths, logits_batch(task, lengths), run));
  int64_t width = options.dimensions > 0 ? options.dimensions : facts.width;
  if (!vectors.empty()) width = static_cast<int64_t>(vectors[0].size());
  return tensor_of(vectors, width, options.values);
}

}  // namespace vkformer
