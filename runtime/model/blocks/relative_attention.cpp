#include "model/blocks/relative_attention.h"

#include <array>
#include <cmath>

#include "base/narrow.h"
#include "ops/matmul.h"
#include "ops/move_columns.h"

namespace vkformer {
namespace {

// s(i - j) for j - i from -(T - 1) to T - 1 (2T - 1, D), in double.
std::vector<float> distance_sines(int64_t tokens, int64_t width) {
  std::vector<float> sines;
  sines.reserve(static_cast<size_t>((2 * tokens - 1) * width));
  for (int64_t distance = tokens - 1; distance > -tokens; --distance) {
    for (int64_t k = 0; k < width / 2; ++k) {
      const double w =
          std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(width));
      const double angle = static_cast<double>(distance) * w;
      sines.push_back(static_cast<float>(std::sin(angle)));
      sines.push_back(static_cast<float>(std::cos(angle)));
    }
  }
  return sines;
}

}  // namespace

Result<TensorId> add_joined(Graph& g, std::span<const TensorId> parts) {
  int64_t elements = 0;
  for (const TensorId part : parts) elements += element_count(g.tensor(part).shape);
  VKF_ASSIGN(const TensorId y, add_columns(g, kNoTensor, {}, {1, elements}));
  int64_t used = 0;
  for (const TensorId part : parts) {
    const Shape shape = g.tensor(part).shape;
    VKF_CHECK(add_place_columns(g, part, y, {.offset = u32(used), .stride = u32(shape.back())}));
    used += element_count(shape);
  }
  return y;
}

Result<TensorId> append_relative_positions(ModelBuilder& b, const RelativeAttention& relative,
                                           TensorId qkv, AttentionAttrs& attrs) {
  Graph& g = b.graph();
  const int64_t rows = 2 * relative.tokens - 1;
  const std::string name = "relative.sines." + std::to_string(relative.width);
  TensorId sines = g.find_external(name);
  if (sines == kNoTensor) {
    sines = b.host_floats(name, {rows, relative.width},
                          distance_sines(relative.tokens, relative.width));
  }
  VKF_ASSIGN(const TensorId matrix, b.table(relative.positions));
  VKF_ASSIGN(const TensorId keys, add_matmul(g, sines, matrix, kNoTensor, {.trans_b = true}));
  VKF_ASSIGN(const TensorId u, b.table(relative.u));
  VKF_ASSIGN(const TensorId v, b.table(relative.v));
  attrs.relative = {.kinds = VKF_RELATIVE_KEYS | VKF_RELATIVE_BIASES,
                    .offset = u32(element_count(g.tensor(qkv).shape)),
                    .reach = u32(relative.tokens - 1)};
  return add_joined(g, std::array{qkv, keys, u, v});
}

}  // namespace vkformer
