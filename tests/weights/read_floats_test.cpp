#include "weights/read_floats.h"

#include <doctest/doctest.h>

#include "checkpoint/temp_dir.h"
#include "vkformer/tensor.h"

using namespace vkformer;

namespace {

// Bytes of `values`, each converted to an element of `dtype`.
Tensor tensor_of(DType dtype, Shape shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const double wide = static_cast<double>(values[i]);
    const uint16_t half =
        dtype == DType::kF16 ? half_from_float(values[i]) : bfloat_from_float(values[i]);
    const void* from = &values[i];
    if (dtype == DType::kF64) from = &wide;
    if (dtype_size(dtype) == 2) from = &half;
    std::memcpy(tensor.bytes.data() + i * dtype_size(dtype), from, dtype_size(dtype));
  }
  return tensor;
}

Checkpoint open(const test::TempDir& directory, const TensorMap& tensors) {
  REQUIRE(write_tensor_file(directory.file("model.safetensors"), tensors).ok());
  auto checkpoint = Checkpoint::open(directory.path());
  REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
  return std::move(checkpoint).value();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("read_floats widens every float type exactly") {
    const std::vector<float> values = {1.0f, -2.5f, 0.0f, 96.0f, -0.015625f, 3.0f};
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      CAPTURE(dtype_name(dtype));
      const test::TempDir directory;
      const Checkpoint checkpoint = open(directory, {{"a", tensor_of(dtype, {2, 3}, values)},
                                                     {"b", tensor_of(dtype, {}, {7.0f})},
                                                     {"c", tensor_of(dtype, {0, 3}, {})}});
      CHECK(read_floats(checkpoint, "a", {2, 3}).value() == values);
      CHECK(read_floats(checkpoint, "b", {}).value() == std::vector<float>{7.0f});
      CHECK(read_floats(checkpoint, "c", {0, 3}).value().empty());
    }
  }

  TEST_CASE("read_floats refuses what is missing or does not fit, with tensor and file") {
    const test::TempDir directory;
    const Checkpoint checkpoint =
        open(directory, {{"a", tensor_of(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6})},
                         {"count", Tensor::zeros(DType::kI64, {})}});
    const auto check = [&](const std::string& name, const Shape& shape, const std::string& part) {
      const auto read = read_floats(checkpoint, name, shape);
      REQUIRE_FALSE(read.ok());
      const std::string& message = read.error().message;
      CHECK(read.error().code == ErrorCode::kInvalidFile);
      CHECK_MESSAGE(test::contains(message, "[" + name + "]"), message);
      CHECK_MESSAGE(test::contains(message, part), message);
      CHECK_MESSAGE(test::contains(message, directory.path()), message);
    };
    check("b", {2, 3}, "missing");
    check("a", {3, 2}, "(3, 2)");
    check("a", {6}, "(2, 3)");
    check("count", {}, "I64");
  }
}
