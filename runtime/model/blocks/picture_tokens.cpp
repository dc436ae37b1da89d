#include "model/blocks/picture_tokens.h"

#include <algorithm>
#include <functional>

#include "weights/read_floats.h"

namespace vkformer {
namespace {

void append(std::span<const float> values, std::vector<float>& to) {
  to.insert(to.end(), values.begin(), values.end());
}

// Adds what there is of the second to the first.
void add_values(std::span<const float> values, std::span<float> to) {
  std::transform(values.begin(), values.end(), to.begin(), to.begin(), std::plus<>());
}

}  // namespace

std::vector<float> PictureTokens::table(const GridSize& wanted) const {
  std::vector<float> values = first;
  if (patches.empty()) {
    values.resize(values.size() + static_cast<size_t>(wanted.count() * width), 0.0f);
  } else {
    append(resized_positions(patches, grid, wanted, width, filter), values);
  }
  append(last, values);
  return values;
}

PictureTokens split_positions(const PictureEmbedding& e, int64_t width,
                              std::span<const float> values) {
  const auto before = static_cast<size_t>(e.class_tokens * width);
  const auto after = static_cast<size_t>(e.last_tokens * width);
  PictureTokens tokens{.grid = e.grid(), .width = width};
  append(values.first(before), tokens.first);
  append(values.subspan(before, values.size() - before - after), tokens.patches);
  append(values.last(after), tokens.last);
  return tokens;
}

Result<PictureTokens> read_picture_tokens(const Checkpoint& checkpoint, const PictureEmbedding& e,
                                          int64_t width, const PictureTokenNames& names) {
  PictureTokens tokens{.grid = e.grid(), .width = width};
  if (!names.positions.empty()) {
    PictureEmbedding placed = e;
    placed.class_tokens = names.placed;
    VKF_ASSIGN(const std::vector<float> positions,
               read_floats(checkpoint, names.positions, {1, placed.tokens(), width}));
    tokens = split_positions(placed, width, positions);
  }
  tokens.first.resize(static_cast<size_t>(e.class_tokens * width), 0.0f);
  tokens.last.resize(static_cast<size_t>(e.last_tokens * width), 0.0f);
  std::span<float> at = tokens.first;
  for (const PictureTokenNames::Tokens& group : names.first) {
    if (group.count == 0) continue;
    VKF_ASSIGN(const std::vector<float> values,
               read_floats(checkpoint, group.name, {1, group.count, width}));
    add_values(values, at);
    at = at.subspan(values.size());
  }
  if (names.last.empty()) return tokens;
  VKF_ASSIGN(const std::vector<float> values,
             read_floats(checkpoint, names.last, {1, e.last_tokens, width}));
  add_values(values, tokens.last);
  return tokens;
}

Result<TensorId> add_picture_tokens(ModelBuilder& b, const PictureEmbedding& e,
                                    const PictureTokens& tokens, const GridSize& grid,
                                    TensorId pixels) {
  const Shape shape = {e.class_tokens + grid.count() + e.last_tokens, tokens.width};
  const TensorId table = b.host_floats(e.positions, shape, tokens.table(grid));
  return add_patch_tokens(b, e, grid, pixels, table);
}

}  // namespace vkformer
