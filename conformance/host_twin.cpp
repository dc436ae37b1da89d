#include "conformance/host_twin.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "conformance/host_real.h"
#include "ops/combine.h"
#include "ops/embedding.h"
#include "ops/fusion.h"
#include "ops/gated_activation.h"
#include "ops/layer_norm.h"
#include "ops/log_softmax.h"
#include "ops/matmul_lowering.h"
#include "ops/mean_pool.h"
#include "ops/rms_norm.h"
#include "ops/row_kernel.h"
#include "ops/softmax.h"
#include "plan/device_caps.h"
#include "weights/pack_matrix.h"

namespace vkformer::conformance {
namespace {

// A tensor as 32-bit words, which are floats where it has such.
struct Memory {
  Shape shape;
  std::vector<uint32_t> words;
  Real operator[](size_t i) const { return Real::of_bits(words[i]); }
  void put(size_t i, Real x) { words[i] = x.bits(); }
  size_t width() const { return static_cast<size_t>(shape.back()); }
  size_t rows() const { return width() == 0 ? 0 : words.size() / width(); }
};

// Sums of every 32nd element, then a tree over these; more for rows of some 250,000 elements.
class RowSum {
 public:
  explicit RowSum(size_t width)
      : lanes_(row_local_size(reproducible_caps({}), static_cast<uint32_t>(width))) {}

  void add(size_t column, Real x) { lanes_[column % lanes_.size()] += x; }
  Real total() {
    for (size_t step = lanes_.size() / 2; step > 0; step /= 2) {
      for (size_t lane = 0; lane < step; ++lane) lanes_[lane] += lanes_[lane + step];
    }
    return lanes_[0];
  }

 private:
  std::vector<Real> lanes_;
};

// (h - mean) / sqrt(variance + epsilon) in two corrected passes.
std::vector<Real> normed_row(const std::vector<Real>& row, Real epsilon) {
  const Real count = static_cast<float>(row.size());
  RowSum sum(row.size()), rests(row.size()), squares(row.size());
  for (size_t i = 0; i < row.size(); ++i) sum.add(i, row[i]);
  const Real rough = sum.total() / count;
  for (size_t i = 0; i < row.size(); ++i) {
    const Real difference = row[i] - rough;
    rests.add(i, difference);
    squares.add(i, difference * difference);
  }
  const Real rest = rests.total() / count;
  const Real variance = at_least(squares.total() / count - rest * rest, 0.0f);
  const Real scale = inverse_root(variance + epsilon);
  std::vector<Real> y;
  for (const Real x : row) y.push_back(((x - rough) - rest) * scale);
  return y;
}

// Weight (k, n) of a packed matrix of `depth` rows, in any format.
Real packed_weight(const Memory& weight, MatrixFormat format, size_t k, size_t n, size_t depth) {
  HostArithmetic h;
  if (format == MatrixFormat::kF32) return weight[packed_index(k, n, depth)];
  if (format == MatrixFormat::kF16) {
    const size_t at = packed_index(k, n, depth);
    return from_half(h, weight.words[at / 2] >> (16 * (at % 2)) & 0xffffu);
  }
  // shaders/params/weight_blocks.h, all in words.
  const size_t column = n % kPanelColumns, group = column / 8;
  const size_t run_words =
      format == MatrixFormat::kBF16 ? 16 : (format == MatrixFormat::kQ8 ? 8 : 4);
  const size_t scales_at = 8 * 8 * run_words;
  const size_t scale_words = format == MatrixFormat::kBF16 ? 0 : 32;
  const size_t block_words =
      scales_at + (format == MatrixFormat::kQ4M ? 2 * scale_words : scale_words);
  const size_t blocks = (depth + kBlockSteps - 1) / kBlockSteps;
  const size_t block = (n / kPanelColumns * blocks + k / kBlockSteps) * block_words;
  const size_t step = k % 4, word = column % 4, half = column / 4 % 2;
  const size_t run = block + (k % kBlockSteps / 4 * 8 + group) * run_words;
  const auto bfloat = [&](size_t at) {
    return Real::of_bits(half == 0 ? weight.words[at] << 16 : weight.words[at] & 0xffff0000u);
  };
  if (format == MatrixFormat::kBF16) return bfloat(run + 4 * step + word);
  const Real scale = bfloat(block + scales_at + 4 * group + word);
  if (format == MatrixFormat::kQ8) {
    const auto value = static_cast<int8_t>(weight.words[run + column % 8] >> (8 * step) & 0xffu);
    return scale * Real(value);
  }
  const uint32_t value = weight.words[run + word] >> (16 * half + 4 * step) & 15u;
  const Real offset = format == MatrixFormat::kQ4M
                          ? bfloat(block + scales_at + 4 * group + word + scale_words)
                          : Real(-8.0f) * scale;
  return Real(static_cast<float>(value)) * scale + offset;
}

// One pass over the nodes.
class Twin {
 public:
  Twin(const Graph& graph, const TensorMap& inputs) : graph_(graph) {
    for (const auto& [name, tensor] : inputs) {
      const TensorId id = graph.find_external(name);
      if (id == kNoTensor) continue;
      Memory m{tensor.shape, std::vector<uint32_t>((tensor.bytes.size() + 3) / 4)};
      std::memcpy(m.words.data(), tensor.bytes.data(), tensor.bytes.size());
      memory_[id] = std::move(m);
    }
  }

  bool run() {
    return std::all_of(graph_.nodes().begin(), graph_.nodes().end(),
                       [&](const Node& node) { return run_node(node); });
  }

  TensorMap outputs() const {
    TensorMap map;
    for (const Node& node : graph_.nodes()) {
      for (const TensorId id : node.outputs) {
        const TensorDesc& t = graph_.tensor(id);
        if (t.kind != TensorKind::kExternal || t.dtype != DType::kF32) continue;
        Tensor tensor{t.dtype, t.shape, {}};
        const auto& words = memory_.at(id).words;
        tensor.bytes.resize(4 * words.size());
        std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
        map.emplace(t.name, std::move(tensor));
      }
    }
    return map;
  }

 private:
  struct Form {
    std::string_view op;
    bool (Twin::*run)(const Node& node);
  };
  static constexpr size_t kForms = 10;
  static const Form kAll[kForms];

  bool run_node(const Node& node) {
    for (const TensorId id : node.inputs) {
      if (id != kNoTensor && memory_.count(id) == 0) return false;
    }
    const auto* found = std::find_if(std::begin(kAll), std::end(kAll), [&](const Form& form) {
      return form.op == std::string_view(node.op_name);
    });
    return found != std::end(kAll) && (this->*found->run)(node);
  }

  const Memory& in(const Node& node, size_t i) const { return memory_.at(node.inputs[i]); }
  static bool has(const Node& node, size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNoTensor;
  }
  Memory& out(const Node& node) {
    const TensorDesc& t = graph_.tensor(node.outputs[0]);
    Memory& m = memory_[node.outputs[0]];
    m = {t.shape, std::vector<uint32_t>(static_cast<size_t>(element_count(t.shape)))};
    return m;
  }

  bool activation(const Node& node) {
    const ActivationKind kind = attrs_of<ActivationAttrs>(node).kind;
    const Memory& x = in(node, 0);
    Memory& y = out(node);
    for (size_t i = 0; i < y.words.size(); ++i) y.put(i, activated(x[i], kind));
    return true;
  }

  bool gated_activation(const Node& node) {
    const auto& attrs = attrs_of<GatedActivationAttrs>(node);
    const bool pairs = attrs.pairs == GatePairs::kPairs;
    const Memory& x = in(node, 0);
    Memory& y = out(node);
    const size_t width = y.width();
    for (size_t i = 0; i < y.words.size(); ++i) {
      const size_t base = i / width * 2 * width, column = i % width;
      const size_t gate = base + (pairs ? 2 * column : column);
      const size_t up = gate + (pairs ? 1 : width);
      y.put(i, activated(x[gate], attrs.kind) * activated(x[up], attrs.up));
    }
    return true;
  }

  bool combine(const Node& node) {
    const auto& attrs = attrs_of<CombineAttrs>(node);
    const Memory &a = in(node, 0), &b = in(node, 1);
    Memory& y = out(node);
    for (size_t i = 0; i < y.words.size(); ++i) {
      const Real second = attrs.most > 0 ? between(b[i], -attrs.most, attrs.most) : b[i];
      y.put(i, Real(attrs.alpha) * a[i] + Real(attrs.beta) * second);
    }
    return true;
  }

  bool layer_norm(const Node& node) {
    const Memory &x = in(node, 0), &gain_bias = in(node, 2);
    const bool residual = has(node, 1);
    Memory& y = out(node);
    const size_t width = y.width();
    std::vector<Real> row(width);
    for (size_t r = 0; r < y.rows(); ++r) {
      for (size_t i = 0; i < width; ++i) {
        const size_t at = r * width + i;
        row[i] = residual ? x[at] + in(node, 1)[at] : x[at];
      }
      const std::vector<Real> normed = normed_row(row, attrs_of<LayerNormAttrs>(node).epsilon);
      for (size_t i = 0; i < width; ++i) {
        y.put(r * width + i, normed[i] * gain_bias[i] + gain_bias[width + i]);
      }
    }
    return true;
  }

  bool rms_norm(const Node& node) {
    const Memory &x = in(node, 0), &gain = in(node, 1);
    Memory& y = out(node);
    const size_t width = y.width();
    for (size_t base = 0; base < y.words.size(); base += width) {
      RowSum squares(width);
      for (size_t i = 0; i < width; ++i) squares.add(i, x[base + i] * x[base + i]);
      const Real mean = squares.total() / static_cast<float>(width);
      const Real scale = inverse_root(mean + attrs_of<RmsNormAttrs>(node).epsilon);
      for (size_t i = 0; i < width; ++i) y.put(base + i, x[base + i] * scale * gain[i]);
    }
    return true;
  }

  static Real highest_of(const Memory& x, size_t base, size_t width) {
    Real highest = Real::of_bits(kSignBit | kInfinityBits);
    for (size_t i = 0; i < width; ++i) highest = x[base + i] > highest ? x[base + i] : highest;
    return highest;
  }

  bool log_softmax(const Node& node) {
    const Memory& x = in(node, 0);
    Memory& y = out(node);
    const size_t width = y.width();
    for (size_t base = 0; base < y.words.size(); base += width) {
      const Real highest = highest_of(x, base, width);
      RowSum sum(width);
      for (size_t i = 0; i < width; ++i) {
        const Real value = x[base + i];
        if (!value.is_negative_infinity()) sum.add(i, exp_nonpositive(value - highest));
      }
      const Real log_sum = log_of_sum(sum.total());
      for (size_t i = 0; i < width; ++i) {
        const Real value = x[base + i];
        const Real result = value.is_negative_infinity() ? value : value - highest - log_sum;
        y.put(base + i, log_sum.is_nan() ? log_sum : result);
      }
    }
    return true;
  }

  // Without terms; those of masks and biases have none yet.
  bool softmax(const Node& node) {
    const auto& attrs = attrs_of<SoftmaxAttrs>(node);
    const ScoreTermsParams& t = attrs.terms;
    const uint32_t offsets[] = {t.key_mask_offset, t.mask_offset, t.bias_offset, t.slopes_offset,
                                t.sparse_offset};
    const bool plain = std::all_of(std::begin(offsets), std::end(offsets),
                                   [](uint32_t offset) { return offset == VKF_NO_TERM; });
    if (!plain || t.flags != 0) return false;
    const Real inverse = 1.0f / attrs.temperature;
    const Memory& x = in(node, 0);
    Memory& y = out(node);
    const size_t width = y.width();
    for (size_t base = 0; base < y.words.size(); base += width) {
      const Real highest = highest_of(x, base, width);
      RowSum sum(width);
      std::vector<Real> weights(width);
      for (size_t i = 0; i < width; ++i) {
        weights[i] = exp_nonpositive((x[base + i] - highest) * inverse - 0.0f);
        sum.add(i, x[base + i].is_negative_infinity() ? Real(0.0f) : weights[i]);
      }
      const Real total = sum.total();
      const Real scale = total.bits() == 0 ? Real(0.0f) : Real(1.0f) / total;
      for (size_t i = 0; i < width; ++i) {
        const Real value = scale.is_nan() ? scale : weights[i] * scale;
        y.put(base + i, x[base + i].is_negative_infinity() ? Real(0.0f) : value);
      }
    }
    return true;
  }

  bool mean_pool(const Node& node) {
    const auto& attrs = attrs_of<MeanPoolAttrs>(node);
    const Memory& x = in(node, 0);
    Memory& y = out(node);
    const auto tokens = static_cast<size_t>(x.shape[1]);
    const size_t width = y.width(), words = (tokens + 31) / 32;
    for (size_t batch = 0; batch < y.rows(); ++batch) {
      std::vector<Real> pooled(width, Real(0.0f));
      uint32_t count = 0;
      Real weight = 0.0f;
      for (size_t t = 0; t < tokens; ++t) {
        if (has(node, 1) && (in(node, 1).words[batch * words + t / 32] >> (t % 32) & 1u) == 0) {
          continue;
        }
        const Real number = static_cast<float>(t + 1);
        for (size_t i = 0; i < width; ++i) {
          pooled[i] = with_token(attrs.kind, pooled[i], x[(batch * tokens + t) * width + i], number,
                                 count == 0);
        }
        if (attrs.kind == PoolKind::kWeightedMean) weight += number;
        ++count;
      }
      const Real divisor = pool_divisor(attrs.kind, static_cast<float>(count), weight);
      for (Real& p : pooled) p = count == 0 ? Real(0.0f) : p / divisor;
      if (attrs.normalize == MeanPoolAttrs::Normalize::kOn) normalize(pooled);
      for (size_t i = 0; i < width; ++i) y.put(batch * width + i, pooled[i]);
    }
    return true;
  }
  static Real with_token(PoolKind kind, Real pooled, Real value, Real number, bool first) {
    if (kind == PoolKind::kLast) return value;
    if (kind == PoolKind::kMax) {
      const bool stays = pooled.is_nan() || (!value.is_nan() && !(value > pooled));
      return first || !stays ? value : pooled;
    }
    if (kind == PoolKind::kWeightedMean) return pooled + number * value;
    return pooled + value;
  }
  static Real pool_divisor(PoolKind kind, Real count, Real weight) {
    if (kind == PoolKind::kLast || kind == PoolKind::kMax) return 1.0f;
    if (kind == PoolKind::kWeightedMean) return weight;
    return kind == PoolKind::kMeanSqrtLength ? root(count) : count;
  }
  static void normalize(std::vector<Real>& row) {
    // The row is read as the mean of one token.
    for (Real& x : row) x = (Real(0.0f) + x) / 1.0f;
    RowSum squares(row.size());
    for (size_t i = 0; i < row.size(); ++i) squares.add(i, row[i] * row[i]);
    const Real divisor = at_least(root(squares.total()), 1e-12f);
    for (Real& x : row) x = x / divisor;
  }

  // Full passes over one table in f32 or f16, with or without a norm.
  bool embedding(const Node& node) {
    const auto& a = attrs_of<EmbeddingAttrs>(node);
    const bool positions = has(node, 2);
    const bool normed = has(node, kEmbeddingNorm);
    const bool rare = has(node, 3) || a.slice_rows < a.vocabulary || in_blocks(a.format) ||
                      a.types != 0 || a.from == EmbeddingAttrs::Positions::kPlane ||
                      a.row_scales == EmbeddingAttrs::RowScales::kPlane;
    if (rare) return false;
    const Memory &ids = in(node, 0), &table = in(node, 1);
    const DType stored = graph_.tensor(node.inputs[1]).dtype;
    const bool halves = a.format == MatrixFormat::kF16 || stored == DType::kF16;
    Memory& y = out(node);
    const size_t width = a.width, tokens = a.tokens != 0 ? a.tokens : ids.width();
    const bool strided = a.row_stride != 0 || a.col_stride != 0;
    const size_t row_stride = strided ? a.row_stride : width,
                 col_stride = strided ? a.col_stride : 1;
    const size_t panel = a.panel_stride != 0 ? a.panel_stride : kPanelColumns * row_stride;
    for (size_t r = 0; r < y.rows(); ++r) {
      const size_t id = ids.words[r], position = a.position_offset + r % tokens;
      const bool exists =
          id < a.vocabulary && (!positions || position < in(node, 2).words.size() / width);
      std::vector<Real> row(width, Real::of_bits(kNanBits));
      for (size_t d = 0; exists && d < width; ++d) {
        const size_t at =
            id / kPanelColumns * panel + id % kPanelColumns * row_stride + d * col_stride;
        HostArithmetic h;
        const Real value =
            halves ? Real(from_half(h, table.words[at / 2] >> (16 * (at % 2)) & 0xffffu))
                   : table[at];
        row[d] = value * a.scale;
        if (positions) row[d] += in(node, 2)[position * width + d];
      }
      if (normed) {
        const Memory& gain_bias = in(node, kEmbeddingNorm);
        row = normed_row(row, a.norm_epsilon);
        for (size_t d = 0; d < width; ++d) row[d] = row[d] * gain_bias[d] + gain_bias[width + d];
      }
      for (size_t d = 0; d < width; ++d) y.put(r * width + d, row[d]);
    }
    return true;
  }

  // What follows the sum of a product; see shaders/include/matmul_finish.glsl.
  struct Finish {
    Real alpha, bias = 0.0f, addend = 0.0f;
    ActivationKind kind;
    bool after;  // the addend comes after the activation
  };
  static Real finished(Real sum, const Finish& f) {
    Real x = f.alpha * sum + f.bias;
    if (!f.after) x += f.addend;
    x = activated(x, f.kind);
    return f.after ? x + f.addend : x;
  }

  bool matmul(const Node& node) {
    const auto& a = attrs_of<MatmulNodeAttrs>(node);
    if (a.norm != kNormNone || !a.weight.slices.empty()) return false;
    return a.weight.tensor == kNoTensor ? plain_product(node, a) : linear(node, a);
  }

  bool linear(const Node& node, const MatmulNodeAttrs& a) {
    const Memory &x = in(node, 0), &w = in(node, 1);
    const size_t depth = a.weight.k, columns = a.weight.n;
    const size_t rows = x.words.size() / depth;
    std::vector<Real> weights(depth * columns);  // (N, K)
    for (size_t n = 0; n < columns; ++n) {
      for (size_t k = 0; k < depth; ++k) {
        weights[n * depth + k] = packed_weight(w, a.weight.format, k, n, depth);
      }
    }
    const bool gated = a.gate == GatePairs::kPairs;
    Memory& y = out(node);
    for (size_t m = 0; m < rows; ++m) {
      Real gate;
      for (size_t n = 0; n < columns; ++n) {
        Real sum = 0.0f;
        for (size_t k = 0; k < depth; ++k) sum += x[m * depth + k] * weights[n * depth + k];
        Finish f{.alpha = a.matmul.alpha, .kind = a.matmul.activation, .after = true};
        if (a.weight.bias_offset != ~0u) f.bias = w[a.weight.bias_offset + n];
        if (gated) {
          if (n % 2 != 0) f.kind = ActivationKind::kNone;
          const Real value = activated(f.alpha * sum + f.bias, f.kind);
          if (n % 2 != 0) y.put((m * columns + n) / 2, gate * value);
          gate = value;
          continue;
        }
        if (has(node, 2)) f.addend = Real(a.matmul.beta) * in(node, 2)[m * columns + n];
        y.put(m * columns + n, finished(sum, f));
      }
    }
    return true;
  }

  // Element `at` of y's batch and row as one of c, which broadcasts.
  static size_t broadcast(const Shape& from, const Shape& to, size_t at) {
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

  bool plain_product(const Node& node, const MatmulNodeAttrs& form) {
    const MatmulAttrs& attrs = form.matmul;
    const Memory &a = in(node, 0), &b = in(node, 1);
    Memory& y = out(node);
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
      const size_t at_a = broadcast(batch_a, batch, matrix) * rows * depth;
      const size_t at_b = broadcast(batch_b, batch, matrix) * depth * columns;
      Real sum = 0.0f;
      for (size_t k = 0; k < depth; ++k) {
        sum += a[at_a + (attrs.trans_a ? k * rows + m : m * depth + k)] *
               b[at_b + (attrs.trans_b ? n * depth + k : k * columns + n)];
      }
      Finish f{.alpha = attrs.alpha, .kind = attrs.activation, .after = false};
      if (has(node, 2)) {
        const Memory& c = in(node, 2);
        f.addend = Real(attrs.beta) * c[broadcast(c.shape, y.shape, i)];
      }
      y.put(i, finished(sum, f));
    }
    return true;
  }

  const Graph& graph_;
  std::map<TensorId, Memory> memory_;
};

const Twin::Form Twin::kAll[] = {
    {"activation", &Twin::activation}, {"combine", &Twin::combine},
    {"embedding", &Twin::embedding},   {"gated_activation", &Twin::gated_activation},
    {"layer_norm", &Twin::layer_norm}, {"log_softmax", &Twin::log_softmax},
    {"matmul", &Twin::matmul},         {"mean_pool", &Twin::mean_pool},
    {"rms_norm", &Twin::rms_norm},     {"softmax", &Twin::softmax}};

}  // namespace

std::optional<TensorMap> twin_outputs(const Graph& graph, const TensorMap& inputs) {
  const FusedGraph fused = fuse(graph, reproducible_caps({}), Precision::kReproducible);
  Twin twin(fused.graph, inputs);
  if (!twin.run()) return std::nullopt;
  return twin.outputs();
}

}  // namespace vkformer::conformance
