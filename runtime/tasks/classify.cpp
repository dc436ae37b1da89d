// Texts and pictures to labels, and texts to entities.
#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

// A token's class, as Hugging Face's token-classification pipeline groups them ("simple").
struct TokenLabel {
  std::string label;  // without B- or I-
  bool begins = false;
  double score = 0;
  TextRange range;
};

TokenLabel token_label(const TaskModel& task, std::span<const float> logits, TextRange range) {
  const std::vector<double> scores = softmax_of(logits);
  const size_t best = largest(scores, 1)[0];
  TokenLabel token{label_name(task, best), false, scores[best], range};
  token.begins = token.label.starts_with("B-");
  if (token.begins || token.label.starts_with("I-")) token.label.erase(0, 2);
  return token;
}

std::vector<Entity> group_tokens(const std::vector<TokenLabel>& tokens, const std::string& text) {
  std::vector<Entity> entities;
  for (size_t i = 0; i < tokens.size();) {
    double sum = 0;
    size_t end = i;
    do {
      sum += tokens[end++].score;
    } while (end < tokens.size() && tokens[end].label == tokens[i].label && !tokens[end].begins);
    if (tokens[i].label != "O") {
      const TextRange range = {tokens[i].range.begin, tokens[end - 1].range.end};
      entities.push_back(
          {tokens[i].label, sum / static_cast<double>(end - i), text_slice(text, range), range});
    }
    i = end;
  }
  return entities;
}

Status check_head(const TaskModel& task, HeadKind head, const char* use) {
  if (task.facts().head == head) return {};
  if (task.facts().head == HeadKind::kEntities) {
    return unsupported(message({"[classify] a ", task.facts().architecture,
                                " finds entities of labels that you name; ask "
                                "TextClassifier::zero_shot_entities for them, or name some with "
                                "--label."}));
  }
  return unsupported(message({"[classify] a ", task.facts().architecture, " does not ", use}));
}

}  // namespace

Result<std::vector<std::vector<LabelScore>>> classify_texts(TaskModel& task,
                                                            std::span<const ClassifyInput> inputs,
                                                            int top) {
  VKF_CHECK(check_head(task, HeadKind::kSequence,
                       "classify whole texts; ask TextClassifier::entities for the entities that "
                       "it finds in them"));
  std::vector<Encoding> encodings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string_view texts[] = {inputs[i].text, ""};
    if (inputs[i].pair) texts[1] = *inputs[i].pair;
    const std::span<const std::string_view> given(texts, inputs[i].pair ? 2 : 1);
    VKF_ASSIGN(Encoding encoding, encode_task_text(task, given, i, task.token_limit()));
    encodings.push_back(std::move(encoding));
  }
  VKF_ASSIGN(const auto logits, sequence_logits(task, encodings));
  std::vector<std::vector<LabelScore>> labels(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    VKF_ASSIGN(labels[i], label_scores(task, logits[i], top));
  }
  return labels;
}

Result<std::vector<std::vector<float>>> sequence_logits(TaskModel& task,
                                                        const std::vector<Encoding>& encodings) {
  std::vector<std::vector<float>> rows(encodings.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    VKF_ASSIGN(const TensorMap outputs,
               task.session->run(token_inputs(task, encodings, places), {}));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
    for (size_t row = 0; row < places.size(); ++row) {
      const std::span<const float> values = logits.row(row);
      rows[places[row]].assign(values.begin(), values.end());
    }
    return {};
  };
  VKF_CHECK(run_batches(token_counts(encodings), task.batch, run));
  return rows;
}

Result<std::vector<std::vector<Entity>>> find_entities(TaskModel& task,
                                                       std::span<const std::string> texts) {
  VKF_CHECK(check_head(task, HeadKind::kTokens,
                       "label tokens; ask TextClassifier::classify for the label of a text"));
  VKF_ASSIGN(const auto encodings, encode_task_texts(task, texts, task.token_limit()));
  std::vector<std::vector<Entity>> entities(texts.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    VKF_ASSIGN(const TensorMap outputs,
               task.session->run(token_inputs(task, encodings, places), {}));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
    const auto classes = static_cast<size_t>(logits.shape.back());
    for (size_t row = 0; row < places.size(); ++row) {
      const Encoding& encoding = encodings[places[row]];
      std::vector<TokenLabel> tokens;
      for (size_t i = 0; i < encoding.ids.size(); ++i) {
        const TextRange range = encoding.offsets[i];
        if (range.begin == range.end) continue;  // added by the tokenizer
        tokens.push_back(token_label(task, logits.row(row).subspan(i * classes, classes), range));
      }
      entities[places[row]] = group_tokens(tokens, texts[places[row]]);
    }
    return {};
  };
  VKF_CHECK(run_batches(token_counts(encodings), task.batch, run));
  return entities;
}

Result<std::vector<std::vector<LabelScore>>> classify_pictures(TaskModel& task,
                                                               std::span<const Picture> pictures,
                                                               int top) {
  if (task.facts().head == HeadKind::kSimilarity) {
    return unsupported(message({"[classify] a ", task.facts().architecture,
                                " has no classes. Name some: zero_shot, or --label."}));
  }
  std::vector<std::vector<LabelScore>> labels;
  for (size_t begin = 0; begin < pictures.size(); begin += task.batch) {
    const size_t count = std::min(task.batch, pictures.size() - begin);
    TensorMap inputs;
    VKF_ASSIGN(inputs["pixel_values"], task.pictures->process(pictures.subspan(begin, count)));
    VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
    for (size_t row = 0; row < count; ++row) {
      VKF_ASSIGN(auto scores, label_scores(task, logits.row(row), top));
      labels.push_back(std::move(scores));
    }
  }
  return labels;
}

}  // namespace vkformer
