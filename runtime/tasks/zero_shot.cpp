// Texts to labels that the caller names, by a model that says what a text entails.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
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
  if (task.facts().head != HeadKind::kSequence) {
    return unsupported(message({"[zero_shot] a ", task.facts().architecture,
                                " does not classify whole texts. Take a model of natural language "
                                "inference."}));
  }
  VKF_ASSIGN(const InferenceClasses classes, find_classes(task));
  if (labels.empty()) return invalid_argument("[labels] are none; give at least one label.");
  std::vector<std::string> hypotheses;
  for (const std::string& label : labels) {
    VKF_ASSIGN(std::string hypothesis, hypothesis_of(options.hypothesis, label));
    hypotheses.push_back(std::move(hypothesis));
  }
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

}  // namespace vkformer
