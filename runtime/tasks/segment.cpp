// Points and boxes to masks, as Hugging Face's SamProcessor prepares and finishes them.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "image/picture_processor.h"
#include "model/blocks/resized_positions.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

constexpr int64_t kPaddedPoint = -10;  // the label of a point that does not count
constexpr size_t kMostMaskPrompts = 1 << 16;

Status check_prompts(std::span<const MaskPrompt> prompts, const SegmentOptions& options) {
  if (options.top < 0) {
    return invalid_argument(
        message({"[top] is ", options.top, "; give a number of masks, or 0 for all."}));
  }
  if (prompts.empty() || prompts.size() > kMostMaskPrompts) {
    return invalid_argument(
        message({"There are ", prompts.size(), " [prompts]; give 1 to ", kMostMaskPrompts, "."}));
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    const MaskPrompt& prompt = prompts[i];
    if (prompt.points.empty() && !prompt.box) {
      return invalid_argument(
          message({"[prompts] number ", i, " has neither a point nor a box; give one of them."}));
    }
    if (prompt.box.has_value() != prompts[0].box.has_value()) {
      return invalid_argument(
          message({"[prompts] number ", i, " ", (prompt.box ? "has a box" : "has no box"),
                   ", unlike the first; segment those with boxes apart."}));
    }
    bool finite = true;
    for (const PromptPoint& point : prompt.points) {
      finite = finite && std::isfinite(point.x) && std::isfinite(point.y);
    }
    if (prompt.box) {
      for (const double side :
           {prompt.box->left, prompt.box->top, prompt.box->right, prompt.box->bottom}) {
        finite = finite && std::isfinite(side);
      }
    }
    if (finite) continue;
    return invalid_argument(
        message({"[prompts] number ", i, " has a coordinate that is not finite; give pixels."}));
  }
  return {};
}

// input_points (1, P, n, 2) and input_labels (1, P, n), input_boxes (1, P, 4), where there are
// such.
void add_prompt_inputs(std::span<const MaskPrompt> prompts, double across, double down,
                       TensorMap& inputs) {
  size_t most = 0;
  for (const MaskPrompt& prompt : prompts) most = std::max(most, prompt.points.size());
  const auto count = static_cast<int64_t>(prompts.size());
  if (most > 0) {
    std::vector<float> places;
    std::vector<int64_t> labels;
    for (const MaskPrompt& prompt : prompts) {
      for (const PromptPoint& point : prompt.points) {
        places.push_back(static_cast<float>(point.x * across));
        places.push_back(static_cast<float>(point.y * down));
        labels.push_back(point.side == PromptPoint::Side::kInside ? 1 : 0);
      }
      for (size_t i = prompt.points.size(); i < most; ++i) {
        places.insert(places.end(), 2, static_cast<float>(kPaddedPoint));
        labels.push_back(kPaddedPoint);
      }
    }
    const auto points = static_cast<int64_t>(most);
    inputs["input_points"] = Tensor::from_floats({1, count, points, 2}, places);
    inputs["input_labels"] = Tensor::from_ints({1, count, points}, labels);
  }
  if (!prompts[0].box) return;
  std::vector<float> boxes;
  for (const MaskPrompt& prompt : prompts) {
    const PromptBox& box = *prompt.box;
    boxes.push_back(static_cast<float>(box.left * across));
    boxes.push_back(static_cast<float>(box.top * down));
    boxes.push_back(static_cast<float>(box.right * across));
    boxes.push_back(static_cast<float>(box.bottom * down));
  }
  inputs["input_boxes"] = Tensor::from_floats({1, count, 4}, boxes);
}

// The logits of a mask: to the size that the model reads, without what is padded there, and to the
// picture's size.
PictureMask mask_of(std::span<const float> logits, const GridSize& from,
                    const PictureSettings& settings, const Picture& picture) {
  const GridSize padded = {settings.height, settings.width};
  const std::vector<float> large =
      resized_positions(logits, from, padded, 1, PositionFilter::kBilinear);
  const PictureSize seen = resized_size({picture.width(), picture.height()}, settings);
  std::vector<float> cropped;
  for (int64_t row = 0; row < seen.height; ++row) {
    const auto begin = large.begin() + row * padded.width;
    cropped.insert(cropped.end(), begin, begin + seen.width);
  }
  const std::vector<float> own =
      resized_positions(cropped, {seen.height, seen.width}, {picture.height(), picture.width()}, 1,
                        PositionFilter::kBilinear);
  PictureMask mask{.width = picture.width(), .height = picture.height()};
  mask.inside.reserve(own.size());
  for (const float value : own) mask.inside.push_back(value > 0.0f ? 1 : 0);
  return mask;
}

}  // namespace

Result<std::vector<std::vector<PictureMask>>> segment_picture(TaskModel& task,
                                                              const Picture& picture,
                                                              std::span<const MaskPrompt> prompts,
                                                              const SegmentOptions& options) {
  VKF_CHECK(check_prompts(prompts, options));
  const PictureSettings& settings = task.pictures->settings();
  if (settings.fit != PictureFit::kLongestEdge) {
    return unsupported(
        "[preprocessor_config.json] is not that of a SamImageProcessor, which pads pictures; take "
        "the model's own.");
  }
  const PictureSize seen = resized_size({picture.width(), picture.height()}, settings);
  TensorMap inputs;
  VKF_ASSIGN(inputs["pixel_values"], task.pictures->process({&picture, 1}));
  add_prompt_inputs(prompts, static_cast<double>(seen.width) / picture.width(),
                    static_cast<double>(seen.height) / picture.height(), inputs);
  VKF_ASSIGN(const TensorMap outputs, task.session->run(inputs, {}));
  VKF_ASSIGN(const TaskOutput masks, task_output(outputs, "pred_masks"));
  VKF_ASSIGN(const TaskOutput scores, task_output(outputs, "iou_scores"));
  const auto each = static_cast<size_t>(masks.shape[2]);
  const GridSize grid = {masks.shape[3], masks.shape[4]};
  const auto area = static_cast<size_t>(grid.count());
  const std::span<const float> all(masks.values);
  std::vector<std::vector<PictureMask>> found(prompts.size());
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto first = scores.values.begin() + static_cast<ptrdiff_t>(p * each);
    const std::vector<double> own(first, first + static_cast<ptrdiff_t>(each));
    const size_t wanted = options.top == 0 ? each : static_cast<size_t>(options.top);
    for (const size_t m : largest(own, std::min(wanted, each))) {
      PictureMask mask = mask_of(all.subspan((p * each + m) * area, area), grid, settings, picture);
      mask.score = own[m];
      found[p].push_back(std::move(mask));
    }
  }
  return found;
}

}  // namespace vkformer
