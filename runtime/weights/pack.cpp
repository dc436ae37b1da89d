#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"
#include "weights/pack_matrix.h"
#include "weights/quantise.h"
#include "weights/read_floats.h"
#include "weights/weight_table.h"

namespace vkformer {
namespace {

void store_float(std::span<std::byte> out, size_t word, float value) {
  std::memcpy(out.data() + word * 4, &value, 4);
}

// Half of a value that must fit: a finite weight that would become infinite is an error.
Status store_half(std::span<std::byte> out, size_t index, float value, const std::string& name) {
  const uint16_t bits = half_from_float(value);
  if ((bits & 0x7fff) == 0x7c00 && value - value == 0.0f) {
    return unsupported(message({"[", name, "] holds ", value,
                                ", beyond the 65504 of f16; load the model with f32 weights"}));
  }
  std::memcpy(out.data() + index * 2, &bits, 2);
  return {};
}

// Which of our rows each row of the stacked sources becomes, expert by expert.
std::vector<uint32_t> destinations(const WeightRow& row) {
  const auto matrices = static_cast<uint32_t>(std::max<int64_t>(1, row.experts));
  const auto rows = static_cast<uint32_t>(matrix_rows(row));
  const uint32_t filled = static_cast<uint32_t>(row.rows) / matrices;
  std::vector<uint32_t> to(size_t{matrices} * rows);
  for (uint32_t x = 0; x < matrices; ++x) {
    for (uint32_t r = 0; r < rows; ++r) {
      to[size_t{x} * rows + (row.row_order.empty() ? r : row.row_order[r])] = x * filled + r;
    }
  }
  return to;
}

bool in_slice(const PackedWeight& weight, uint32_t column) {
  return column >= weight.first_column && column < weight.first_column + weight.columns;
}

// What is done to the rows of a matrix and to their biases.
struct RowAffine {
  std::vector<float> scales;       // of the rows; empty: 1
  std::vector<float> bias_scales;  // of the biases; empty: 1
  std::vector<float> shifts;       // added to the biases then; empty: 0
};

float value_or(const std::vector<float>& values, int64_t row, float fallback) {
  return values.empty() ? fallback : values[static_cast<size_t>(row)];
}

// Rows [first, first + count) of a source; they become columns to[0] ... to[count - 1].
struct RowRange {
  int64_t first;
  int64_t count;
  const uint32_t* to;
  const RowAffine* affine;
  size_t base = 0;           // elements in front of the matrix
  int64_t first_affine = 0;  // of all stacked rows

  float scale(int64_t row) const { return value_or(affine->scales, first_affine + row, 1.0f); }
  // What becomes of a bias.
  float bias(int64_t row, float value) const {
    return value_or(affine->bias_scales, first_affine + row, 1.0f) * value +
           value_or(affine->shifts, first_affine + row, 0.0f);
  }
};

std::vector<float> floats_of(const Checkpoint& checkpoint, const std::string& name, size_t count) {
  const TensorView& view = *checkpoint.find(name);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(element_as_float(view, i));
  return values;
}

// A batch norm's running statistics as a scale and a shift (weights/fold_batch_norm.h).
Status fold_statistics(const WeightRow& row, const Checkpoint& checkpoint, RowAffine& affine) {
  const auto count = static_cast<size_t>(row.rows);
  const std::vector<float> gain = floats_of(checkpoint, row.batch_norm + ".weight", count);
  const std::vector<float> mean = floats_of(checkpoint, row.batch_norm + ".running_mean", count);
  const std::vector<float> variance = floats_of(checkpoint, row.batch_norm + ".running_var", count);
  for (size_t i = 0; i < count; ++i) {
    const double spread = double{variance[i]} + double{row.batch_norm_epsilon};
    if (!(spread > 0)) {
      return invalid_file(
          message({"[", row.batch_norm, ".running_var] in ",
                   checkpoint.file_of(row.batch_norm + ".running_var"), " is ", variance[i], " at ",
                   i, ", but a variance with its epsilon must be positive."}));
    }
    const double scale = double{gain[i]} / std::sqrt(spread);
    affine.scales.push_back(static_cast<float>(scale));
    affine.shifts.push_back(static_cast<float>(-scale * double{mean[i]}));
  }
  return {};
}

Result<RowAffine> affine_of(const WeightRow& row, const Checkpoint& checkpoint) {
  RowAffine affine;
  if (!row.row_scale.empty()) {
    affine.scales = floats_of(checkpoint, row.row_scale, static_cast<size_t>(row.rows));
    affine.bias_scales = affine.scales;
  }
  if (!row.row_scales.empty()) {
    affine.scales.resize(row.row_scales.size());
    for (size_t i = 0; i < row.row_scales.size(); ++i) {
      affine.scales[row.row_order.empty() ? i : row.row_order[i]] = row.row_scales[i];
    }
    affine.bias_scales = affine.scales;
  }
  if (!row.batch_norm.empty()) VKF_CHECK(fold_statistics(row, checkpoint, affine));
  return affine;
}

// Where a source's element of output feature n and input feature k is: n * n_stride + k * k_stride.
struct SourceStrides {
  size_t n;
  size_t k;
};

// N of a source (K, N), whose axes beyond the second count as one.
int64_t columns_of(const WeightRow& row, const TensorView& source) {
  if (row.stack == WeightRow::Stack::kStacked) return source.shape.back();
  return element_count(source.shape) / source.shape[0];
}

SourceStrides strides_of(const PackedWeight& weight, const TensorView& source) {
  if (weight.row.axes == WeightRow::Axes::kInOut) {
    return {1, static_cast<size_t>(columns_of(weight.row, source))};
  }
  return {static_cast<size_t>(weight.row.width), 1};
}

// Is the source quantized already, along K and in the weight's format?
bool has_blocks(const PackedWeight& weight, const TensorView& source) {
  return source.blocks != nullptr && source.blocks->format == weight.format &&
         is_quantised(weight.format) &&
         (weight.row.stack == WeightRow::Stack::kApart || source.blocks->mxfp4) &&
         source.blocks->blocks_down == (weight.row.axes == WeightRow::Axes::kInOut);
}

// Output feature `n` of the source as the blocks that the file has, which become a column of out.
Status pack_stored(const PackedWeight& weight, const TensorView& source, size_t n, size_t column,
                   std::span<std::byte> out) {
  const auto width = static_cast<size_t>(weight.row.width);
  for (size_t first = 0; first < width; first += kBlockSteps) {
    const WeightBlock block = quantised_block(source, n, first);
    if (!std::isfinite(block.scale) || !std::isfinite(block.minimum)) {
      return invalid_file(
          message({"[", weight.row.name, "] has a block of weights whose scale is ", block.scale,
                   " and whose minimum is ", block.minimum, "; both must be finite numbers."}));
    }
    store_block(out, {column, first / kBlockSteps, width}, block, weight.format);
  }
  return {};
}

// Output feature `index` of a range of the source as the blocks of a column of out.
Status pack_blocks(const PackedWeight& weight, const TensorView& source, const RowRange& range,
                   int64_t index, std::span<std::byte> out) {
  const auto n = static_cast<size_t>(range.first + index);
  const float scale = range.scale(index);
  const size_t column = range.to[index] - static_cast<size_t>(weight.first_column);
  const auto width = static_cast<size_t>(weight.row.width);
  if (has_blocks(weight, source) && scale == 1.0f) {
    return pack_stored(weight, source, range.base / width + n, column, out);
  }
  const SourceStrides strides = strides_of(weight, source);
  const size_t together = quantised_together(weight.format);
  std::array<float, kBlockSteps * kBlocksOfSuper> values{};
  for (size_t first = 0; first < width; first += together) {
    const std::span<float> some(values.data(), std::min(together, width - first));
    read_elements(source, range.base + n * strides.n + first * strides.k, strides.k, some);
    for (float& value : some) value *= scale;
    if (!fits_blocks(some, weight.format)) {
      return unsupported(
          message({"[", weight.row.name, "] holds a weight that is no number below ",
                   block_limit(weight.format), ", which ", format_name(weight.format),
                   " cannot store; load the model with f32 weights"}));
    }
    store_quantised(out, {column, first / kBlockSteps, width}, some, weight.format);
  }
  return {};
}

// Transposes rows of the (N, K), or by its axes (K, N), source into columns of out.
Status pack_columns(const PackedWeight& weight, const TensorView& source, const RowRange& range,
                    std::span<std::byte> out) {
  const auto width = static_cast<size_t>(weight.row.width);
  const SourceStrides strides = strides_of(weight, source);
  const auto slice_first = static_cast<uint32_t>(weight.first_column);
  std::vector<float> line(in_blocks(weight.format) ? 0 : width);
  for (int64_t n = 0; n < range.count; ++n) {
    if (!in_slice(weight, range.to[n])) continue;
    if (in_blocks(weight.format)) {
      VKF_CHECK(pack_blocks(weight, source, range, n, out));
      continue;
    }
    read_elements(source, range.base + static_cast<size_t>(range.first + n) * strides.n, strides.k,
                  line);
    for (size_t k = 0; k < width; ++k) {
      const float value = range.scale(n) * line[k];
      const size_t index = packed_index(k, range.to[n] - slice_first, width);
      if (weight.format == MatrixFormat::kF16) {
        VKF_CHECK(store_half(out, index, value, weight.row.name));
      } else {
        store_float(out, index, value);
      }
    }
  }
  return {};
}

// What one source gives to one matrix.
struct SourcePart {
  const TensorView& view;
  const TensorView* bias;  // or null
  RowRange range;
  int64_t first_bias;
};

Status pack_part(const PackedWeight& weight, const SourcePart& part, std::span<std::byte> out) {
  const RowRange& range = part.range;
  VKF_CHECK(pack_columns(weight, part.view, range, out));
  if (part.bias == nullptr) return {};
  for (int64_t i = 0; i < range.count; ++i) {
    if (!in_slice(weight, range.to[i])) continue;
    const size_t at = range.to[i] - static_cast<size_t>(weight.first_column);
    const float bias = element_as_float(*part.bias, static_cast<size_t>(part.first_bias + i));
    store_float(out, weight.bias_offset + at, weight.row.bias_scale * range.bias(i, bias));
  }
  return {};
}

// Source `s` of expert `x`'s matrix, or of the only one, without what is done to its rows.
SourcePart source_part(const WeightRow& row, const Checkpoint& checkpoint, size_t x, size_t s) {
  const bool stacked = row.stack == WeightRow::Stack::kStacked;
  const size_t index = stacked ? s : x * sources_of_matrix(row) + s;
  const TensorView& view = *checkpoint.find(row.sources[index]);
  const bool in_out = row.axes == WeightRow::Axes::kInOut;
  const int64_t own = in_out ? columns_of(row, view) : view.shape[stacked ? 1 : 0];
  const int64_t first = row.first_row < 0 ? 0 : row.first_row;
  const auto before = static_cast<int64_t>(stacked ? x : 0) * own;  // rows of other experts
  const bool biased = index < row.biases.size() && !row.biases[index].empty();
  SourcePart part{view,
                  biased ? checkpoint.find(row.biases[index]) : nullptr,
                  {first, row.first_row < 0 ? own : row.rows, nullptr, nullptr},
                  first + before};
  part.range.base = static_cast<size_t>(before * row.width);
  return part;
}

TensorView view_of(std::span<const float> values, Shape shape) {
  return {.dtype = DType::kF32, .shape = std::move(shape), .bytes = std::as_bytes(values)};
}

// A matrix that is computed, as if a file had it.
Status pack_made(const PackedWeight& weight, const Checkpoint& checkpoint,
                 std::span<std::byte> out) {
  const WeightRow& row = weight.row;
  VKF_ASSIGN(const MadeMatrix made, row.make(checkpoint));
  const bool biased = !row.biases.empty();
  const auto rows = static_cast<size_t>(row.rows);
  if (made.values.size() != rows * static_cast<size_t>(row.width) ||
      made.bias.size() != (biased ? rows : 0)) {
    return internal_error("[pack] a computed matrix has another size than its row");
  }
  const TensorView values = view_of(made.values, {row.rows, row.width});
  const TensorView bias = view_of(made.bias, {row.rows});
  const std::vector<uint32_t> to = destinations(row);
  const RowAffine affine;
  return pack_part(weight, {values, biased ? &bias : nullptr, {0, row.rows, to.data(), &affine}, 0},
                   out);
}

Status pack_linear(const PackedWeight& weight, const Checkpoint& checkpoint,
                   std::span<std::byte> out) {
  const WeightRow& row = weight.row;
  if (row.make) return pack_made(weight, checkpoint, out);
  const std::vector<uint32_t> to = destinations(row);
  VKF_ASSIGN(const RowAffine affine, affine_of(row, checkpoint));
  const auto matrices = static_cast<size_t>(std::max<int64_t>(1, row.experts));
  size_t column = 0;
  for (size_t x = 0; x < matrices; ++x) {
    for (size_t s = 0; s < sources_of_matrix(row); ++s) {
      SourcePart part = source_part(row, checkpoint, x, s);
      part.range.to = to.data() + column;  // its rows become columns from there on
      part.range.affine = &affine;
      part.range.first_affine = static_cast<int64_t>(column);
      VKF_CHECK(pack_part(weight, part, out));
      column += static_cast<size_t>(part.range.count);
    }
  }
  return {};
}

void pack_norm(const PackedWeight& weight, const Checkpoint& checkpoint, std::span<std::byte> out) {
  const auto width = static_cast<size_t>(weight.row.width);
  const TensorView& gain = *checkpoint.find(weight.row.sources[0]);
  const TensorView* bias =
      weight.row.biases.empty() ? nullptr : checkpoint.find(weight.row.biases[0]);
  for (size_t i = 0; i < width; ++i) {
    store_float(out, i, weight.row.gain_offset + element_as_float(gain, i));
    store_float(out, width + i, bias == nullptr ? 0.0f : element_as_float(*bias, i));
  }
}

}  // namespace

Status pack_weight(const PackedWeight& weight, const Checkpoint& checkpoint,
                   std::span<std::byte> out) {
  if (out.size() != weight.bytes) return internal_error("[pack] wrong size of the output");
  std::memset(out.data(), 0, out.size());
  if (weight.row.layout == WeightLayout::kLinear) return pack_linear(weight, checkpoint, out);
  if (weight.row.layout == WeightLayout::kNorm) {
    pack_norm(weight, checkpoint, out);
    return {};
  }
  if (!weight.row.computed.empty()) {
    std::memcpy(out.data(), weight.row.computed.data(), out.size());
    return {};
  }
  size_t word = 0;
  for (const std::string& source : weight.row.sources) {
    const TensorView& view = *checkpoint.find(source);
    const auto count = static_cast<size_t>(element_count(view.shape));
    const auto width = static_cast<size_t>(weight.row.width);
    const bool down = weight.row.axes == WeightRow::Axes::kInOut;
    for (size_t i = 0; i < count; ++i) {
      const size_t from = down ? i % width * (count / width) + i / width : i;
      store_float(out, word++, weight.row.gain_offset + element_as_float(view, from));
    }
  }
  return {};
}

}  // namespace vkformer
