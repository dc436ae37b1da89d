#include "measure/benchmark_inputs.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"
#include "weights/pack_matrix.h"
#include "weights/quantize.h"

namespace vkformer {

float UniformNoise::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<float>(static_cast<int32_t>(z >> 40) - (1 << 23)) * 0x1p-23f;
}

TensorId BenchmarkInputs::uniform(const std::string& name, int64_t rows, int64_t columns) {
  const TensorId id = graph_.add_external(name, DType::kF32, {rows, columns});
  const auto r = static_cast<uint64_t>(rows), c = static_cast<uint64_t>(columns);
  inputs_.push_back({id, {{r, c, c, 1.0f, 0.0f, DType::kF32}}});
  return id;
}

LinearWeight BenchmarkInputs::linear(const std::string& name, int64_t k, int64_t n,
                                     MatrixFormat format, Bias bias) {
  const auto rows = static_cast<uint64_t>(k), columns = static_cast<uint64_t>(n);
  // Columns with the last panel filled up; random values in any order are a packed matrix.
  const uint64_t stride = packed_elements(n, 1);
  const DType dtype = format == MatrixFormat::kF16 ? DType::kF16 : DType::kF32;
  const uint64_t matrix = 4 * matrix_words(format, n, k);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(k)));
  Input input{.parts = {{rows, stride, stride, scale, 0.0f, dtype}}};
  if (in_blocks(format)) input.blocks = format;
  LinearWeight weight{
      .n = static_cast<uint32_t>(n), .k = static_cast<uint32_t>(k), .format = format};
  uint64_t bytes = matrix;
  if (bias == Bias::kYes) {
    weight.bias_offset = static_cast<uint32_t>(matrix / 4);
    input.parts.push_back({1, columns, stride, scale, 0.0f, DType::kF32});
    bytes += stride * 4;
  }
  weight.tensor = graph_.add_tensor({.name = name,
                                     .dtype = in_blocks(format) ? DType::kU32 : dtype,
                                     .shape = {k, n},
                                     .kind = TensorKind::kExternal,
                                     .bytes = bytes});
  input.tensor = weight.tensor;
  inputs_.push_back(std::move(input));
  return weight;
}

TensorId BenchmarkInputs::norm(const std::string& name, int64_t width) {
  const TensorId id = graph_.add_external(name, DType::kF32, {2, width});
  const auto d = static_cast<uint64_t>(width);
  inputs_.push_back({id, {{1, d, d, 0.1f, 1.0f, DType::kF32}, {1, d, d, 0.1f, 0.0f, DType::kF32}}});
  return id;
}

void BenchmarkInputs::name_output(TensorId tensor, const std::string& name) {
  TensorDesc& desc = graph_.tensor(tensor);
  desc.kind = TensorKind::kExternal;
  desc.name = name;
}

void BenchmarkInputs::append(const Part& part, UniformNoise& random,
                             std::vector<std::byte>& bytes) {
  const size_t size = dtype_size(part.dtype);
  size_t at = bytes.size();
  bytes.resize(at + part.rows * part.stride * size);
  for (uint64_t row = 0; row < part.rows; ++row, at += part.stride * size) {
    for (uint64_t column = 0; column < part.columns; ++column) {
      const float value = random.next() * part.scale + part.shift;
      const uint16_t half = size == 2 ? half_from_float(value) : uint16_t{0};
      const void* from = size == 2 ? static_cast<const void*>(&half) : &value;
      std::memcpy(bytes.data() + at + column * size, from, size);
    }
  }
}

void BenchmarkInputs::append_blocks(const Input& input, UniformNoise& random,
                                    std::vector<std::byte>& bytes) {
  const Part& part = input.parts[0];
  bytes.resize(part.stride / kPanelColumns * panel_words(input.blocks, part.rows) * 4);
  const size_t together = quantized_together(input.blocks);
  std::array<float, kBlockSteps * kBlocksOfSuper> values{};
  for (size_t column = 0; column < part.stride; ++column) {
    for (size_t first = 0; first < part.rows; first += together) {
      const std::span<float> some(values.data(), std::min<size_t>(together, part.rows - first));
      for (float& value : some) value = random.next() * part.scale;
      store_quantized(bytes, {column, first / kBlockSteps, part.rows}, some, input.blocks);
    }
  }
}

Status BenchmarkInputs::upload_to(TimedPlan& plan) const {
  for (const Input& input : inputs_) {
    UniformNoise random(input.tensor);
    std::vector<std::byte> bytes;
    if (in_blocks(input.blocks)) append_blocks(input, random, bytes);
    for (size_t i = in_blocks(input.blocks) ? 1 : 0; i < input.parts.size(); ++i) {
      append(input.parts[i], random, bytes);
    }
    VKF_CHECK(plan.upload(input.tensor, bytes));
  }
  return {};
}

Status check_benchmark_size(const char* benchmark, const char* option, int64_t value,
                            int64_t most) {
  if (value >= 1 && value <= most) return {};
  return invalid_argument(message({"[", benchmark, "] The option ", option, " is ", value,
                                   ", but must be from 1 to ", most, "."}));
}

}  // namespace vkformer
