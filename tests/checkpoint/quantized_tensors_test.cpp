#include "checkpoint/quantized_tensors.h"

#include <doctest/doctest.h>

#include <cstring>

#include "base/half.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/temp_dir.h"
#include "vkformer/tensor.h"
#include "weights/read_floats.h"

namespace vkformer::testing {
namespace {

Tensor bytes_tensor(DType dtype, Shape shape, const std::vector<int>& values) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  REQUIRE(tensor.bytes.size() == values.size());
  for (size_t i = 0; i < values.size(); ++i) tensor.bytes[i] = std::byte(values[i] & 255);
  return tensor;
}

Tensor bfloats(Shape shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::zeros(DType::kBF16, std::move(shape));
  REQUIRE(tensor.bytes.size() == 2 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = bfloat_from_float(values[i]);
    std::memcpy(tensor.bytes.data() + 2 * i, &bits, 2);
  }
  return tensor;
}

std::vector<int> counting(size_t count, int first) {
  std::vector<int> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<int>(i);
  return values;
}

Result<Checkpoint> opened(const test::TempDir& directory, const TensorMap& tensors) {
  REQUIRE(write_tensor_file(directory.file("model.safetensors"), tensors).ok());
  return Checkpoint::open(directory.path());
}

void check_refused(const TensorMap& tensors, const std::string& part) {
  test::TempDir directory;
  const auto checkpoint = opened(directory, tensors);
  REQUIRE_FALSE(checkpoint.ok());
  CHECK(checkpoint.error().code == ErrorCode::kInvalidFile);
  CHECK_MESSAGE(test::contains(checkpoint.error().message, "[w]"), checkpoint.error().message);
  CHECK_MESSAGE(test::contains(checkpoint.error().message, part), checkpoint.error().message);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("quantized tensors: blocks and exponents of MXFP4 are one matrix of any rank") {
    test::TempDir directory;
    // Two rows of two blocks: byte i has value i % 16 and, above it, 15 - i % 16.
    std::vector<int> bytes;
    for (int i = 0; i < 64; ++i) bytes.push_back(i % 16 | (15 - i % 16) << 4);
    const auto checkpoint = opened(
        directory, {{"w_blocks", bytes_tensor(DType::kU8, {1, 2, 2, 16}, bytes)},
                    {"w_scales", bytes_tensor(DType::kU8, {1, 2, 2}, {127, 128, 120, 255})}});
    REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
    CHECK(checkpoint->names() == std::vector<std::string>{"w"});
    const TensorView* w = checkpoint->find("w");
    REQUIRE(w != nullptr);
    CHECK(w->shape == Shape{1, 2, 64});
    constexpr float kValues[] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                 -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    for (size_t row = 0; row < 2; ++row) {
      for (size_t k = 0; k < 64; ++k) {
        const size_t byte = k % 32 / 2;
        const float value = kValues[k % 2 == 0 ? byte : 15 - byte];
        const float scale = row == 0 ? (k < 32 ? 1.0f : 2.0f) : 1.0f / 128;
        const float actual = element_as_float(*w, row * 64 + k);
        if (row == 1 && k >= 32) {
          CHECK(actual != actual);  // the exponent of what is no number
        } else {
          CHECK(actual == value * scale);
        }
      }
    }
  }

  TEST_CASE("quantized tensors: MXFP4 tensors that do not fit are refused") {
    const Tensor blocks = bytes_tensor(DType::kU8, {2, 1, 16}, counting(32, 0));
    check_refused(
        {{"w_blocks", blocks}, {"w_scales", bytes_tensor(DType::kU8, {2, 2}, counting(4, 0))}},
        "(2, 2)");
    check_refused({{"w_blocks", blocks}, {"w_scales", bfloats({2, 1}, {1, 2})}}, "BF16");
    check_refused({{"w_blocks", bytes_tensor(DType::kU8, {2, 1, 8}, counting(16, 0))},
                   {"w_scales", bytes_tensor(DType::kU8, {2, 1}, {1, 2})}},
                  "(2, 1, 8)");
  }

  TEST_CASE("quantized tensors: values and scales are one matrix, along either axis") {
    test::TempDir directory;
    const auto checkpoint =
        opened(directory, {{"w", bytes_tensor(DType::kI8, {2, 40}, counting(80, -40))},
                           {"w.scales", bfloats({2, 2}, {0.5f, 2, -1, 0.25f})},
                           {"t", bytes_tensor(DType::kI8, {33, 2}, counting(66, -33))},
                           {"t.scales", bfloats({2, 2}, {1, 2, 4, 8})},
                           {"other", bfloats({1}, {3})}});
    REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
    CHECK(checkpoint->names() == std::vector<std::string>{"other", "t", "w"});
    const TensorView& w = *checkpoint->find("w");
    REQUIRE(w.blocks != nullptr);
    CHECK(w.blocks->format == MatrixFormat::kQ8);
    CHECK(w.shape == Shape{2, 40});
    CHECK(element_as_float(w, 0) == -20.0f);
    CHECK(element_as_float(w, 32) == -16.0f);
    CHECK(element_as_float(w, 40) == 0.0f);
    CHECK(element_as_float(w, 79) == 39 * 0.25f);
    const TensorView& t = *checkpoint->find("t");
    CHECK(t.blocks->blocks_down);
    CHECK(element_as_float(t, 1) == -64.0f);
    CHECK(element_as_float(t, 64) == 31 * 4.0f);
    CHECK(element_as_float(t, 65) == 32 * 8.0f);
  }

  TEST_CASE("quantized tensors: two values a byte, around 8 or above a minimum") {
    std::vector<int> bytes(17, 0x88);
    bytes[0] = 0xf0;
    bytes[16] = 0x79;
    test::TempDir directory;
    const auto checkpoint = opened(directory, {{"w", bytes_tensor(DType::kU8, {1, 17}, bytes)},
                                               {"w.scales", bfloats({1, 2}, {2, 0.5f})},
                                               {"m", bytes_tensor(DType::kU8, {1, 17}, bytes)},
                                               {"m.scales", bfloats({1, 2}, {2, 0.5f})},
                                               {"m.minima", bfloats({1, 2}, {-3, 10})}});
    REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
    const TensorView& w = *checkpoint->find("w");
    CHECK(w.shape == Shape{1, 34});
    CHECK(w.blocks->format == MatrixFormat::kQ4);
    CHECK(element_as_float(w, 0) == -16.0f);
    CHECK(element_as_float(w, 1) == 14.0f);
    CHECK(element_as_float(w, 2) == 0.0f);
    CHECK(element_as_float(w, 32) == 0.5f);
    CHECK(element_as_float(w, 33) == -0.5f);
    const TensorView& m = *checkpoint->find("m");
    CHECK(m.blocks->format == MatrixFormat::kQ4M);
    CHECK(element_as_float(m, 0) == -3.0f);
    CHECK(element_as_float(m, 1) == 27.0f);
    CHECK(element_as_float(m, 33) == 13.5f);
  }

  TEST_CASE("quantized tensors: what does not fit is refused by name") {
    const Tensor values = bytes_tensor(DType::kI8, {2, 40}, counting(80, 0));
    const Tensor scales = bfloats({2, 2}, {1, 1, 1, 1});
    check_refused({{"w", values}, {"w.scales", bfloats({2, 3}, std::vector<float>(6))}}, "(2, 3)");
    check_refused({{"w", values}, {"w.scales", bfloats({4}, std::vector<float>(4))}}, "(4)");
    check_refused({{"w", values}, {"w.scales", scales}, {"w.minima", scales}}, "minima");
    check_refused({{"w", values}, {"w.scales", Tensor::from_floats({2, 2}, std::vector<float>(4))}},
                  "BF16");
    check_refused({{"w", bytes_tensor(DType::kU8, {2, 20}, counting(40, 0))},
                   {"w.scales", scales},
                   {"w.minima", bfloats({1, 4}, {1, 1, 1, 1})}},
                  "(1, 4)");
    check_refused({{"w", bytes_tensor(DType::kI8, {0, 40}, {})}, {"w.scales", bfloats({0, 2}, {})}},
                  "no elements");
  }
}

}  // namespace vkformer::testing
