#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"
#include "weights/pack_matrix.h"
#include "weights/quantize.h"
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

constexpr uint32_t kNoRow = ~0u;

// Which of our rows each row of the stacked sources becomes, expert by expert; kNoRow: none, in the
// part of a matrix.
std::vector<uint32_t> destinations(const WeightRow& row) {
  if (row.part) {
    std::vector<uint32_t> to(static_cast<size_t>(row.part->whole_rows), kNoRow);
    for (uint32_t r = 0; r < row.part->rows.size(); ++r) {
      const uint32_t whole = row.part->rows[r];
      to[row.row_order.empty() ? whole : row.row_order[whole]] = r;
    }
    return to;
  }
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

  // Of an output feature, counted through all sources.
  float scale(int64_t row) const { return value_or(scales, row, 1.0f); }
  float bias(int64_t row, float value) const {
    return value_or(bias_scales, row, 1.0f) * value + value_or(shifts, row, 0.0f);
  }

 private:
  static float value_or(const std::vector<float>& values, int64_t row, float fallback) {
    return values.empty() ? fallback : values[static_cast<size_t>(row)];
  }
};

// What one source gives to a matrix: its rows [first, first + count). These are the output features
// [stacked, stacked + count) of all sources one after the other.
struct SourcePart {
  const TensorView& view;
  const TensorView* bias;  // or null
  size_t base;             // elements before the matrix
  int64_t first;
  int64_t count;
  int64_t first_bias;
  int64_t stacked;
};

// Which row of which source becomes a column of the packed matrix.
struct ColumnSource {
  const SourcePart* part = nullptr;  // null: the column is filled up
  int64_t index = 0;                 // of the part's rows
};

// A matrix about to be packed.
struct PackingMatrix {
  const PackedWeight& weight;
  RowAffine affine;
  std::vector<ColumnSource> columns;  // of the slice
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
  return {static_cast<size_t>(stored_width(weight.row)), 1};
}

// The first input feature of the source that the weight has.
size_t first_input(const PackedWeight& weight) {
  return weight.row.part ? static_cast<size_t>(weight.row.part->first_input) : 0;
}

// Is the source quantized already, along K and in the weight's format?
bool has_blocks(const PackedWeight& weight, const TensorView& source) {
  return source.blocks != nullptr && source.blocks->format == weight.format &&
         is_quantized(weight.format) &&
         (weight.row.stack == WeightRow::Stack::kApart || source.blocks->mxfp4) &&
         source.blocks->blocks_down == (weight.row.axes == WeightRow::Axes::kInOut);
}

// Output feature `n` of the source as the blocks that the file has, which become a column of out.
Status pack_stored(const PackedWeight& weight, const TensorView& source, size_t n, size_t column,
                   std::span<std::byte> out) {
  const auto width = static_cast<size_t>(weight.row.width);
  for (size_t first = 0; first < width; first += kBlockSteps) {
    const WeightBlock block = quantized_block(source, n, first_input(weight) + first);
    if (!std::isfinite(block.scale) || !std::isfinite(block.minimum)) {
      return invalid_file(
          message({"[", weight.row.name, "] has a block of weights whose scale is ", block.scale,
                   " and whose minimum is ", block.minimum, "; both must be finite numbers."}));
    }
    store_block(out, {column, first / kBlockSteps, width}, block, weight.format);
  }
  return {};
}

// One column in blocks.
Status pack_blocks(const PackingMatrix& matrix, size_t column, std::span<std::byte> out) {
  const PackedWeight& weight = matrix.weight;
  const auto& [part, index] = matrix.columns[column];
  const auto n = static_cast<size_t>(part->first + index);
  const float scale = matrix.affine.scale(part->stacked + index);
  const auto width = static_cast<size_t>(weight.row.width);
  const size_t begin = first_input(weight);
  if (has_blocks(weight, part->view) && scale == 1.0f && begin % kBlockSteps == 0) {
    return pack_stored(weight, part->view, part->base / width + n, column, out);
  }
  const SourceStrides strides = strides_of(weight, part->view);
  const size_t together = quantized_together(weight.format);
  std::array<float, kBlockSteps * kBlocksOfSuper> values{};
  for (size_t first = 0; first < width; first += together) {
    const std::span<float> some(values.data(), std::min(together, width - first));
    const size_t from = part->base + n * strides.n + (begin + first) * strides.k;
    read_elements(part->view, from, strides.k, some);
    for (float& value : some) value *= scale;
    if (!fits_blocks(some, weight.format)) {
      return unsupported(
          message({"[", weight.row.name, "] holds a weight that is not a number below ",
                   block_limit(weight.format), ", which ", format_name(weight.format),
                   " cannot store; load the model with f32 weights"}));
    }
    store_quantized(out, {column, first / kBlockSteps, width}, some, weight.format);
  }
  return {};
}

// Steps [first, first + line.size()) of one column of f32 or f16.
Status pack_floats(const PackingMatrix& matrix, size_t column, size_t first, std::span<float> line,
                   std::span<std::byte> out) {
  const PackedWeight& weight = matrix.weight;
  const auto& [part, index] = matrix.columns[column];
  const SourceStrides strides = strides_of(weight, part->view);
  const auto n = static_cast<size_t>(part->first + index);
  const size_t from = part->base + n * strides.n + (first_input(weight) + first) * strides.k;
  read_elements(part->view, from, strides.k, line);
  const float scale = matrix.affine.scale(part->stacked + index);
  if (scale != 1.0f) {
    for (float& value : line) value *= scale;
  }
  const auto width = static_cast<size_t>(weight.row.width);
  for (size_t k = 0; k < line.size(); ++k) {
    const size_t at = packed_index(first + k, column, width);
    if (weight.format == MatrixFormat::kF16) {
      VKF_CHECK(store_half(out, at, line[k], weight.row.name));
    } else {
      store_float(out, at, line[k]);
    }
  }
  return {};
}

// Columns [first, last), a panel's, and their biases.
Status pack_panel(const PackingMatrix& matrix, size_t first, size_t last,
                  std::span<std::byte> out) {
  const PackedWeight& weight = matrix.weight;
  for (size_t column = first; column < last; ++column) {
    const auto& [part, index] = matrix.columns[column];
    if (part == nullptr || part->bias == nullptr) continue;
    const float bias = element_as_float(*part->bias, static_cast<size_t>(part->first_bias + index));
    store_float(out, weight.bias_offset + column,
                weight.row.bias_scale * matrix.affine.bias(part->stacked + index, bias));
  }
  const auto width = static_cast<size_t>(weight.row.width);
  // Few enough steps that the first-level cache holds them for all columns of a panel. The columns
  // of a step are neighbors in the output, and each source has them far apart.
  constexpr size_t kMostSteps = 128;
  const size_t steps = in_blocks(weight.format) ? width : kMostSteps;
  std::array<float, kMostSteps> line{};
  for (size_t step = 0; step < width; step += steps) {
    const std::span<float> some(line.data(), std::min(kMostSteps, width - step));
    for (size_t column = first; column < last; ++column) {
      if (matrix.columns[column].part == nullptr) continue;
      VKF_CHECK(in_blocks(weight.format) ? pack_blocks(matrix, column, out)
                                         : pack_floats(matrix, column, step, some, out));
    }
  }
  return {};
}

// The slice's columns, given what is stacked and where its rows go.
std::vector<ColumnSource> columns_of_slice(const PackedWeight& weight,
                                           const std::vector<SourcePart>& parts) {
  const std::vector<uint32_t> to = destinations(weight.row);
  std::vector<ColumnSource> columns(static_cast<size_t>(weight.columns));
  for (const SourcePart& part : parts) {
    for (int64_t i = 0; i < part.count; ++i) {
      const uint32_t column = to[static_cast<size_t>(part.stacked + i)];
      if (!in_slice(weight, column)) continue;
      columns[column - static_cast<size_t>(weight.first_column)] = {&part, i};
    }
  }
  return columns;
}

// Panels share no word of the output, so that each is packed beside the others. Of several errors
// the first panel's is told.
Status pack_parts(const PackedWeight& weight, const std::vector<SourcePart>& parts,
                  RowAffine affine, const Helpers& helpers, std::span<std::byte> out) {
  const PackingMatrix matrix{weight, std::move(affine), columns_of_slice(weight, parts)};
  const size_t columns = matrix.columns.size();
  const size_t panels = (columns + kPanelColumns - 1) / kPanelColumns;
  std::vector<Status> packed(panels);
  share_work(helpers, panels, [&](size_t panel) {
    const size_t first = panel * kPanelColumns;
    packed[panel] = pack_panel(matrix, first, std::min(columns, first + kPanelColumns), out);
  });
  for (const Status& status : packed) VKF_CHECK(status);
  return {};
}

// Source `s` of expert `x`'s matrix, or of the only one, from output feature `stacked` on.
SourcePart source_part(const WeightRow& row, const Checkpoint& checkpoint, size_t x, size_t s,
                       int64_t stacked) {
  const bool stack = row.stack == WeightRow::Stack::kStacked;
  const size_t index = stack ? s : x * sources_of_matrix(row) + s;
  const TensorView& view = *checkpoint.find(row.sources[index]);
  const bool in_out = row.axes == WeightRow::Axes::kInOut;
  const int64_t own = in_out ? columns_of(row, view) : view.shape[stack ? 1 : 0];
  const int64_t first = row.first_row < 0 ? 0 : row.first_row;
  const auto before = static_cast<int64_t>(stack ? x : 0) * own;  // rows of other experts
  const bool biased = index < row.biases.size() && !row.biases[index].empty();
  return {view,
          biased ? checkpoint.find(row.biases[index]) : nullptr,
          static_cast<size_t>(before * row.width),
          first,
          row.first_row < 0 ? own : row.rows,
          first + before,
          stacked};
}

TensorView view_of(std::span<const float> values, Shape shape) {
  return {.dtype = DType::kF32, .shape = std::move(shape), .bytes = std::as_bytes(values)};
}

// A matrix that is computed, as if a file had it.
Status pack_made(const PackedWeight& weight, const Checkpoint& checkpoint, const Helpers& helpers,
                 std::span<std::byte> out) {
  const WeightRow& row = weight.row;
  VKF_ASSIGN(const MadeMatrix made, row.make(checkpoint));
  const bool biased = !row.biases.empty();
  const int64_t count = std::max<int64_t>(1, row.experts) * matrix_rows(row);
  const auto rows = static_cast<size_t>(count);
  if (made.values.size() != rows * static_cast<size_t>(row.width) ||
      made.bias.size() != (biased ? rows : 0)) {
    return internal_error("[pack] a computed matrix has another size than its row");
  }
  const TensorView values = view_of(made.values, {count, row.width});
  const TensorView bias = view_of(made.bias, {count});
  return pack_parts(weight, {{values, biased ? &bias : nullptr, 0, 0, count, 0, 0}}, {}, helpers,
                    out);
}

Status pack_linear(const PackedWeight& weight, const Checkpoint& checkpoint, const Helpers& helpers,
                   std::span<std::byte> out) {
  const WeightRow& row = weight.row;
  if (row.make) return pack_made(weight, checkpoint, helpers, out);
  VKF_ASSIGN(RowAffine affine, affine_of(row, checkpoint));
  const auto matrices = static_cast<size_t>(std::max<int64_t>(1, row.experts));
  std::vector<SourcePart> parts;
  int64_t stacked = 0;
  for (size_t x = 0; x < matrices; ++x) {
    for (size_t s = 0; s < sources_of_matrix(row); ++s) {
      parts.push_back(source_part(row, checkpoint, x, s, stacked));
      stacked += parts.back().count;
    }
  }
  return pack_parts(weight, parts, std::move(affine), helpers, out);
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
                   std::span<std::byte> out, const Helpers& helpers) {
  if (out.size() != weight.bytes) return internal_error("[pack] wrong size of the output");
  std::memset(out.data(), 0, out.size());
  if (weight.row.layout == WeightLayout::kLinear)
    return pack_linear(weight, checkpoint, helpers, out);
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
