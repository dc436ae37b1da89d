#include "model/blocks/picture_embedding.h"

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/gather_rows.h"
#include "ops/unfold.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostPixels = 1 << 15;    // a side
constexpr int64_t kMostPatchPixels = 1024;  // a side
constexpr int64_t kMostChannels = 4096;

}  // namespace

Result<GridSize> read_grid_size(const JsonConfig& config, const std::string& key, int64_t fallback,
                                int64_t most) {
  VKF_ASSIGN(std::vector<int64_t> sizes, config.get_int_list_or(key, {fallback}));
  bool fits = sizes.size() == 1 || sizes.size() == 2;
  for (int64_t size : sizes) fits = fits && size >= 1 && size <= most;
  if (fits) return GridSize{sizes.front(), sizes.back()};
  return invalid_file(
      message({"[", key, "] in ", config.where(), " is ", shape_text(sizes),
               ", but must be one size or a height and a width, each between 1 and ", most}));
}

Result<PictureEmbedding> read_picture_embedding(const JsonConfig& config, const PictureKeys& keys) {
  PictureEmbedding e{.class_tokens = keys.class_tokens};
  VKF_ASSIGN(e.picture.channels, get_size_or(config, "num_channels", 3, kMostChannels));
  GridSize picture = keys.picture;
  if (config.has(keys.size)) {
    VKF_ASSIGN(picture, read_grid_size(config, keys.size, 0, kMostPixels));
  }
  VKF_ASSIGN(e.patch, read_grid_size(config, "patch_size", keys.patch, kMostPatchPixels));
  e.picture.height = picture.height;
  e.picture.width = picture.width;
  if (e.grid().count() >= 1 && e.tokens() <= kMostPositions) return e;
  return invalid_file(message({"[", keys.size, "] in ", config.where(), " makes ", e.grid().count(),
                               " patches of [patch_size], but there must be between 1 and ",
                               kMostPositions - e.class_tokens}));
}

Result<GridSize> grid_of(const PictureEmbedding& e, const ForwardShape& shape) {
  const GridSize grid = {shape.height / e.patch.height, shape.width / e.patch.width};
  const int64_t most = kMostPositions - e.class_tokens - e.last_tokens;
  if (grid.count() >= 1 && grid.count() <= most) return grid;
  return invalid_argument(
      message({"[pixel_values] of ", shape.height, " x ", shape.width, " pixels make ",
               grid.count(), " patches of ", e.patch.height, " x ", e.patch.width,
               "; give a picture of 1 to ", most, " patches"}));
}

TensorId add_pixel_values(ModelBuilder& b, int64_t channels, const ForwardShape& shape) {
  const std::string name = "pixel_values";
  const TensorId pixels =
      b.graph().add_external(name, DType::kF32, {shape.batch, channels, shape.height, shape.width});
  b.feed(name, pixels);
  return pixels;
}

Result<TensorId> add_patch_conv(ModelBuilder& b, TensorId x, const ConvSource& source,
                                const PatchConv& conv) {
  b.graph().set_scope(conv.rows);
  VKF_ASSIGN(TensorId rows, add_unfold(b.graph(), x, {.source = source, .window = conv.window}));
  VKF_ASSIGN(TensorId y, add_named_linear(b, conv.rows, rows));
  if (conv.norm.empty()) return y;
  return add_named_norm(b, StackConfig{.epsilon = conv.epsilon}, conv.norm, y);
}

Result<TensorId> add_patch_tokens(ModelBuilder& b, const PictureEmbedding& e, const GridSize& grid,
                                  TensorId pixels, TensorId table) {
  const int64_t batch = b.graph().tensor(pixels).shape[0];
  PatchConv conv{.rows = e.patches};
  conv.window.kernel_height = conv.window.stride_height = static_cast<uint32_t>(e.patch.height);
  conv.window.kernel_width = conv.window.stride_width = static_cast<uint32_t>(e.patch.width);
  VKF_ASSIGN(TensorId patches, add_patch_conv(b, pixels, {}, conv));
  std::vector<uint32_t> rows;
  const int64_t count = grid.count();
  for (int64_t i = 0; i < batch; ++i) {
    rows.insert(rows.end(), static_cast<size_t>(e.class_tokens), ~0u);
    for (int64_t p = 0; p < count; ++p) rows.push_back(static_cast<uint32_t>(i * count + p));
    rows.insert(rows.end(), static_cast<size_t>(e.last_tokens), ~0u);
  }
  const TensorId indices =
      b.host_tensor(e.patches + ".order", DType::kU32,
                    {batch, e.class_tokens + count + e.last_tokens}, std::move(rows));
  b.graph().set_scope(e.positions);
  return add_gather_rows(b.graph(), {.x = patches, .indices = indices, .addend = table});
}

Result<TensorId> add_picture_embedding(ModelBuilder& b, const PictureEmbedding& e, int64_t batch) {
  const TensorId pixels =
      add_pixel_values(b, e.picture.channels,
                       {.batch = batch, .height = e.picture.height, .width = e.picture.width});
  VKF_ASSIGN(TensorId table, b.table(e.positions));
  return add_patch_tokens(b, e, e.grid(), pixels, table);
}

Result<WeightRow> position_row(const Checkpoint& checkpoint, const PictureEmbedding& e,
                               const std::string& positions,
                               const std::vector<std::string>& class_tokens, int64_t width) {
  VKF_ASSIGN(std::vector<float> table, read_floats(checkpoint, positions, {1, e.tokens(), width}));
  for (size_t t = 0; t < class_tokens.size(); ++t) {
    VKF_ASSIGN(std::vector<float> token, read_floats(checkpoint, class_tokens[t], {1, 1, width}));
    for (size_t d = 0; d < token.size(); ++d) table[t * token.size() + d] += token[d];
  }
  return computed_row(e.positions, std::move(table), e.tokens(), width);
}

}  // namespace vkformer
