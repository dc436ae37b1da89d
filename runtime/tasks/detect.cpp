// Pictures to objects with boxes, as Hugging Face's post_process_object_detection computes them.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

Status check_detect_options(const DetectOptions& options) {
  if (!(options.threshold >= 0 && options.threshold <= 1)) {
    return invalid_argument(message(
        {"[threshold] is ", std::to_string(options.threshold), "; a probability is 0 to 1."}));
  }
  if (options.top >= 0) return {};
  return invalid_argument(
      message({"[top] is ", options.top, "; give a number of objects, or 0 for all."}));
}

Detection detection_of(const TaskModel& task, size_t label, double score,
                       std::span<const float> box, const Picture& picture) {
  const double width = picture.width();
  const double height = picture.height();
  return {.label = label_name(task, label),
          .score = score,
          .left = (box[0] - 0.5 * box[2]) * width,
          .top = (box[1] - 0.5 * box[3]) * height,
          .right = (box[0] + 0.5 * box[2]) * width,
          .bottom = (box[1] + 0.5 * box[3]) * height};
}

// An object of a query.
struct ScoredClass {
  size_t query = 0;
  size_t label = 0;
  double score = 0;
};

// The likeliest class of every query; the last one stands for none.
std::vector<ScoredClass> likeliest_classes(std::span<const float> logits, size_t queries,
                                           size_t classes) {
  std::vector<ScoredClass> found;
  for (size_t q = 0; q < queries; ++q) {
    std::vector<double> scores = softmax_of(logits.subspan(q * classes, classes));
    scores.pop_back();
    const size_t best = largest(scores, 1)[0];
    found.push_back({q, best, scores[best]});
  }
  return found;
}

// Of all classes of all queries, each with its own score, as many as there are queries.
std::vector<ScoredClass> classes_by_score(std::span<const float> logits, size_t queries,
                                          size_t classes) {
  std::vector<double> scores;
  for (const float logit : logits) scores.push_back(1.0 / (1.0 + std::exp(-double{logit})));
  std::vector<ScoredClass> found;
  for (const size_t at : largest(scores, queries)) {
    found.push_back({at / classes, at % classes, scores[at]});
  }
  return found;
}

Result<std::vector<Detection>> detect_in(TaskModel& task, const Picture& picture,
                                         const DetectOptions& options) {
  TensorMap inputs;
  VKF_ASSIGN(inputs["pixel_values"], task.pictures->process({&picture, 1}));
  VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
  VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
  VKF_ASSIGN(const TaskOutput boxes, task_output(outputs, "pred_boxes"));
  const auto queries = static_cast<size_t>(logits.shape[1]);
  const auto classes = static_cast<size_t>(logits.shape[2]);
  const std::span<const float> all(logits.values);
  const std::span<const float> places(boxes.values);
  const bool own_scores = task.facts().objects == ModelFacts::Objects::kSigmoid;
  std::vector<Detection> found;
  for (const ScoredClass& one : own_scores ? classes_by_score(all, queries, classes)
                                           : likeliest_classes(all, queries, classes)) {
    if (!(one.score > options.threshold)) continue;
    found.push_back(
        detection_of(task, one.label, one.score, places.subspan(4 * one.query, 4), picture));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  if (options.top > 0 && found.size() > static_cast<size_t>(options.top)) {
    found.resize(static_cast<size_t>(options.top));
  }
  return found;
}

}  // namespace

Result<std::vector<std::vector<Detection>>> detect_objects(TaskModel& task,
                                                           std::span<const Picture> pictures,
                                                           const DetectOptions& options) {
  VKF_CHECK(check_detect_options(options));
  std::vector<std::vector<Detection>> found;
  for (const Picture& picture : pictures) {
    VKF_ASSIGN(std::vector<Detection> objects, detect_in(task, picture, options));
    found.push_back(std::move(objects));
  }
  return found;
}

}  // namespace vkformer
