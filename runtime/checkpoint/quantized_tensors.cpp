#include "checkpoint/quantized_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"

namespace vkformer {
namespace {

int64_t blocks_of(int64_t k) {
  return (k + kBlockSteps - 1) / kBlockSteps;
}

float bfloat_at(std::span<const std::byte> bytes, size_t index) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + 2 * index, 2);
  return float_from_bfloat(bits);
}

}  // namespace

std::string scales_name(const std::string& name) {
  return name + ".scales";
}

std::string minima_name(const std::string& name) {
  return name + ".minima";
}

Result<QuantizedTensor> join_blocks(const std::string& name, const TensorView& values,
                                    const TensorView& scales, const TensorView* minima) {
  const auto error = [&](const std::string& what) {
    return invalid_file(message(
        {"[", name, "] is a quantized matrix, but ", what, "; write it with vkformer quantize."}));
  };
  const bool bytes = values.dtype == DType::kI8;
  if (values.shape.size() < 2 || scales.shape.size() != 2 || scales.dtype != DType::kBF16) {
    return error("its values " + shape_text(values.shape) + " and scales " +
                 shape_text(scales.shape) + " are no matrices with scales in BF16");
  }
  if (values.bytes.empty()) return error("it has no elements");
  if (bytes && minima != nullptr) return error("has minima, which I8 values do not have");
  if (minima != nullptr && (minima->dtype != DType::kBF16 || minima->shape != scales.shape)) {
    return error("its minima " + shape_text(minima->shape) + " are no BF16 of the scales' shape " +
                 shape_text(scales.shape));
  }
  QuantizedTensor joined{.blocks = {}, .view = values};
  joined.blocks.format = bytes               ? MatrixFormat::kQ8
                         : minima != nullptr ? MatrixFormat::kQ4M
                                             : MatrixFormat::kQ4;
  joined.blocks.scales = scales.bytes;
  if (minima != nullptr) joined.blocks.minima = minima->bytes;
  // Axes beyond the second are part of K.
  const int64_t per_byte = bytes ? 1 : 2;
  const int64_t first = values.shape[0];
  int64_t rest = 1;
  for (size_t i = 1; i < values.shape.size(); ++i) rest *= values.shape[i];
  if (scales.shape == Shape{first, blocks_of(rest * per_byte)}) {
    joined.view.shape.back() *= per_byte;
    return joined;
  }
  if (values.shape.size() == 2 && scales.shape == Shape{blocks_of(first * per_byte), rest}) {
    joined.blocks.blocks_down = true;
    joined.view.shape[0] *= per_byte;
    return joined;
  }
  return error("its values " + shape_text(values.shape) + " do not go with scales " +
               shape_text(scales.shape) + " for 32 weights each");
}

std::string mxfp4_blocks_name(const std::string& name) {
  return name + "_blocks";
}

std::string mxfp4_scales_name(const std::string& name) {
  return name + "_scales";
}

Result<QuantizedTensor> join_mxfp4(const std::string& name, const TensorView& blocks,
                                   const TensorView& scales) {
  Shape wanted = scales.shape;
  wanted.push_back(kBlockSteps / 2);
  if (scales.shape.size() < 2 || blocks.shape != wanted || blocks.bytes.empty() ||
      blocks.dtype != DType::kU8 || scales.dtype != DType::kU8) {
    return invalid_file(
        message({"[", name, "] is a matrix in MXFP4, but its blocks are ", dtype_name(blocks.dtype),
                 " ", shape_text(blocks.shape), " and its scales ", dtype_name(scales.dtype), " ",
                 shape_text(scales.shape), "; they must be U8 (..., K / 32, ", kBlockSteps / 2,
                 ") and U8 (..., K / 32)."}));
  }
  Shape shape = scales.shape;
  shape.back() *= kBlockSteps;
  return mxfp4_of_shape(std::move(shape), blocks, scales);
}

QuantizedSize quantized_size(const TensorView& view) {
  if (view.blocks->mxfp4 || view.blocks->ggml || view.blocks->coded != nullptr) {
    const auto k = static_cast<size_t>(view.shape.back());
    return {static_cast<size_t>(element_count(view.shape)) / k, k};
  }
  const auto first = static_cast<size_t>(view.shape[0]);
  if (view.blocks->blocks_down) return {static_cast<size_t>(view.shape[1]), first};
  return {first, first == 0 ? 0 : static_cast<size_t>(element_count(view.shape)) / first};
}

namespace {

// Block `index` of an MXFP4 matrix in two tensors.
WeightBlock mxfp4_of(const TensorView& view, size_t index) {
  std::array<uint8_t, kBlockSteps> codes{};
  for (size_t i = 0; i < kBlockSteps; ++i) {
    const auto byte = static_cast<uint8_t>(view.bytes[index * kBlockSteps / 2 + i / 2]);
    codes[i] = i % 2 == 0 ? byte & 15u : byte >> 4u;
  }
  return mxfp4_block(static_cast<uint8_t>(view.blocks->scales[index]), codes);
}

// The value of output feature n that `vkformer quantize` wrote, and its scale and minimum.
QuantizedValue own_value(const TensorView& view, size_t n, size_t k) {
  const QuantizedBlocks& blocks = *view.blocks;
  const QuantizedSize size = quantized_size(view);
  const size_t in_line = blocks.format == MatrixFormat::kQ8 ? k : k / 2;
  const size_t line = blocks.format == MatrixFormat::kQ8 ? size.k : size.k / 2;
  const auto byte = static_cast<uint8_t>(
      view.bytes[blocks.blocks_down ? in_line * size.n + n : n * line + in_line]);
  const size_t block = k / kBlockSteps;
  const size_t block_count = (size.k + kBlockSteps - 1) / kBlockSteps;
  const size_t at = blocks.blocks_down ? block * size.n + n : n * block_count + block;
  QuantizedValue out{.scale = bfloat_at(blocks.scales, at)};
  if (blocks.format == MatrixFormat::kQ8) {
    out.value = static_cast<int8_t>(byte);
    return out;
  }
  out.value = k % 2 == 0 ? byte & 15 : byte >> 4;
  out.minimum = blocks.format == MatrixFormat::kQ4M ? bfloat_at(blocks.minima, at) : -8 * out.scale;
  return out;
}

}  // namespace

WeightBlock quantized_block(const TensorView& view, size_t n, size_t first) {
  const QuantizedBlocks& blocks = *view.blocks;
  const size_t k = quantized_size(view).k;
  if (blocks.ggml) return ggml_block(*blocks.ggml, view.bytes, n * k + first);
  if (blocks.mxfp4) return mxfp4_of(view, (n * k + first) / kBlockSteps);
  WeightBlock block;
  for (size_t i = 0; i < kBlockSteps; ++i) {
    if (first + i >= k) {
      block.values[i] = static_cast<int32_t>(block_traits(blocks.format).offset);
      continue;
    }
    const QuantizedValue of =
        blocks.coded != nullptr ? blocks.coded->value(n, first + i) : own_value(view, n, first + i);
    block.scale = of.scale;
    block.minimum = of.minimum;
    block.values[i] = of.value;
  }
  return block;
}

float quantized_element(const TensorView& view, size_t index) {
  if (decodes_rows(view)) {
    float value = 0;
    quantized_elements(view, index, {&value, 1});
    return value;
  }
  const QuantizedSize size = quantized_size(view);
  const bool down = view.blocks->blocks_down;
  const size_t line = down ? size.n : size.k;
  const size_t n = down ? index % line : index / line, k = down ? index / line : index % line;
  if (view.blocks->mxfp4) {
    return block_weight(mxfp4_of(view, index / kBlockSteps), index % kBlockSteps,
                        MatrixFormat::kMxfp4);
  }
  const QuantizedValue of = own_value(view, n, k);
  return of.minimum + of.scale * static_cast<float>(of.value);
}

bool decodes_rows(const TensorView& view) {
  return view.blocks != nullptr && (view.blocks->ggml || view.blocks->coded != nullptr);
}

void quantized_elements(const TensorView& view, size_t first, std::span<float> out) {
  if (view.blocks->ggml) return decode_ggml(*view.blocks->ggml, view.bytes, first, out);
  const CodedMatrix& matrix = *view.blocks->coded;
  while (!out.empty()) {
    const size_t at = first % matrix.k();
    const size_t count = std::min(out.size(), matrix.k() - at);
    matrix.read(first / matrix.k(), at, out.first(count));
    out = out.subspan(count);
    first += count;
  }
}

QuantizedTensor join_coded(std::shared_ptr<const CodedMatrix> matrix, Shape shape,
                           const TensorView& codes) {
  QuantizedTensor joined{.blocks = {.format = matrix->exact_format()}, .view = codes};
  joined.blocks.coded = std::move(matrix);
  joined.view.shape = std::move(shape);
  return joined;
}

QuantizedTensor mxfp4_of_shape(Shape shape, const TensorView& codes, const TensorView& scales) {
  QuantizedTensor joined{.blocks = {.format = MatrixFormat::kMxfp4, .mxfp4 = true}, .view = codes};
  joined.blocks.scales = scales.bytes;
  joined.view.shape = std::move(shape);
  return joined;
}

QuantizedTensor join_ggml(GgmlType type, Shape shape, std::span<const std::byte> bytes) {
  return {.blocks = {.format = ggml_format(type), .ggml = type},
          .view = {.dtype = ggml_dtype(type), .shape = std::move(shape), .bytes = bytes}};
}

}  // namespace vkformer
