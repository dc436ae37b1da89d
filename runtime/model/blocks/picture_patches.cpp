#include "model/blocks/picture_patches.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"
#include "model/mask_input.h"
#include "ops/score_terms.h"

namespace vkformer {
namespace {

constexpr const char* kPatchPositions = "patch_positions";

const char* feed_of(const PatchRows& rows) {
  return rows.cut ? "cut_patches" : "pixel_values";
}

int64_t patch_values(const PictureEmbedding& e) {
  return e.patch.count() * e.picture.channels;
}

// What the three inputs say.
struct GivenPatchRows {
  PatchRows rows;
  std::vector<float> values;    // (B, N, patch values)
  std::vector<GridSize> grids;  // (B)
  std::vector<uint8_t> kept;    // (B, N)
};

// Pictures (B, C, height, width) as patches: row by row, and in each its pixels row by row, a
// pixel's channels side by side.
std::vector<float> cut_patches(std::span<const float> pixels, const PictureEmbedding& e,
                               int64_t batch, const GridSize& grid) {
  const GridSize picture = {grid.height * e.patch.height, grid.width * e.patch.width};
  std::vector<float> values;
  values.reserve(pixels.size());
  for (int64_t i = 0; i < batch; ++i) {
    const float* planes = pixels.data() + i * e.picture.channels * picture.count();
    for (int64_t patch = 0; patch < grid.count(); ++patch) {
      const int64_t top = patch / grid.width * e.patch.height;
      const int64_t left = patch % grid.width * e.patch.width;
      for (int64_t pixel = 0; pixel < e.patch.count(); ++pixel) {
        const int64_t row = top + pixel / e.patch.width;
        const int64_t at = row * picture.width + left + pixel % e.patch.width;
        for (int64_t c = 0; c < e.picture.channels; ++c) {
          values.push_back(planes[c * picture.count() + at]);
        }
      }
    }
  }
  return values;
}

Result<GivenPatchRows> read_whole_pictures(const TensorMap& inputs, const PictureEmbedding& e) {
  const Tensor& tensor = inputs.at("pixel_values");
  const Shape& s = tensor.shape;
  for (const char* name : {"spatial_shapes", "pixel_attention_mask"}) {
    if (inputs.count(name) == 0) continue;
    return invalid_argument(
        message({"[", name, "] was given with pictures of shape ", shape_text(s),
                 ", but belongs to patches; leave it out, or "
                 "give pixel_values as patches."}));
  }
  if (s[0] < 1 || s[1] != e.picture.channels || s[2] < 1 || s[3] < 1 ||
      s[2] % e.patch.height != 0 || s[3] % e.patch.width != 0) {
    return invalid_argument(
        message({"[pixel_values] has shape ", shape_text(s), ", but must be (B, ",
                 e.picture.channels, ", height, width) with sides of whole patches of ",
                 e.patch.height, " x ", e.patch.width, "; resize the pictures to that."}));
  }
  const GridSize grid = {s[2] / e.patch.height, s[3] / e.patch.width};
  if (grid.count() > kMostPositions) {
    return invalid_argument(
        message({"[pixel_values] of ", s[2], " x ", s[3], " pixels make ", grid.count(),
                 " patches, over the limit of ", kMostPositions, "; give smaller pictures."}));
  }
  GivenPatchRows given{.rows = {s[0], grid.count(), true}};
  VKF_ASSIGN(const std::vector<float> pixels, tensor.to_floats());
  given.values = cut_patches(pixels, e, s[0], grid);
  given.grids.assign(static_cast<size_t>(s[0]), grid);
  given.kept.assign(static_cast<size_t>(s[0] * grid.count()), 1);
  return given;
}

Result<std::vector<GridSize>> read_grids(const TensorMap& inputs, const PatchRows& rows) {
  const auto found = inputs.find("spatial_shapes");
  if (found == inputs.end()) {
    return not_found(
        "[spatial_shapes] is missing from the inputs; give the rows and columns of each picture's "
        "patches (B, 2).");
  }
  if (found->second.shape != Shape{rows.batch, 2}) {
    return invalid_argument(message({"[spatial_shapes] has shape ", shape_text(found->second.shape),
                                     ", but must be ", shape_text({rows.batch, 2}), "."}));
  }
  VKF_ASSIGN(const std::vector<int64_t> sides, found->second.to_ints());
  std::vector<GridSize> grids;
  for (size_t i = 0; i < sides.size(); i += 2) {
    const GridSize grid = {sides[i], sides[i + 1]};
    const bool fits = grid.height >= 1 && grid.width >= 1 && grid.height <= rows.patches &&
                      grid.width <= rows.patches && grid.count() <= rows.patches;
    if (!fits) {
      return invalid_argument(message({"[spatial_shapes] of picture ", i / 2, " is ", grid.height,
                                       " x ", grid.width, ", but a row has ", rows.patches,
                                       " patches; give at least 1 x 1 and no more than those."}));
    }
    grids.push_back(grid);
  }
  return grids;
}

Result<GivenPatchRows> read_given_patches(const TensorMap& inputs) {
  const Tensor& tensor = inputs.at("pixel_values");
  const Shape& s = tensor.shape;
  GivenPatchRows given{.rows = {s[0], s[1]}};
  VKF_ASSIGN(given.grids, read_grids(inputs, given.rows));
  VKF_ASSIGN(given.values, tensor.to_floats());
  given.kept.assign(static_cast<size_t>(s[0] * s[1]), 1);
  const auto mask = inputs.find("pixel_attention_mask");
  if (mask == inputs.end()) return given;
  if (mask->second.shape != Shape{s[0], s[1]}) {
    return invalid_argument(
        message({"[pixel_attention_mask] has shape ", shape_text(mask->second.shape),
                 ", but must be ", shape_text({s[0], s[1]}), "."}));
  }
  VKF_ASSIGN(given.kept, mask_flags("pixel_attention_mask", mask->second));
  return given;
}

// (B, N, D): each picture's own, and at padding those of its first patch.
std::vector<float> positions_of(const GivenPatchRows& given, const PictureTokens& positions) {
  const auto d = static_cast<size_t>(positions.width);
  const size_t row = static_cast<size_t>(given.rows.patches) * d;
  std::vector<float> values;
  values.reserve(row * given.grids.size());
  for (const GridSize& grid : given.grids) {
    const std::vector<float> own = positions.table(grid);
    values.insert(values.end(), own.begin(), own.end());
    for (size_t at = own.size(); at < row; at += d) {
      values.insert(values.end(), own.begin(), own.begin() + static_cast<ptrdiff_t>(d));
    }
  }
  return values;
}

}  // namespace

Result<PatchRows> read_patch_rows(const TensorMap& inputs, const PictureEmbedding& e,
                                  const PictureTokens& positions, FeedWords& words) {
  const auto found = inputs.find("pixel_values");
  if (found == inputs.end()) return not_found("[pixel_values] is missing from the inputs.");
  const Shape& s = found->second.shape;
  const bool patches =
      s.size() == 3 && s[0] >= 1 && s[1] >= 1 && s[1] <= kMostPositions && s[2] == patch_values(e);
  if (!patches && s.size() != 4) {
    return invalid_argument(
        message({"[pixel_values] has shape ", shape_text(s), ", but must be patches (B, N, ",
                 patch_values(e), ") of at most ", kMostPositions, " a row, or pictures (B, ",
                 e.picture.channels, ", height, width)."}));
  }
  VKF_ASSIGN(const GivenPatchRows given,
             patches ? read_given_patches(inputs) : read_whole_pictures(inputs, e));
  words[feed_of(given.rows)] = float_words(given.values);
  words[kPatchPositions] = float_words(positions_of(given, positions));
  words[kPatchMask] = pack_key_mask(given.kept, given.rows.batch, given.rows.patches);
  return given.rows;
}

Result<TensorId> add_given_patches(ModelBuilder& b, const PictureEmbedding& e, int64_t width,
                                   const PatchRows& rows) {
  Graph& g = b.graph();
  const TensorId pixels =
      g.add_external(feed_of(rows), DType::kF32, {rows.batch, rows.patches, patch_values(e)});
  b.feed(feed_of(rows), pixels);
  const TensorId positions =
      g.add_external(kPatchPositions, DType::kF32, {rows.batch, rows.patches, width});
  b.feed(kPatchPositions, positions);
  return add_named_linear(b, e.patches, pixels, {.residual = positions});
}

}  // namespace vkformer
