// Matrix products: over K from the first to the last. Experts and recurrent cells are made of
// these.
#include <algorithm>

#include "base/weight_block.h"
#include "conformance/twin/twin_run.h"
#include "ops/matmul_lowering.h"
#include "ops/node_attrs.h"
#include "ops/recurrent_cell.h"
#include "weights/pack_matrix.h"

namespace vkformer::conformance {

// Weight (k, n) of a packed matrix of `depth` rows, in any format.
Real packed_weight(const Memory& weight, MatrixFormat format, size_t k, size_t n, size_t depth) {
  HostArithmetic h;
  if (format == MatrixFormat::kF32) return weight[packed_index(k, n, depth)];
  if (format == MatrixFormat::kF16) {
    const size_t at = packed_index(k, n, depth);
    return from_half(h, weight.words[at / 2] >> (16 * (at % 2)) & 0xffffu);
  }
  // shaders/params/weight_blocks.h, all in words.
  const BlockTraits of = block_traits(format);
  const size_t column = n % kPanelColumns, group = column / 8;
  const size_t run_words = of.bits == 16 ? 16 : (of.bits == 8 ? 8 : 4);
  const size_t index = k / kBlockSteps;
  const size_t super =
      n / kPanelColumns * panel_words(format, depth) +
      index / kBlocksOfSuper * (size_t{kBlocksOfSuper} * block_words(format) + of.super_words);
  const size_t block =
      super + of.super_words + index % kBlocksOfSuper * size_t{block_words(format)};
  const size_t scales_at = block + size_t{64} * of.bits;
  const size_t step = k % 4, word = column % 4, half = column / 4 % 2;
  const size_t run_of_block = k % kBlockSteps / 4;
  const size_t run = block + (run_of_block * 8 + group) * run_words;
  const auto scale_at = [&](size_t at) {
    const uint32_t bits = weight.words[at] >> (16 * half) & 0xffffu;
    return of.half_scales && of.bits != 16 ? from_half(h, bits) : Real::of_bits(bits << 16);
  };
  const auto real = [](auto value) { return Real(static_cast<float>(value)); };
  if (of.bits == 16) return scale_at(run + 4 * step + word);
  const auto byte_at = [&](size_t at) { return weight.words[at] >> (8 * word) & 0xffu; };
  const size_t parts = scales_at + of.scale_words * group;
  const size_t late = of.scale_words == 4 && k % kBlockSteps >= kBlockSteps / 2 ? 2 : 0;
  Real scale, offset = 0.0f;
  if (format == MatrixFormat::kMxfp4) {
    scale = Real::of_bits((std::max(byte_at(parts + half), 2u) - 1) << 23);
  } else if (has_supers(format)) {
    scale = scale_at(super + 4 * group + word);
    const uint32_t part = byte_at(parts + late + half);
    if (!super_minima(format)) {
      scale = scale * real(static_cast<int8_t>(part));
      offset = real(-static_cast<float>(of.offset)) * scale;
    } else {
      const uint32_t below = format == MatrixFormat::kQ2K
                                 ? part >> 4
                                 : part >> 6 | (weight.words[parts + 2] >> (4 * (column % 8)) & 15u)
                                                   << 2;
      scale = scale * real(format == MatrixFormat::kQ2K ? part & 15u : part & 63u);
      offset = real(-1) * scale_at(super + 32 + 4 * group + word) * real(below);
    }
  } else {
    scale = scale_at(scales_at + 4 * group + word);
    offset = of.minima ? scale_at(scales_at + 4 * group + word + 32)
                       : real(-static_cast<float>(of.offset)) * scale;
  }
  if (of.bits == 8) {
    return scale * real(static_cast<int8_t>(weight.words[run + column % 8] >> (8 * step) & 0xffu));
  }
  const uint32_t base = base_bits(format);
  const size_t by_group = 8 * group + run_of_block;  // of words that lie by group and then by run
  const auto pair_at = [&](size_t plane) {
    return weight.words[plane + 2 * by_group + half] >> (8 * step + 2 * word) & 3u;
  };
  uint32_t value =
      base == 2 ? pair_at(block) : weight.words[run + word] >> (16 * half + 4 * step) & 15u;
  if (format == MatrixFormat::kMxfp4) return scale * real(doubled_e2m1(value));
  if (format == MatrixFormat::kIq4Nl || format == MatrixFormat::kIq4Xs) {
    return scale * real(iq4_value(value));
  }
  const size_t high = block + size_t{64} * base;
  if (of.bits - base == 1) {
    value |= (weight.words[high + by_group] >> (8 * step + column % 8) & 1u) << base;
  } else if (of.bits - base == 2) {
    value |= pair_at(high) << base;
  }
  return real(value) * scale + offset;
}

namespace {

// What follows the sum of a product; see shaders/include/matmul_finish.glsl.
struct Finish {
  Real alpha, bias = 0.0f, addend = 0.0f;
  ActivationKind kind;
  bool after;  // the addend comes after the activation
};
Real finished(Real sum, const Finish& f) {
  Real x = f.alpha * sum + f.bias;
  if (!f.after) x += f.addend;
  x = activated(x, f.kind);
  return f.after ? x + f.addend : x;
}

// A linear layer, whose weight may be cut into slices of columns.
bool linear_product(TwinRun& run, const Node& node, const MatmulNodeAttrs& a) {
  const Memory& x = run.in(node, 0);
  const size_t depth = a.weight.k, columns = a.weight.n;
  const size_t rows = x.words.size() / depth;
  std::vector<Real> weights(depth * columns);  // (N, K)
  std::vector<Real> biases(columns, Real(0.0f));
  for (const LinearSlice& slice : slices_of(a.weight)) {
    const Memory& w = run.of(slice.tensor);
    for (size_t n = 0; n < slice.n; ++n) {
      const size_t column = slice.first + n;
      if (slice.bias_offset != ~0u) biases[column] = w[slice.bias_offset + n];
      for (size_t k = 0; k < depth; ++k) {
        weights[column * depth + k] = packed_weight(w, slice.format, k, n, depth);
      }
    }
  }
  const bool gated = a.gate == GatePairs::kPairs;
  Memory& y = run.out(node);
  for (size_t m = 0; m < rows; ++m) {
    Real gate;
    for (size_t n = 0; n < columns; ++n) {
      Real sum = 0.0f;
      for (size_t k = 0; k < depth; ++k) sum += x[m * depth + k] * weights[n * depth + k];
      Finish f{
          .alpha = a.matmul.alpha, .bias = biases[n], .kind = a.matmul.activation, .after = true};
      if (gated) {
        if (n % 2 != 0) f.kind = ActivationKind::kNone;
        const Real value = activated(f.alpha * sum + f.bias, f.kind);
        if (n % 2 != 0) y.put((m * columns + n) / 2, gate * value);
        gate = value;
        continue;
      }
      if (TwinRun::has(node, 2) && a.third != MatmulNodeAttrs::Third::kGains) {
        f.addend = Real(a.matmul.beta) * run.in(node, 2)[m * columns + n];
      }
      y.put(m * columns + n, finished(sum, f));
    }
  }
  return true;
}

// Element `at` of y's batch and row as one of c, which broadcasts.
size_t broadcast_place(const Shape& from, const Shape& to, size_t at) {
  size_t index = 0, stride = 1;
  for (size_t back = 1; back <= to.size(); ++back) {
    const auto size = static_cast<size_t>(to[to.size() - back]);
    const size_t place = at % size;
    at /= size;
    if (back > from.size()) continue;
    const auto own = static_cast<size_t>(from[from.size() - back]);
    if (own != 1) index += place * stride;
    stride *= own;
  }
  return index;
}

bool plain_product(TwinRun& run, const Node& node, const MatmulNodeAttrs& form) {
  const MatmulAttrs& attrs = form.matmul;
  const Memory &a = run.in(node, 0), &b = run.in(node, 1);
  Memory& y = run.out(node);
  const size_t ra = a.shape.size(), rb = b.shape.size();
  const auto depth = static_cast<size_t>(a.shape[ra - (attrs.trans_a ? 2 : 1)]);
  const auto rows = static_cast<size_t>(y.shape[y.shape.size() - 2]);
  const size_t columns = y.width();
  const Shape batch(y.shape.begin(), y.shape.end() - 2);
  const Shape batch_a(a.shape.begin(), a.shape.end() - 2);
  const Shape batch_b(b.shape.begin(), b.shape.end() - 2);
  if (ra < 2 || rb < 2 || rows * columns == 0) return false;
  for (size_t i = 0; i < y.words.size(); ++i) {
    const size_t matrix = i / (rows * columns), m = i / columns % rows, n = i % columns;
    const size_t at_a = broadcast_place(batch_a, batch, matrix) * rows * depth;
    const size_t at_b = broadcast_place(batch_b, batch, matrix) * depth * columns;
    Real sum = 0.0f;
    for (size_t k = 0; k < depth; ++k) {
      sum += a[at_a + (attrs.trans_a ? k * rows + m : m * depth + k)] *
             b[at_b + (attrs.trans_b ? n * depth + k : k * columns + n)];
    }
    Finish f{.alpha = attrs.alpha, .kind = attrs.activation, .after = false};
    if (TwinRun::has(node, 2)) {
      const Memory& c = run.in(node, 2);
      f.addend = Real(attrs.beta) * c[broadcast_place(c.shape, y.shape, i)];
    }
    y.put(i, finished(sum, f));
  }
  return true;
}

bool twin_matmul(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<MatmulNodeAttrs>(node);
  if (a.norm != kNormNone) return false;  // plans of this precision have none in front
  return a.weight.tensor == kNoTensor ? plain_product(run, node, a) : linear_product(run, node, a);
}

// Column n of expert `expert`, of a row of `depth` elements.
Real expert_sum(const TwinRun& run, const ExpertWeight& weight, size_t expert, size_t n,
                const std::vector<Real>& x, Real& bias) {
  const size_t panels = (weight.n + kPanelColumns - 1) / kPanelColumns;
  const size_t column = expert * panels * kPanelColumns + n, depth = weight.all.k;
  Real sum = 0.0f;
  for (const LinearSlice& slice : slices_of(weight.all)) {
    if (column < slice.first || column >= slice.first + slice.n) continue;
    const Memory& w = run.of(slice.tensor);
    bias = slice.bias_offset != ~0u ? w[slice.bias_offset + column - slice.first] : Real(0.0f);
    for (size_t k = 0; k < depth; ++k) {
      sum += x[k] * packed_weight(w, slice.format, k, column - slice.first, depth);
    }
  }
  return sum;
}

bool twin_head_linear(TwinRun& run, const Node& node) {
  const auto& [attrs, weight] = attrs_of<HeadLinearNodeAttrs>(node);
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  for (size_t i = 0; i < y.words.size(); ++i) {
    const size_t row = i / y.width(), head = i % y.width() / weight.n;
    std::vector<Real> columns(weight.all.k);
    for (size_t k = 0; k < columns.size(); ++k) {
      columns[k] = x[row * x.width() + attrs.first + head * attrs.stride + k];
    }
    Real bias;
    const size_t matrix = attrs.sharing > 0 ? 0 : head;
    const Real sum = expert_sum(run, weight, matrix, i % weight.n, columns, bias);
    y.put(i, Real(1.0f) * sum + bias + 0.0f);
  }
  return true;
}

// What an expert's gates and activations leave of the first product.
std::vector<Real> expert_hidden(const TwinRun& run, const ExpertsNodeAttrs& own, size_t expert,
                                const std::vector<Real>& x) {
  const ExpertsAttrs& a = own.attrs;
  std::vector<Real> y(own.up.n);
  for (size_t n = 0; n < y.size(); ++n) {
    Real bias;
    const Real sum = expert_sum(run, own.up, expert, n, x, bias);
    y[n] = Real(1.0f) * sum + bias;
  }
  if (a.gate == GatePairs::kNo) {
    for (Real& v : y) v = activated(v + 0.0f, a.activation);
    return y;
  }
  std::vector<Real> hidden;
  for (size_t n = 0; n < y.size(); n += 2) {
    if (a.gate_limit == 0) {
      hidden.push_back(activated(y[n] + 0.0f, a.activation) * (y[n + 1] + 0.0f));
      continue;
    }
    const Real gate = y[n].is_nan() || !(y[n] > a.gate_limit) ? y[n] : Real(a.gate_limit);
    hidden.push_back(activated(gate, a.activation) *
                     (between(y[n + 1], -a.gate_limit, a.gate_limit) + 1.0f));
  }
  return hidden;
}

bool twin_experts(TwinRun& run, const Node& node) {
  const auto& own = attrs_of<ExpertsNodeAttrs>(node);
  const ExpertsAttrs& a = own.attrs;
  const Memory &x = run.in(node, kExpertsX), &routes = run.in(node, kExpertsRoutes);
  Memory& y = run.out(node);
  const size_t width = x.width();
  const auto entries = static_cast<size_t>(routes.shape[routes.shape.size() - 2]);
  for (size_t r = 0; r < x.rows(); ++r) {
    std::vector<Real> row(width), sums(width, Real(0.0f));
    for (size_t i = 0; i < width; ++i) row[i] = x[r * width + i];
    for (size_t choice = 0; choice < a.choices; ++choice) {
      const size_t route = 2 * (r * entries + choice), expert = routes.words[route];
      if (expert >= own.up.experts) return false;
      const std::vector<Real> hidden = expert_hidden(run, own, expert, row);
      for (size_t i = 0; i < width; ++i) {
        Real bias;
        const Real sum = expert_sum(run, own.down, expert, i, hidden, bias);
        sums[i] = routes[route + 1] * (Real(1.0f) * sum + bias + 0.0f) + sums[i];
      }
    }
    for (size_t i = 0; i < width; ++i) {
      const size_t at = r * width + i;
      Real before = 0.0f;
      const bool residual = TwinRun::has(node, kExpertsResidual);
      if (residual) before = run.in(node, kExpertsResidual)[at];
      const bool always = TwinRun::has(node, kExpertsAlways);
      if (always) {
        const Real weight = routes[2 * (r * entries + a.choices) + 1];
        const Real one = (weight * run.in(node, kExpertsAlways)[at] + 0.0f) * a.scale;
        before = residual ? one + before : one;
      }
      y.put(at, residual || always ? sums[i] * a.scale + before : sums[i] * a.scale);
    }
  }
  return true;
}

// shaders/include/recurrent_gates.glsl: the new h, and what the unit carries.
struct CellResult {
  Real h, carry;
};
CellResult cell_update(bool lstm, const Real (&x)[4], const Real (&s)[4], Real carry) {
  Real open[4];
  for (size_t e = 0; e < 4; ++e) open[e] = activated(x[e] + s[e], ActivationKind::kSigmoid);
  const auto tanh_of = [](Real v) { return activated(v, ActivationKind::kTanh); };
  Real value = tanh_of(x[2] + (lstm ? Real(1.0f) : open[0]) * s[2]);
  if (lstm) {
    const Real cell = open[1] * carry + open[0] * value;
    return {open[3] * tanh_of(cell), cell};
  }
  const Real h = (Real(1.0f) - open[1]) * value + open[1] * carry;
  return {h, h};
}

bool twin_recurrent_cell(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<RecurrentCellAttrs>(node);
  if (!run.knows(node.outputs[0])) return false;
  const Memory &gates = run.in(node, 0), &states = run.in(node, 1);
  Memory &carry = run.out(node, 0), &y = run.out(node, 1);
  const size_t width = y.width(), count = gates_of(a.cell);
  const size_t stride = a.stride == 0 ? count * width : a.stride;
  for (size_t at = 0; at < y.words.size(); ++at) {
    const size_t row = at / width, u = at % width;
    Real x[4] = {0.0f, 0.0f, 0.0f, 0.0f}, s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (size_t g = 0; g < count; ++g) {
      x[g] = gates[a.offset + row * stride + g * width + u];
      s[g] = states[(row * count + g) * width + u];
    }
    const CellResult next = cell_update(a.cell == CellKind::kLstm, x, s, carry[at]);
    carry.put(at, next.carry);
    y.put(at, next.h);
  }
  return true;
}

bool twin_recurrence(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<RecurrenceNodeAttrs>(node);
  const Memory &gates = run.in(node, 0), &w = run.in(node, 1);
  Memory& y = run.out(node);
  const bool lstm = a.cell == CellKind::kLstm;
  const size_t width = a.weight.k, count = gates_of(a.cell), state = width * states_of(a.cell);
  const auto tokens = static_cast<size_t>(y.shape[1]);
  for (size_t row = 0; row < static_cast<size_t>(y.shape[0]); ++row) {
    std::vector<Real> before(state, Real(0.0f));
    for (size_t i = 0; TwinRun::has(node, 2) && i < state; ++i) {
      before[i] = run.in(node, 2)[row * state + i];
    }
    for (size_t t = 0; t < tokens; ++t) {
      const size_t at = row * tokens + t;
      for (size_t u = 0; u < width; ++u) {
        Real x[4] = {0.0f, 0.0f, 0.0f, 0.0f}, s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (size_t g = 0; g < count; ++g) {
          const size_t n = g * width + u;
          x[g] = gates[at * count * width + n];
          if (a.weight.bias_offset != ~0u) s[g] = w[a.weight.bias_offset + n];
          for (size_t k = 0; k < width; ++k) {
            s[g] += before[k] * packed_weight(w, a.weight.format, k, n, width);
          }
        }
        const CellResult next = cell_update(lstm, x, s, before[lstm ? width + u : u]);
        y.put(at * state + u, next.h);
        if (lstm) y.put(at * state + width + u, next.carry);
      }
      for (size_t i = 0; i < state; ++i) before[i] = y[at * state + i];
    }
  }
  return true;
}

constexpr TwinOp kProductTwins[] = {{"experts", twin_experts},
                                    {"head_linear", twin_head_linear},
                                    {"matmul", twin_matmul},
                                    {"recurrence", twin_recurrence},
                                    {"recurrent_cell", twin_recurrent_cell}};

}  // namespace

std::span<const TwinOp> product_twins() {
  return kProductTwins;
}

}  // namespace vkformer::conformance
