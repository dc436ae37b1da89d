#include "model/blocks/feature_map.h"

#include "base/narrow.h"
#include "model/weight_rows.h"
#include "ops/gather_rows.h"
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

void add_enlarging_rows(const FeatureEnlargement& e, const std::string& module, int64_t in,
                        WeightTable& table) {
  // A matrix whose rows go by pixel of the square and then by channel.
  const int64_t square = e.factor * e.factor;
  WeightRow row = plain_linear_row(e.row, {module}, e.channels * square, in);
  row.axes = WeightRow::Axes::kInOut;
  for (int64_t pixel = 0; pixel < square; ++pixel) {
    for (int64_t o = 0; o < e.channels; ++o) row.row_order.push_back(u32(o * square + pixel));
  }
  table.rows.push_back(std::move(row));
  table.rows.push_back(table_row(e.row + ".bias", {module + ".bias"}, {1}, e.channels));
}

Result<FeatureMap> add_enlarged(ModelBuilder& b, const FeatureEnlargement& e, const FeatureMap& x) {
  const int64_t square = e.factor * e.factor;
  VKF_ASSIGN(const TensorId squares, add_named_linear(b, e.row, x.states));
  Graph& g = b.graph();
  const int64_t batch = g.tensor(squares).shape[0];
  g.tensor(squares).shape = {batch, x.grid.count() * square, e.channels};
  const GridSize grid = {x.grid.height * e.factor, x.grid.width * e.factor};
  std::vector<uint32_t> order;
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t p = 0; p < grid.count(); ++p) {
      const int64_t row = p / grid.width, column = p % grid.width;
      const int64_t from = (i * x.grid.height + row / e.factor) * x.grid.width + column / e.factor;
      order.push_back(u32(from * square + row % e.factor * e.factor + column % e.factor));
    }
  }
  const TensorId indices =
      b.host_tensor(e.row + ".order", DType::kU32, {batch, grid.count()}, std::move(order));
  VKF_ASSIGN(const TensorId bias, b.table(e.row + ".bias"));
  VKF_ASSIGN(const TensorId y,
             add_gather_rows(g, {.x = squares, .indices = indices, .addend = bias}));
  return FeatureMap{y, grid};
}

}  // namespace vkformer
