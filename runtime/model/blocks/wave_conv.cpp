#include "model/blocks/wave_conv.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/weight_rows.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "ops/unfold.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

// Elements of windows that are in memory at a time: 64 MiB, half of what every device binds.
constexpr int64_t kMostWindows = 1 << 24;
constexpr int64_t kFrameStep = 64;  // windows are taken by this number of frames

struct Windows {
  int64_t kernel = 1;
  int64_t dilation = 1;
  int64_t pad = 0;    // frames
  int64_t count = 0;  // windows in all
  float slope = 1.0f;
};

// Windows [first, first + count) of x (B, T, C) -> (B, count, C * kernel).
Result<TensorId> add_windows(ModelBuilder& b, const Windows& w, TensorId x, int64_t first,
                             int64_t count) {
  if (w.kernel == 1 && w.slope == 1.0f && count == b.graph().tensor(x).shape[1]) return x;
  UnfoldAttrs attrs{.source = {.order = ChannelOrder::kLast}};
  attrs.window.kernel_width = u32(w.kernel);
  attrs.window.pad_left = u32(w.pad);
  attrs.window.out_height = 1;
  attrs.window.out_width = u32(count);
  attrs.dilation = u32(w.dilation);
  attrs.first_column = u32(first);
  attrs.slope = w.slope;
  return add_unfold(b.graph(), x, attrs);
}

// The linear layer `row` over all windows -> (B, count, N).
Result<TensorId> add_linear_windows(ModelBuilder& b, const std::string& row, const Windows& w,
                                    TensorId x, const LinearAttrs& attrs) {
  Graph& g = b.graph();
  const Shape from = g.tensor(x).shape;
  const int64_t elements = from[0] * w.count * from[2] * w.kernel;
  g.set_scope(row);
  if (elements <= kMostWindows) {
    VKF_ASSIGN(const TensorId windows, add_windows(b, w, x, 0, w.count));
    return add_named_linear(b, row, windows, attrs);
  }
  const int64_t fitting = kMostWindows / (from[0] * from[2] * w.kernel);
  const int64_t step = std::max(kFrameStep, fitting / kFrameStep * kFrameStep);
  LinearAttrs own = attrs;
  own.residual = kNoTensor;
  TensorId y = kNoTensor;
  int64_t n = 0;
  for (int64_t first = 0; first < w.count; first += step) {
    const int64_t count = std::min(step, w.count - first);
    VKF_ASSIGN(const TensorId windows, add_windows(b, w, x, first, count));
    VKF_ASSIGN(const TensorId part, add_named_linear(b, row, windows, own));
    n = g.tensor(part).shape[2];
    if (y == kNoTensor) {
      VKF_ASSIGN(y, add_columns(g, kNoTensor, {}, {from[0], w.count * n}));
    }
    g.tensor(part).shape = {from[0], count * n};
    VKF_CHECK(add_place_columns(g, part, y, {u32(first * n), u32(w.count * n)}));
  }
  g.tensor(y).shape = {from[0], w.count, n};
  return attrs.residual == kNoTensor ? Result<TensorId>(y) : add_combine(g, y, attrs.residual, {});
}

// Where a module's weight is: itself, or its directions and lengths.
struct StoredWeight {
  std::vector<std::string> names;  // one, or directions, then lengths
};

StoredWeight stored_weight(const Checkpoint& checkpoint, const std::string& from) {
  const std::string newer = from + ".parametrizations.weight.original";
  if (checkpoint.find(newer + "1") != nullptr) return {{newer + "1", newer + "0"}};
  if (checkpoint.find(from + ".weight_v") != nullptr) {
    return {{from + ".weight_v", from + ".weight_g"}};
  }
  return {{from + ".weight"}};
}

// A weight of that shape, whose lengths are those along its first axis.
Result<std::vector<float>> read_weight(const Checkpoint& checkpoint, const StoredWeight& stored,
                                       const Shape& shape) {
  VKF_ASSIGN(std::vector<float> values, read_floats(checkpoint, stored.names[0], shape));
  if (stored.names.size() == 1) return values;
  VKF_ASSIGN(const std::vector<float> lengths,
             read_floats(checkpoint, stored.names[1], {shape[0], 1, 1}));
  const size_t row = values.size() / lengths.size();
  for (size_t r = 0; r < lengths.size(); ++r) {
    const std::span<float> part(values.data() + r * row, row);
    double squares = 0;
    for (const float value : part) squares += double{value} * double{value};
    const double scale = double{lengths[r]} / std::sqrt(squares);
    for (float& value : part) value = static_cast<float>(scale * double{value});
  }
  return values;
}

// A row that is computed of a module's weight (of that shape) and bias, if it has one.
WeightRow made_row(std::string name, const StoredWeight& stored, const Shape& shape,
                   const std::string& bias, int64_t bias_size) {
  WeightRow row{.name = std::move(name), .sources = stored.names};
  row.source_shapes = {shape};
  if (stored.names.size() > 1) row.source_shapes.push_back({shape[0], 1, 1});
  if (!bias.empty()) {
    row.biases = {bias};
    row.source_shapes.push_back({bias_size});
  }
  return row;
}

Result<std::vector<float>> read_bias(const Checkpoint& checkpoint, const std::string& bias,
                                     int64_t size) {
  if (bias.empty()) return std::vector<float>();
  return read_floats(checkpoint, bias, {size});
}

std::string bias_of(const std::string& from, ConvBias bias) {
  return bias == ConvBias::kYes ? from + ".bias" : "";
}

}  // namespace

Result<TensorId> add_wave_conv(ModelBuilder& b, const WaveConv& c, TensorId x,
                               const LinearAttrs& attrs) {
  const Windows windows{.kernel = c.kernel,
                        .dilation = c.dilation,
                        .pad = c.pad < 0 ? (c.covered() - 1) / 2 : c.pad,
                        .count = b.graph().tensor(x).shape[1],
                        .slope = c.slope};
  return add_linear_windows(b, c.row, windows, x, attrs);
}

Result<TensorId> add_wave_upsampling(ModelBuilder& b, const WaveUpsampling& c, TensorId x) {
  Graph& g = b.graph();
  const Shape from = g.tensor(x).shape;
  const int64_t frames = c.frames(from[1]);
  const int64_t groups = (frames + c.stride - 1) / c.stride;
  const Windows windows{.kernel = c.taps(), .pad = -c.first(), .count = groups, .slope = c.slope};
  VKF_ASSIGN(const TensorId y, add_linear_windows(b, c.row, windows, x, {}));
  g.tensor(y).shape = {from[0], groups * c.stride, c.out};
  if (frames == groups * c.stride) return y;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < from[0]; ++i) {
    for (int64_t t = 0; t < frames; ++t) rows.push_back(u32(i * groups * c.stride + t));
  }
  const TensorId kept =
      b.host_tensor(c.row + ".frames", DType::kU32, {from[0], frames}, std::move(rows));
  return add_gather_rows(g, {.x = y, .indices = kept});
}

WeightRow wave_part_row(const Checkpoint& checkpoint, const WaveConv& c, const std::string& from,
                        const RowPart& part) {
  const StoredWeight stored = stored_weight(checkpoint, from);
  const int64_t k = c.in * c.kernel;
  const Shape shape = {part.whole, c.in, c.kernel};
  const std::string bias = from + ".bias";
  WeightRow row = made_row(c.row, stored, shape, bias, part.whole);
  row.rows = c.out;
  row.width = k;
  row.make = [=](const Checkpoint& file) -> Result<MadeMatrix> {
    VKF_ASSIGN(const std::vector<float> all, read_weight(file, stored, shape));
    VKF_ASSIGN(const std::vector<float> biases, read_bias(file, bias, part.whole));
    const auto first = static_cast<ptrdiff_t>(part.first);
    const auto count = static_cast<ptrdiff_t>(c.out), width = static_cast<ptrdiff_t>(k);
    return MadeMatrix{{all.begin() + first * width, all.begin() + (first + count) * width},
                      {biases.begin() + first, biases.begin() + first + count}};
  };
  return row;
}

WeightRow wave_row(const Checkpoint& checkpoint, const WaveConv& c, const std::string& from,
                   ConvBias bias) {
  if (stored_weight(checkpoint, from).names.size() > 1) {
    return wave_part_row(checkpoint, c, from, {.whole = c.out});
  }
  return biased_row(bias == ConvBias::kYes, c.row, {from}, c.out, c.in * c.kernel);
}

WeightRow reversed_inputs_row(const Checkpoint& checkpoint, const WaveConv& c,
                              const std::string& from, ConvBias with_bias) {
  const StoredWeight stored = stored_weight(checkpoint, from);
  const Shape shape = {c.out, c.in, c.kernel};
  const std::string bias = bias_of(from, with_bias);
  WeightRow row = made_row(c.row, stored, shape, bias, c.out);
  row.rows = c.out;
  row.width = c.in * c.kernel;
  row.make = [=](const Checkpoint& file) -> Result<MadeMatrix> {
    MadeMatrix made;
    VKF_ASSIGN(made.values, read_weight(file, stored, shape));
    VKF_ASSIGN(made.bias, read_bias(file, bias, c.out));
    for (int64_t n = 0; n < c.out; ++n) {
      const auto begin = made.values.begin() + n * c.in * c.kernel;
      for (int64_t low = 0, high = c.in - 1; low < high; ++low, --high) {
        std::swap_ranges(begin + low * c.kernel, begin + (low + 1) * c.kernel,
                         begin + high * c.kernel);
      }
    }
    return made;
  };
  return row;
}

WeightRow upsampling_row(const Checkpoint& checkpoint, const WaveUpsampling& c,
                         const std::string& from) {
  const StoredWeight stored = stored_weight(checkpoint, from);
  const Shape shape = {c.in, c.out, c.kernel};
  const std::string bias = from + ".bias";
  WeightRow row = made_row(c.row, stored, shape, bias, c.out);
  row.rows = c.stride * c.out;
  row.width = c.in * c.taps();
  row.make = [=](const Checkpoint& file) -> Result<MadeMatrix> {
    VKF_ASSIGN(const std::vector<float> weight, read_weight(file, stored, shape));
    VKF_ASSIGN(const std::vector<float> biases, read_bias(file, bias, c.out));
    const int64_t taps = c.taps();
    MadeMatrix made;
    made.values.assign(static_cast<size_t>(row.rows * row.width), 0.0f);
    for (int64_t phase = 0; phase < c.stride; ++phase) {
      made.bias.insert(made.bias.end(), biases.begin(), biases.end());
      for (int64_t tap = 0; tap < taps; ++tap) {
        // Frame q + first + tap meets frame q * stride + phase of the result at this place.
        const int64_t at = phase + c.pad() - (c.first() + tap) * c.stride;
        if (at < 0 || at >= c.kernel) continue;
        for (int64_t n = 0; n < c.out; ++n) {
          for (int64_t k = 0; k < c.in; ++k) {
            made.values[static_cast<size_t>(((phase * c.out + n) * c.in + k) * taps + tap)] =
                weight[static_cast<size_t>((k * c.out + n) * c.kernel + at)];
          }
        }
      }
    }
    return made;
  };
  return row;
}

}  // namespace vkformer
