// Texts and pictures to labels that the caller names, by a model that says what a text entails, or
// one that compares pictures with texts.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
#include "image/picture_processor.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

constexpr std::string_view kGap = "{}";

// The places of the logits of entailment and of contradiction.
struct InferenceClasses {
  size_t entailment = 0;
  size_t contradiction = 0;
};

char lower_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The first class is contradiction, or the last where the first is entailment, as in transformers.
Result<InferenceClasses> find_classes(const TaskModel& task) {
  const std::vector<std::string>& labels = task.facts().labels;
  for (size_t i = 0; i < labels.size() && labels.size() > 1; ++i) {
    std::string name = labels[i];
    std::transform(name.begin(), name.end(), name.begin(), lower_letter);
    if (name.starts_with("entail")) return InferenceClasses{i, i == 0 ? labels.size() - 1 : 0};
  }
  return unsupported(message(
      {"[id2label] in ", task.config.where(), " has the classes ", name_list(labels),
       ", of which none is named entailment. Take a model of natural language inference, or name "
       "its classes there."}));
}

Result<std::string> hypothesis_of(const std::string& pattern, const std::string& label) {
  std::string text = pattern;
  const size_t gap = text.find(kGap);
  if (gap == std::string::npos || text.find(kGap, gap + kGap.size()) != std::string::npos) {
    return invalid_argument(
        message({"[hypothesis] is '", pattern, "', but must have {} once, where a label is put."}));
  }
  return text.replace(gap, kGap.size(), label);
}

// The labels in their sentence.
Result<std::vector<std::string>> hypotheses_of(const ZeroShotOptions& options,
                                               const std::string& usual,
                                               std::span<const std::string> labels) {
  if (labels.empty()) return invalid_argument("[labels] are none; give at least one label.");
  const std::string& pattern = options.hypothesis.empty() ? usual : options.hypothesis;
  std::vector<std::string> hypotheses;
  for (const std::string& label : labels) {
    VKF_ASSIGN(std::string hypothesis, hypothesis_of(pattern, label));
    hypotheses.push_back(std::move(hypothesis));
  }
  return hypotheses;
}

// What fills up texts: the tokenizer's padding, or else the configuration's.
Result<int64_t> padding_id(const TaskModel& task) {
  VKF_ASSIGN(const std::string text, special_token(task.tokenizer_config, "pad_token"));
  if (!text.empty()) {
    if (const auto id = task.tokenizer->token_to_id(text)) return *id;
    return invalid_file(message({"[pad_token] in ", task.tokenizer_config.where(), " is '", text,
                                 "', which the tokenizer does not have"}));
  }
  return task.config.object("text_config").get_int_or("pad_token_id", 1);
}

// Of texts that are compared with pictures. A SigLIP was trained on texts that padding fills up,
// and reads the last token.
Result<TensorMap> label_inputs(const TaskModel& task, const std::vector<Encoding>& encodings) {
  std::vector<size_t> places(encodings.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (task.facts().similarity == ModelFacts::Similarity::kSoftmax) {
    return token_inputs(task, encodings, places);
  }
  VKF_ASSIGN(const int64_t pad, padding_id(task));
  const auto tokens = static_cast<size_t>(task.facts().max_source);
  std::vector<int64_t> ids(encodings.size() * tokens, pad);
  for (size_t row = 0; row < encodings.size(); ++row) {
    std::copy(encodings[row].ids.begin(), encodings[row].ids.end(),
              ids.begin() + static_cast<std::ptrdiff_t>(row * tokens));
  }
  const Shape shape = {static_cast<int64_t>(encodings.size()), task.facts().max_source};
  return TensorMap{{"input_ids", Tensor::from_ints(shape, ids)}};
}

// Of one picture's logits.
std::vector<double> picture_probabilities(const TaskModel& task, std::span<const float> logits) {
  if (task.facts().similarity == ModelFacts::Similarity::kSoftmax) return softmax_of(logits);
  std::vector<double> scores;
  for (const float logit : logits) scores.push_back(1.0 / (1.0 + std::exp(-double{logit})));
  return scores;
}

std::vector<double> label_probabilities(std::span<const std::vector<float>> rows,
                                        const InferenceClasses& classes, bool multi_label) {
  std::vector<float> entailed;
  for (const std::vector<float>& row : rows) entailed.push_back(row[classes.entailment]);
  if (!multi_label && rows.size() > 1) return softmax_of(entailed);
  std::vector<double> scores;
  for (const std::vector<float>& row : rows) {
    const std::array<float, 2> pair = {row[classes.contradiction], row[classes.entailment]};
    scores.push_back(softmax_of(pair)[1]);
  }
  return scores;
}

}  // namespace

Result<std::vector<std::vector<LabelScore>>> zero_shot_labels(TaskModel& task,
                                                              std::span<const std::string> texts,
                                                              std::span<const std::string> labels,
                                                              const ZeroShotOptions& options) {
  if (task.facts().head == HeadKind::kEntities) {
    return unsupported(
        message({"[zero_shot] a ", task.facts().architecture,
                 " finds entities; ask TextClassifier::zero_shot_entities for them."}));
  }
  if (task.facts().head != HeadKind::kSequence) {
    return unsupported(message({"[zero_shot] a ", task.facts().architecture,
                                " does not classify whole texts. Take a model of natural language "
                                "inference."}));
  }
  VKF_ASSIGN(const InferenceClasses classes, find_classes(task));
  VKF_ASSIGN(const std::vector<std::string> hypotheses,
             hypotheses_of(options, "This example is {}.", labels));
  std::vector<Encoding> encodings;
  for (size_t i = 0; i < texts.size(); ++i) {
    for (const std::string& hypothesis : hypotheses) {
      VKF_ASSIGN(Encoding encoding,
                 encode_task_pair(task, texts[i], hypothesis, i, TruncationStrategy::kOnlyFirst));
      encodings.push_back(std::move(encoding));
    }
  }
  VKF_ASSIGN(const auto logits, sequence_logits(task, encodings));
  std::vector<std::vector<LabelScore>> found(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto rows = std::span(logits).subspan(i * labels.size(), labels.size());
    const std::vector<double> scores = label_probabilities(rows, classes, options.multi_label);
    for (const size_t k : largest(scores, 0)) found[i].push_back({labels[k], scores[k]});
  }
  return found;
}

Result<std::vector<std::vector<LabelScore>>> zero_shot_pictures(TaskModel& task,
                                                                std::span<const Picture> pictures,
                                                                std::span<const std::string> labels,
                                                                const ZeroShotOptions& options) {
  const ModelFacts& facts = task.facts();
  if (facts.head != HeadKind::kSimilarity) {
    return unsupported(
        message({"[zero_shot] a ", facts.architecture,
                 " does not compare pictures with texts. Take a CLIP or a SigLIP."}));
  }
  if (options.multi_label && facts.similarity == ModelFacts::Similarity::kSoftmax) {
    return invalid_argument(
        message({"[multi_label] is true, but probabilities of a ", facts.architecture,
                 " sum to 1 over the labels. Leave it out, or take a SigLIP."}));
  }
  VKF_ASSIGN(const std::vector<std::string> hypotheses,
             hypotheses_of(options, "This is a photo of {}.", labels));
  VKF_ASSIGN(const std::vector<Encoding> encodings,
             encode_task_texts(task, hypotheses, task.token_limit()));
  VKF_ASSIGN(const TensorMap texts, label_inputs(task, encodings));
  // Pictures that come to different sizes run one by one.
  const size_t batch = keeps_proportions(task.pictures->settings()) ? 1 : task.batch;
  std::vector<std::vector<LabelScore>> found;
  for (size_t begin = 0; begin < pictures.size(); begin += batch) {
    const size_t count = std::min(batch, pictures.size() - begin);
    TensorMap inputs = texts;
    VKF_ASSIGN(inputs["pixel_values"], task.pictures->process(pictures.subspan(begin, count)));
    VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits_per_image"));
    for (size_t row = 0; row < count; ++row) {
      const std::vector<double> scores = picture_probabilities(task, logits.row(row));
      std::vector<LabelScore>& best = found.emplace_back();
      for (const size_t k : largest(scores, 0)) best.push_back({labels[k], scores[k]});
    }
  }
  return found;
}

}  // namespace vkformer
