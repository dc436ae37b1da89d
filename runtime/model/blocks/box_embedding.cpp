#include "model/blocks/box_embedding.h"

#include <algorithm>

#include "base/message.h"
#include "model/weight_rows.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "ops/mean_pool.h"

namespace vkformer {
namespace {

constexpr const char* kBoxInput = "bbox";
constexpr int64_t kBoxCorners = 4;
constexpr int64_t kBoxSizes = 2;
constexpr int64_t kMostClampedSize = 1023;  // whatever rows the table has beyond

Result<TensorId> look_up_boxes(ModelBuilder& b, const std::string& row, const std::string& feed,
                               Shape shape) {
  b.graph().set_scope(row);
  VKF_ASSIGN(const TensorId table, b.table(row));
  const TensorId indices = b.graph().add_external(feed, DType::kU32, std::move(shape));
  b.feed(feed, indices);
  return add_gather_rows(b.graph(), {.x = table, .indices = indices});
}

// x + the sum of each token's `parts` (B, S, n, D).
Result<TensorId> add_box_sum(ModelBuilder& b, TensorId x, TensorId parts) {
  Shape& shape = b.graph().tensor(parts).shape;
  const int64_t n = shape[2];
  shape = {shape[0] * shape[1], n, shape[3]};
  VKF_ASSIGN(const TensorId mean, add_mean_pool(b.graph(), parts, kNoTensor, {}));
  b.graph().tensor(mean).shape = b.graph().tensor(x).shape;
  return add_combine(b.graph(), x, mean, {.alpha = 1.0f, .beta = static_cast<float>(n)});
}

// The row of a coordinate or size; an error where the table has none.
Result<uint32_t> box_row(const BoxEmbedding& boxes, const char* what, int64_t value) {
  if (value >= 0 && value < boxes.positions) return static_cast<uint32_t>(value);
  return invalid_argument(message({"[", kBoxInput, "] has a box whose ", what, " is ", value,
                                   ", but this model knows 0 to ", boxes.positions - 1,
                                   "; scale pages to that range."}));
}

Result<uint32_t> box_size_row(const BoxEmbedding& boxes, const char* what, int64_t value) {
  if (boxes.sizes == BoxEmbedding::Sizes::kClamp) {
    return static_cast<uint32_t>(
        std::clamp<int64_t>(value, 0, std::min(boxes.positions - 1, kMostClampedSize)));
  }
  return box_row(boxes, what, value);
}

}  // namespace

void add_box_rows(const BoxEmbedding& boxes, const std::string& prefix, WeightTable& table) {
  const auto named = [&](const char* which) {
    return prefix + which + "_position_embeddings.weight";
  };
  const int64_t rows = boxes.positions;
  table.rows.push_back(
      table_row("boxes.corners", {named("x"), named("y")}, {rows, rows}, boxes.corner_width));
  table.rows.push_back(
      table_row("boxes.sizes", {named("h"), named("w")}, {rows, rows}, boxes.size_width));
}

Status read_boxes(const BoxEmbedding& boxes, const TensorMap& inputs, ForwardInputs& result) {
  const auto tokens = static_cast<size_t>(result.shape.batch * result.shape.source);
  std::vector<int64_t> given(kBoxCorners * tokens, 0);
  const auto found = inputs.find(kBoxInput);
  if (found != inputs.end()) {
    const Shape wanted = {result.shape.batch, result.shape.source, kBoxCorners};
    if (found->second.shape != wanted) {
      return invalid_argument(
          message({"[", kBoxInput, "] has shape ", shape_text(found->second.shape),
                   ", but the token ids need ", shape_text(wanted), "."}));
    }
    VKF_ASSIGN(given, found->second.to_ints());
  }
  const auto second = static_cast<uint32_t>(boxes.positions);  // the first row of y's, of widths
  std::vector<uint32_t>& corners = result.words["box_corners"];
  std::vector<uint32_t>& sizes = result.words["box_sizes"];
  for (size_t t = 0; t < tokens; ++t) {
    const int64_t* box = given.data() + kBoxCorners * t;
    constexpr const char* kEdges[] = {"left", "top", "right", "bottom"};
    for (size_t i = 0; i < kBoxCorners; ++i) {
      VKF_ASSIGN(const uint32_t row, box_row(boxes, kEdges[i], box[i]));
      corners.push_back(row + (i % 2 == 0 ? 0 : second));
    }
    VKF_ASSIGN(const uint32_t height, box_size_row(boxes, "height", box[3] - box[1]));
    VKF_ASSIGN(const uint32_t width, box_size_row(boxes, "width", box[2] - box[0]));
    sizes.insert(sizes.end(), {height, width + second});
  }
  return {};
}

Result<BoxParts> add_box_lookups(ModelBuilder& b, int64_t batch, int64_t tokens) {
  BoxParts parts;
  VKF_ASSIGN(parts.corners,
             look_up_boxes(b, "boxes.corners", "box_corners", {batch, tokens, kBoxCorners}));
  VKF_ASSIGN(parts.sizes, look_up_boxes(b, "boxes.sizes", "box_sizes", {batch, tokens, kBoxSizes}));
  return parts;
}

Result<TensorId> add_boxes(ModelBuilder& b, TensorId x) {
  const Shape shape = b.graph().tensor(x).shape;
  VKF_ASSIGN(const BoxParts parts, add_box_lookups(b, shape[0], shape[1]));
  VKF_ASSIGN(x, add_box_sum(b, x, parts.corners));
  return add_box_sum(b, x, parts.sizes);
}

}  // namespace vkformer
