#include "weights/quantize_tensors.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"
#include "weights/quantize.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

// The sources that rows take as matrices and as nothing else, with their axes.
std::map<std::string, WeightRow::Axes> matrices_of(const WeightTable& table) {
  std::map<std::string, WeightRow::Axes> found;
  for (const WeightRow& row : table.rows) {
    // Of experts that lie in one tensor, blocks would reach from one to the next.
    const bool one_matrix = row.stack == WeightRow::Stack::kApart;
    if (row.layout != WeightLayout::kLinear || !row.computed.empty() || row.make) continue;
    if (!one_matrix || row.format == WeightRow::Format::kExact) continue;
    for (const std::string& source : row.sources) found.emplace(source, row.axes);
  }
  for (const WeightRow& row : table.rows) {
    for (const std::string& bias : row.biases) found.erase(bias);
    for (const std::string& source : row.sources) {
      const auto known = found.find(source);
      if (known == found.end()) continue;
      const bool other = row.layout != WeightLayout::kLinear || row.axes != known->second;
      if (other || row.make) found.erase(known);
    }
  }
  return found;
}

struct Matrix {
  const std::string& name;
  const TensorView& view;
  bool down = false;  // (K, N)
  size_t n = 0;
  size_t k = 0;

  size_t index(size_t column, size_t row) const {
    return down ? row * n + column : column * k + row;
  }
};

Matrix matrix_of(const std::string& name, const TensorView& view, WeightRow::Axes axes) {
  const auto first = static_cast<size_t>(view.shape[0]);
  const size_t rest = first == 0 ? 0 : static_cast<size_t>(element_count(view.shape)) / first;
  const bool down = axes == WeightRow::Axes::kInOut;
  return {name, view, down, down ? rest : first, down ? first : rest};
}

void store_bits(Tensor& tensor, size_t index, uint16_t bits) {
  std::memcpy(tensor.bytes.data() + 2 * index, &bits, 2);
}

// In f16 or bfloat16, the shape kept.
Result<Tensor> narrowed(const Matrix& m, MatrixFormat format) {
  const bool half = format == MatrixFormat::kF16;
  Tensor out = Tensor::zeros(half ? DType::kF16 : DType::kBF16, m.view.shape);
  for (size_t i = 0; i < m.n * m.k; ++i) {
    const float value = element_as_float(m.view, i);
    const uint16_t bits = half ? half_from_float(value) : bfloat_from_float(value);
    if (half && (bits & 0x7fff) == 0x7c00 && std::isfinite(value)) {
      return unsupported(message(
          {"[", m.name, "] holds ", value, ", beyond the 65504 of f16; choose bf16 or q8"}));
    }
    store_bits(out, i, bits);
  }
  return out;
}

struct Parts {
  Tensor values, scales, minima;
};

Parts empty_parts(const Matrix& m, MatrixFormat format) {
  const auto n = static_cast<int64_t>(m.n), k = static_cast<int64_t>(m.k);
  const int64_t blocks = (k + kBlockSteps - 1) / kBlockSteps;
  const Shape scales = m.down ? Shape{blocks, n} : Shape{n, blocks};
  Parts parts;
  if (format == MatrixFormat::kQ8) {
    parts.values = Tensor::zeros(DType::kI8, m.view.shape);
  } else {
    parts.values = Tensor::zeros(DType::kU8, m.down ? Shape{k / 2, n} : Shape{n, k / 2});
  }
  parts.scales = Tensor::zeros(DType::kBF16, scales);
  if (format == MatrixFormat::kQ4M) parts.minima = Tensor::zeros(DType::kBF16, scales);
  return parts;
}

// Of one block: the output feature, its first input feature and how many it has.
struct BlockRange {
  size_t column, first, count;
};

void store_values(const Matrix& m, MatrixFormat format, const BlockRange& range,
                  const WeightBlock& block, Parts& parts) {
  const auto [column, first, count] = range;
  for (size_t i = 0; i < count; ++i) {
    const size_t row = first + i;
    const auto value = static_cast<uint8_t>(block.values[i]);
    if (format == MatrixFormat::kQ8) {
      parts.values.bytes[m.index(column, row)] = std::byte{value};
      continue;
    }
    const size_t pair = m.down ? row / 2 * m.n + column : column * (m.k / 2) + row / 2;
    parts.values.bytes[pair] |= std::byte(row % 2 == 0 ? value : value << 4);
  }
  const size_t blocks = (m.k + kBlockSteps - 1) / kBlockSteps;
  const size_t number = first / kBlockSteps;
  const size_t at = m.down ? number * m.n + column : column * blocks + number;
  store_bits(parts.scales, at, bfloat_from_float(block.scale));
  if (format == MatrixFormat::kQ4M) store_bits(parts.minima, at, bfloat_from_float(block.minimum));
}

Result<Parts> quantized(const Matrix& m, MatrixFormat format) {
  Parts parts = empty_parts(m, format);
  std::array<float, kBlockSteps> values{};
  for (size_t column = 0; column < m.n; ++column) {
    for (size_t first = 0; first < m.k; first += kBlockSteps) {
      const size_t count = std::min<size_t>(kBlockSteps, m.k - first);
      for (size_t i = 0; i < count; ++i) {
        values[i] = element_as_float(m.view, m.index(column, first + i));
      }
      const std::span<const float> some(values.data(), count);
      if (!fits_blocks(some, format)) {
        return unsupported(
            message({"[", m.name, "] holds a weight that is not a number below 1e38, which ",
                     format_name(format), " cannot store; choose bf16"}));
      }
      store_values(m, format, {column, first, count}, quantize_block(some, format), parts);
    }
  }
  return parts;
}

bool fits(const Matrix& m, MatrixFormat format) {
  if (!in_blocks(format)) return true;
  const bool pairs = format == MatrixFormat::kQ4 || format == MatrixFormat::kQ4M;
  return worth_blocks(static_cast<int64_t>(m.n), static_cast<int64_t>(m.k)) &&
         (!pairs || m.k % 2 == 0);
}

// What the file has, a quantized matrix in f32.
Tensor copied(const TensorView& view) {
  Tensor tensor = Tensor::zeros(view.blocks == nullptr ? view.dtype : DType::kF32, view.shape);
  if (view.blocks == nullptr) {
    std::copy(view.bytes.begin(), view.bytes.end(), tensor.bytes.begin());
    return tensor;
  }
  std::vector<float> values(tensor.bytes.size() / 4);
  read_elements(view, 0, 1, values);
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

}  // namespace

Result<QuantizedCheckpoint> quantize_checkpoint(const WeightTable& table,
                                                const Checkpoint& checkpoint, MatrixFormat format) {
  QuantizedCheckpoint out;
  const auto matrices = matrices_of(table);
  for (const std::string& name : checkpoint.names()) {
    const TensorView& view = *checkpoint.find(name);
    const auto known = matrices.find(name);
    if (known == matrices.end() || format == MatrixFormat::kF32 || view.shape.size() < 2 ||
        !fits(matrix_of(name, view, known->second), format)) {
      out.tensors.emplace(name, copied(view));
      continue;
    }
    const Matrix matrix = matrix_of(name, view, known->second);
    ++out.matrices;
    if (!is_quantized(format)) {
      VKF_ASSIGN(Tensor tensor, narrowed(matrix, format));
      out.tensors.emplace(name, std::move(tensor));
      continue;
    }
    VKF_ASSIGN(Parts parts, quantized(matrix, format));
    out.tensors.emplace(name, std::move(parts.values));
    out.tensors.emplace(scales_name(name), std::move(parts.scales));
    if (format == MatrixFormat::kQ4M)
      out.tensors.emplace(minima_name(name), std::move(parts.minima));
  }
  for (const auto& [name, tensor] : out.tensors) out.bytes += tensor.bytes.size();
  return out;
}

}  // namespace vkformer
