#include "model/sam_prompts.h"

#include <cmath>
#include <numbers>

#include "base/message.h"
#include "model/weight_rows.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostPromptTokens = int64_t{1} << 20;  // of a pass
constexpr int64_t kOutside = 0;
constexpr int64_t kInside = 1;
constexpr int64_t kNoPoint = -1;
constexpr int64_t kPadding = -10;

}  // namespace

struct SamPrompts::Points {
  int64_t prompts = 0;
  int64_t points = 0;  // of a prompt
  std::vector<float> places;
  std::vector<int64_t> labels;
};

Status SamPrompts::prepare(const Checkpoint& checkpoint) {
  const int64_t d = c_.width;
  const std::string shared = "shared_image_embedding.positional_embedding";
  const std::string own = "prompt_encoder.shared_embedding.positional_embedding";
  VKF_ASSIGN(frequencies_,
             read_floats(checkpoint, first_present(checkpoint, {own, shared}), {2, d / 2}));
  VKF_ASSIGN(first_, read_floats(checkpoint, "mask_decoder.iou_token.weight", {1, d}));
  VKF_ASSIGN(const std::vector<float> masks,
             read_floats(checkpoint, "mask_decoder.mask_tokens.weight", {c_.mask_tokens, d}));
  first_.insert(first_.end(), masks.begin(), masks.end());
  labels_.clear();
  for (int64_t i = 0; i < 4; ++i) {
    VKF_ASSIGN(std::vector<float> label,
               read_floats(checkpoint,
                           "prompt_encoder.point_embed." + std::to_string(i) + ".weight", {1, d}));
    labels_.push_back(std::move(label));
  }
  VKF_ASSIGN(no_point_, read_floats(checkpoint, "prompt_encoder.not_a_point_embed.weight", {1, d}));
  VKF_ASSIGN(no_mask_, read_floats(checkpoint, "prompt_encoder.no_mask_embed.weight", {1, d}));
  return {};
}

void SamPrompts::add_features(double x, double y, std::vector<float>& values) const {
  const size_t half = frequencies_.size() / 2;
  std::vector<double> angles;
  for (size_t i = 0; i < half; ++i) {
    const double turns =
        (2.0 * x - 1.0) * frequencies_[i] + (2.0 * y - 1.0) * frequencies_[half + i];
    angles.push_back(2.0 * std::numbers::pi * turns);
  }
  for (const double angle : angles) values.push_back(static_cast<float>(std::sin(angle)));
  for (const double angle : angles) values.push_back(static_cast<float>(std::cos(angle)));
}

std::vector<float> SamPrompts::positions() const {
  std::vector<float> values;
  const auto side = static_cast<double>(c_.grid);
  for (int64_t p = 0; p < c_.grid * c_.grid; ++p) {
    const auto row = static_cast<double>(p / c_.grid), column = static_cast<double>(p % c_.grid);
    add_features((column + 0.5) / side, (row + 0.5) / side, values);
  }
  return values;
}

Result<SamPrompts::Points> SamPrompts::read_points(const TensorMap& inputs, int64_t batch) const {
  Points points;
  const auto found = inputs.find("input_points");
  const auto labels = inputs.find("input_labels");
  if (found == inputs.end()) {
    if (labels == inputs.end()) return points;
    return invalid_argument(
        "[input_labels] was given without input_points, whose labels they are; give both or "
        "neither.");
  }
  const Shape& shape = found->second.shape;
  const bool fits =
      shape.size() == 4 && shape[0] == batch && shape[1] >= 1 && shape[2] >= 1 && shape[3] == 2;
  if (!fits) {
    return invalid_argument(
        message({"[input_points] has shape ", shape_text(shape), ", but must be (", batch,
                 ", P, n, 2): x and y of n points of "
                 "each of P masks."}));
  }
  points.prompts = shape[1];
  points.points = shape[2];
  VKF_ASSIGN(points.places, found->second.to_floats());
  points.labels.assign(points.places.size() / 2, kInside);
  if (labels != inputs.end()) {
    const Shape wanted = {batch, shape[1], shape[2]};
    if (labels->second.shape != wanted) {
      return invalid_argument(
          message({"[input_labels] has shape ", shape_text(labels->second.shape),
                   ", but input_points need ", shape_text(wanted), "."}));
    }
    VKF_ASSIGN(points.labels, labels->second.to_ints());
  }
  for (const int64_t label : points.labels) {
    if (label == kInside || label == kOutside || label == kNoPoint || label == kPadding) continue;
    return invalid_argument(
        message({"[input_labels] holds ", label,
                 ", but a label is 1 for a point inside, 0 for one outside, -1 for none and -10 "
                 "for padding."}));
  }
  return points;
}

void SamPrompts::add_point(const Points& points, size_t index, std::vector<float>& values) const {
  const int64_t label = points.labels[index];
  if (label == kNoPoint) {
    values.insert(values.end(), no_point_.begin(), no_point_.end());
    return;
  }
  if (label == kPadding) {
    values.insert(values.end(), static_cast<size_t>(c_.width), 0.0f);
    return;
  }
  const auto side = static_cast<double>(c_.picture);
  const size_t first = values.size();
  add_features((points.places[2 * index] + 0.5) / side, (points.places[2 * index + 1] + 0.5) / side,
               values);
  const std::vector<float>& added = labels_[static_cast<size_t>(label)];
  for (size_t i = 0; i < added.size(); ++i) values[first + i] += added[i];
}

void SamPrompts::add_boxes(const std::vector<float>& boxes, size_t index,
                           std::vector<float>& values) const {
  const auto side = static_cast<double>(c_.picture);
  for (size_t corner = 0; corner < 2; ++corner) {
    const size_t at = 4 * index + 2 * corner;
    const size_t first = values.size();
    add_features((boxes[at] + 0.5) / side, (boxes[at + 1] + 0.5) / side, values);
    const std::vector<float>& added = labels_[2 + corner];
    for (size_t i = 0; i < added.size(); ++i) values[first + i] += added[i];
  }
}

Result<SamPrompts::Tokens> SamPrompts::read(const TensorMap& inputs, int64_t batch) const {
  VKF_ASSIGN(const Points points, read_points(inputs, batch));
  std::vector<float> boxes;
  int64_t box_prompts = 0;
  const auto found = inputs.find("input_boxes");
  if (found != inputs.end()) {
    const Shape& shape = found->second.shape;
    const bool fits = shape.size() == 3 && shape[0] == batch && shape[1] >= 1 && shape[2] == 4 &&
                      (points.prompts == 0 || points.prompts == shape[1]);
    if (!fits) {
      return invalid_argument(
          message({"[input_boxes] has shape ", shape_text(shape), ", but must be (", batch, ", ",
                   (points.prompts == 0 ? std::string("P") : std::to_string(points.prompts)),
                   ", 4): left, top, right and bottom of a box for each mask."}));
    }
    box_prompts = shape[1];
    VKF_ASSIGN(boxes, found->second.to_floats());
  }
  Tokens tokens;
  tokens.prompts = std::max<int64_t>(1, std::max(points.prompts, box_prompts));
  const bool padded = points.prompts > 0 && box_prompts == 0;
  tokens.tokens = 1 + c_.mask_tokens + points.points + (padded ? 1 : 0) + (box_prompts > 0 ? 2 : 0);
  if (batch * tokens.prompts > kMostPromptTokens / tokens.tokens) {
    return invalid_argument(
        message({"[input_points] and [input_boxes] make ", tokens.tokens, " tokens of ",
                 batch * tokens.prompts, " prompts, but a pass takes up to ", kMostPromptTokens,
                 "; give fewer."}));
  }
  for (int64_t i = 0; i < batch * tokens.prompts; ++i) {
    tokens.values.insert(tokens.values.end(), first_.begin(), first_.end());
    for (int64_t p = 0; p < points.points; ++p) {
      add_point(points, static_cast<size_t>(i * points.points + p), tokens.values);
    }
    if (padded) tokens.values.insert(tokens.values.end(), no_point_.begin(), no_point_.end());
    if (box_prompts > 0) add_boxes(boxes, static_cast<size_t>(i), tokens.values);
  }
  return tokens;
}

}  // namespace vkformer
