#include "model/blocks/feature_map.h"

#include "ops/unfold.h"

namespace vkformer {
namespace {

int64_t pixels_after(int64_t size, int64_t kernel, int64_t stride) {
  return (size + 2 * (kernel / 2) - kernel) / stride + 1;
}

}  // namespace

GridSize grid_after(const GridSize& grid, int64_t kernel, int64_t stride) {
  return {pixels_after(grid.height, kernel, stride), pixels_after(grid.width, kernel, stride)};
}

ConvSource feature_source(const GridSize& grid) {
  return {.order = ChannelOrder::kLast,
          .height = static_cast<uint32_t>(grid.height),
          .width = static_cast<uint32_t>(grid.width)};
}

ConvWindow feature_window(int64_t kernel, int64_t stride) {
  const auto k = static_cast<uint32_t>(kernel), s = static_cast<uint32_t>(stride);
  return {.kernel_height = k,
          .kernel_width = k,
          .stride_height = s,
          .stride_width = s,
          .pad_top = k / 2,
          .pad_left = k / 2};
}

Result<FeatureMap> add_feature_conv(ModelBuilder& b, const FeatureConv& conv, const FeatureMap& x,
                                    const LinearAttrs& attrs) {
  TensorId rows = x.states;
  if (conv.kernel > 1 || conv.stride > 1) {
    b.graph().set_scope(conv.row + ".windows");
    VKF_ASSIGN(rows, add_unfold(b.graph(), x.states,
                                {.source = feature_source(x.grid),
                                 .window = feature_window(conv.kernel, conv.stride)}));
  }
  VKF_ASSIGN(const TensorId y, add_named_linear(b, conv.row, rows, attrs));
  return FeatureMap{y, grid_after(x.grid, conv.kernel, conv.stride)};
}

}  // namespace vkformer
