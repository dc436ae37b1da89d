// Pictures and grids of tokens.
#include <algorithm>

#include "conformance/twin/score_terms.h"
#include "conformance/twin/twin_run.h"
#include "ops/conv.h"
#include "ops/deformable_attention.h"
#include "ops/grid_distances.h"
#include "ops/max_pool.h"
#include "ops/node_attrs.h"
#include "ops/unfold.h"

namespace vkformer::conformance {
namespace {

// Where a window of a picture lies.
struct TwinWindow {
  const Memory& x;
  ConvPicture p;
  size_t plane;        // the first element of the picture
  uint32_t top, left;  // they wrap before the image

  TwinWindow(const Memory& memory, const ConvPicture& picture, size_t batch, uint32_t out_y,
             uint32_t out_x)
      : x(memory),
        p(picture),
        plane(picture.offset + batch * picture.batch_stride),
        top(out_y * picture.stride_height - picture.pad_top),
        left(out_x * picture.stride_width - picture.pad_left) {}

  bool has_line(uint32_t y) const { return top + y < p.height; }
  bool has_column(uint32_t column) const { return left + column < p.width; }
  size_t place(uint32_t channel, uint32_t y, uint32_t column) const {
    return plane + size_t{channel} * p.channel_stride + size_t{top + y} * p.row_stride +
           size_t{left + column} * p.col_stride;
  }
};

bool twin_conv(TwinRun& run, const Node& node) {
  const auto& [a, activation] = attrs_of<ConvNodeAttrs>(node);
  const Memory &x = run.in(node, 0), &table = run.in(node, 1);
  const Result<ConvSizes> sizes = conv_sizes(OpId::k_conv, run.graph().tensor(node.inputs[0]),
                                             a.source, a.window, a.leading_tokens);
  if (!sizes) return false;
  Memory& y = run.out(node);
  const ConvPicture& p = sizes->picture;
  const auto out = static_cast<uint32_t>(table.shape[0]);
  const uint32_t positions = p.out_height * p.out_width, each = sizes->channels / a.groups;
  const uint32_t taps = each * p.kernel_height * p.kernel_width;
  const bool first = a.out_order == ChannelOrder::kFirst;
  const size_t rows = size_t{a.leading_tokens} + positions;
  for (size_t n = 0; n < sizes->batch * rows * out; ++n) {
    const size_t batch = n / out / rows, row = n / out % rows;
    const auto o = static_cast<uint32_t>(n % out);
    if (row < a.leading_tokens) {
      y.words[n] = x.words[(batch * rows + row) * sizes->channels + o];
      continue;
    }
    const auto position = static_cast<uint32_t>(row - a.leading_tokens);
    const TwinWindow window(x, p, batch, position / p.out_width, position % p.out_width);
    size_t weight = size_t{o} * (taps + 1);
    Real sum = table[weight + taps];
    for (uint32_t c = 0; c < each; ++c) {
      for (uint32_t ky = 0; ky < p.kernel_height; ++ky, weight += p.kernel_width) {
        if (!window.has_line(ky)) continue;
        // Taps that a stride lies between come one after the other.
        for (uint32_t phase = 0; phase < std::min(p.stride_width, p.kernel_width); ++phase) {
          for (uint32_t kx = phase; kx < p.kernel_width; kx += p.stride_width) {
            const uint32_t channel = o / (out / a.groups) * each + c;
            const Real pixel =
                window.has_column(kx) ? x[window.place(channel, ky, kx)] : Real(0.0f);
            sum = pixel * table[weight + kx] + sum;
          }
        }
      }
    }
    const size_t at = first ? (batch * out + o) * positions + position : n;
    y.put(at, activated(sum, activation));
  }
  return true;
}

bool twin_unfold(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<UnfoldAttrs>(node);
  const Memory& x = run.in(node, 0);
  ConvWindow window = a.window;
  window.kernel_width = (window.kernel_width - 1) * a.dilation + 1;
  Result<ConvSizes> sizes =
      conv_sizes(OpId::k_unfold, run.graph().tensor(node.inputs[0]), a.source, window, 0);
  if (!sizes) return false;
  ConvPicture p = sizes->picture;
  p.kernel_width = a.window.kernel_width;
  p.pad_left -= a.first_column * a.window.stride_width;
  Memory& y = run.out(node);
  const size_t columns = y.width(), positions = size_t{p.out_height} * p.out_width;
  for (size_t n = 0; n < y.words.size(); ++n) {
    const auto row = static_cast<uint32_t>(n / columns),
               column = static_cast<uint32_t>(n % columns);
    const uint32_t kx = column % p.kernel_width * a.dilation;
    const uint32_t ky = column / p.kernel_width % p.kernel_height;
    const TwinWindow place(x, p, row / positions, row / p.out_width % p.out_height,
                           row % p.out_width);
    const bool inside = place.has_line(ky) && place.has_column(kx);
    const uint32_t channel = column / p.kernel_width / p.kernel_height;
    y.words[n] = inside ? x.words[place.place(channel, ky, kx)] : 0;
    if (a.slope != 1.0f && y[n] < 0.0f) y.put(n, y[n] * a.slope);
  }
  return true;
}

bool twin_max_pool(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<MaxPoolAttrs>(node);
  const Memory& x = run.in(node, 0);
  const Result<ConvSizes> sizes =
      conv_sizes(OpId::k_max_pool, run.graph().tensor(node.inputs[0]), a.source, a.window, 0);
  if (!sizes) return false;
  const ConvPicture& p = sizes->picture;
  Memory& y = run.out(node);
  const size_t channels = y.width(), positions = size_t{p.out_height} * p.out_width;
  for (size_t n = 0; n < y.words.size(); ++n) {
    const auto row = static_cast<uint32_t>(n / channels), c = static_cast<uint32_t>(n % channels);
    const TwinWindow window(x, p, row / positions, row / p.out_width % p.out_height,
                            row % p.out_width);
    Real best = Real::of_bits(kSignBit | kInfinityBits);
    for (uint32_t k = 0; k < p.kernel_height * p.kernel_width; ++k) {
      const uint32_t ky = k / p.kernel_width, kx = k % p.kernel_width;
      if (best.is_nan() || !window.has_line(ky) || !window.has_column(kx)) continue;
      const Real value = x[window.place(c, ky, kx)];
      if (value.is_nan() || value > best) best = value;
    }
    y.put(n, best);
  }
  return true;
}

Real mixed(Real x, Real y, Real share) {
  return x * (Real(1.0f) - share) + y * share;
}

// Where a place of the result lies between two of x along one side.
struct TwinSource {
  uint32_t first, second;
  Real part;
};
TwinSource source_of(uint32_t at, uint32_t size, const SideMap& map) {
  const auto moved = static_cast<int32_t>(at * map.factor) + map.shift;
  const auto parts = static_cast<uint32_t>(std::max(moved, 0));
  const uint32_t first = std::min(parts / map.divisor, size - 1);
  const Real part =
      Real(static_cast<float>(parts - first * map.divisor)) / static_cast<float>(map.divisor);
  return {first, std::min(first + 1, size - 1), part};
}

bool twin_resize_grid(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<ResizeGridAttrs>(node);
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const SideMap down = side_map(a.height, a.out_height, a.corners);
  const SideMap across = side_map(a.width, a.out_width, a.corners);
  const size_t channels = y.width();
  for (size_t n = 0; n < y.words.size(); ++n) {
    const auto row = static_cast<uint32_t>(n / channels);
    const size_t c = n % channels, base = size_t{row / a.out_width / a.out_height} * a.height;
    const TwinSource v = source_of(row / a.out_width % a.out_height, a.height, down);
    const TwinSource h = source_of(row % a.out_width, a.width, across);
    const auto pixel = [&](uint32_t line, uint32_t column) {
      return x[((base + line) * a.width + column) * channels + c];
    };
    const Real above = mixed(pixel(v.first, h.first), pixel(v.first, h.second), h.part);
    const Real below = mixed(pixel(v.second, h.first), pixel(v.second, h.second), h.part);
    y.put(n, mixed(above, below, v.part));
  }
  return true;
}

bool twin_grid_distances(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<GridDistancesAttrs>(node);
  const Memory &qkv = run.in(node, 0), &table = run.in(node, 1);
  Memory& y = run.out(node);
  const size_t each = table.width(), inner = a.heads * each, wide = each + a.height + a.width;
  const size_t columns = y.width();
  for (size_t n = 0; n < y.words.size(); ++n) {
    const size_t row = n / columns, c = n % columns, token = row % (size_t{a.height} * a.width);
    const size_t part = c / (a.heads * wide), base = row * 3 * inner;
    const size_t line = token / a.width, column = token % a.width;
    if (part > 1) {
      y.words[n] = qkv.words[base + 2 * inner + c - 2 * a.heads * wide];
      continue;
    }
    const size_t i = c % wide, from = base + part * inner + c % (a.heads * wide) / wide * each;
    if (i < each) {
      y.put(n, qkv[from + i] * (part == 0 ? a.scale : 1.0f));
      continue;
    }
    const size_t at = i - each;  // a row of the grid, or a column after all rows
    const bool of_rows = at < a.height;
    if (part == 1) {
      y.put(n, at == (of_rows ? line : column + a.height) ? 1.0f : 0.0f);
      continue;
    }
    const size_t distance = of_rows ? line + a.height - 1 - at
                                    : 2 * a.height - 1 + column + a.width - 1 - (at - a.height);
    Real sum = 0.0f;
    for (size_t e = 0; e < each; ++e) sum += qkv[from + e] * table[distance * each + e];
    y.put(n, sum);
  }
  return true;
}

// A sample of deformable attention: where it lies in its grid, and what it counts.
struct TwinSample {
  Real x, y, weight;
};

// The value of column c around a place of the grid whose first token is `first`.
Real sample_at(const Memory& value, const TwinSample& s, size_t first, const DeformableLevel& grid,
               size_t c) {
  const Real width = static_cast<float>(grid.width), height = static_cast<float>(grid.height);
  if (!(s.x > -1.0f && s.y > -1.0f && s.x < width && s.y < height)) return 0.0f;
  HostArithmetic h;
  const Real left = h.floor(s.x.f), top = h.floor(s.y.f);
  const Real across = s.x - left, down = s.y - top;
  Real sum = 0.0f;
  for (int i = 0; i < 4; ++i) {
    const int column = static_cast<int>(left.f) + (i & 1),
              line = static_cast<int>(top.f) + (i >> 1);
    const Real share =
        ((i & 1) != 0 ? across : Real(1.0f) - across) * ((i >> 1) != 0 ? down : Real(1.0f) - down);
    if (column < 0 || line < 0 || column >= static_cast<int>(grid.width) ||
        line >= static_cast<int>(grid.height)) {
      continue;
    }
    const size_t token =
        first + static_cast<size_t>(line) * grid.width + static_cast<size_t>(column);
    sum += share * value[token * value.width() + c];
  }
  return sum;
}

bool twin_deformable_attention(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<DeformableAttentionAttrs>(node);
  const Memory &value = run.in(node, 0), &samples = run.in(node, 1), &boxes = run.in(node, 2);
  Memory& y = run.out(node);
  const size_t of_head = a.levels.size() * a.points, all = a.heads * of_head;
  const auto queries = static_cast<size_t>(y.shape[1]),
             tokens = static_cast<size_t>(value.shape[1]);
  for (size_t row = 0; row < y.rows(); ++row) {
    std::vector<TwinSample> found(all);
    for (size_t i = 0; i < all; ++i) {
      const DeformableLevel& grid = a.levels[i / a.points % a.levels.size()];
      const size_t at = row * 3 * all;
      const auto place = [&](size_t axis, uint32_t size) {
        const Real offset = samples[at + 2 * i + axis] / static_cast<float>(a.points);
        const Real part = boxes[4 * row + axis] + offset * boxes[4 * row + 2 + axis] * 0.5f;
        return part * static_cast<float>(size) - 0.5f;
      };
      TwinSample s{place(0, grid.width), place(1, grid.height), Real::of_bits(kNanBits)};
      if (s.x.is_nan() || s.y.is_nan()) {
        found[i] = {-2.0f, -2.0f, s.weight};
        continue;
      }
      const size_t first = at + 2 * all + i / of_head * of_head;
      Real highest = samples[first], total = 0.0f;
      for (size_t j = 1; j < of_head; ++j) {
        const Real other = samples[first + j];
        if (other > highest || other.is_nan()) highest = other;
      }
      for (size_t j = 0; j < of_head; ++j) total += exp_nonpositive(samples[first + j] - highest);
      s.weight = exp_nonpositive(samples[at + 2 * all + i] - highest) / total;
      found[i] = s;
    }
    const size_t width = y.width(), each = width / a.heads;
    for (size_t c = 0; c < width; ++c) {
      size_t at = c / each * of_head, first = row / queries * tokens;
      Real sum = 0.0f;
      for (const DeformableLevel& grid : a.levels) {
        for (size_t i = 0; i < a.points; ++i, ++at) {
          sum += found[at].weight * sample_at(value, found[at], first, grid, c);
        }
        first += size_t{grid.height} * grid.width;
      }
      y.put(row * width + c, sum);
    }
  }
  return true;
}

constexpr TwinOp kGridTwins[] = {{"conv", twin_conv},
                                 {"deformable_attention", twin_deformable_attention},
                                 {"grid_distances", twin_grid_distances},
                                 {"max_pool", twin_max_pool},
                                 {"resize_grid", twin_resize_grid},
                                 {"unfold", twin_unfold}};

}  // namespace

std::span<const TwinOp> grid_twins() {
  return kGridTwins;
}

}  // namespace vkformer::conformance
