#include "vkformer/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

using namespace vkformer;

namespace {

template <class T>
Tensor tensor_of(DType dtype, std::vector<T> values) {
  Tensor tensor{dtype, {static_cast<int64_t>(values.size())}, {}};
  tensor.bytes.resize(values.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("tensor: sizes and names of element types") {
    CHECK(dtype_size(DType::kF64) == 8);
    CHECK(dtype_size(DType::kBF16) == 2);
    CHECK(dtype_size(DType::kBool) == 1);
    CHECK(std::string(dtype_name(DType::kBF16)) == "BF16");
    CHECK(std::string(dtype_name(DType::kBool)) == "BOOL");
    CHECK(dtype_size(static_cast<DType>(99)) == 0);
  }

  TEST_CASE("tensor: values come as lists and ranges in braces") {
    const std::vector<int64_t> ids = {3, 4};
    CHECK(*Tensor::from_ints({1, 1}, {0}).to_ints() == std::vector<int64_t>{0});
    CHECK(*Tensor::from_ints({1, 2}, {ids.begin(), ids.end()}).to_ints() == ids);
    CHECK(*Tensor::from_ints({1, 2}, {ids.data(), ids.size()}).to_ints() == ids);
    CHECK(*Tensor::from_ints({1, 2}, ids).to_ints() == ids);
    CHECK(*Tensor::from_ints({0}, {}).to_ints() == std::vector<int64_t>{});
    CHECK(*Tensor::from_floats({2}, {0, 0.5f}).to_floats() == std::vector<float>{0, 0.5f});
  }

  TEST_CASE("tensor: counts and text of shapes") {
    CHECK(element_count({}) == 1);
    CHECK(element_count({2, 7, 32}) == 448);
    CHECK(element_count({2, 0, 32}) == 0);
    CHECK(element_count({int64_t{1} << 62, 4}) == -1);
    CHECK(element_count({-1}) == -1);
    CHECK(shape_text({}) == "()");
    CHECK(shape_text({5}) == "(5)");
    CHECK(shape_text({2, 7, 32}) == "(2, 7, 32)");
  }

  TEST_CASE("tensor: floats in, floats out") {
    const std::vector<float> values = {1.5f, -2.0f, 0.0f, 65504.0f};
    const Tensor tensor = Tensor::from_floats({2, 2}, values);
    CHECK(tensor.dtype == DType::kF32);
    CHECK(tensor.count() == 4);
    const auto back = tensor.to_floats();
    REQUIRE(back.ok());
    CHECK(*back == values);
    CHECK_FALSE(tensor.to_ints().ok());
  }

  TEST_CASE("tensor: every float type widens") {
    const std::vector<float> expected = {1.0f, -2.0f};
    const Tensor f16 = tensor_of<uint16_t>(DType::kF16, {0x3c00, 0xc000});
    const Tensor bf16 = tensor_of<uint16_t>(DType::kBF16, {0x3f80, 0xc000});
    const Tensor f64 = tensor_of<double>(DType::kF64, {1.0, -2.0});
    for (const Tensor* tensor : {&f16, &bf16, &f64}) {
      const auto floats = tensor->to_floats();
      REQUIRE(floats.ok());
      CHECK(*floats == expected);
    }
  }

  TEST_CASE("tensor: every integer type widens, with its sign") {
    const auto check = [](const Tensor& tensor, const std::vector<int64_t>& expected) {
      const auto ints = tensor.to_ints();
      REQUIRE(ints.ok());
      CHECK(*ints == expected);
      CHECK_FALSE(tensor.to_floats().ok());
    };
    const int64_t low = std::numeric_limits<int64_t>::min();
    check(Tensor::from_ints({2}, std::vector<int64_t>{low, 7}), {low, 7});
    check(tensor_of<int32_t>(DType::kI32, {-1, 7}), {-1, 7});
    check(tensor_of<int16_t>(DType::kI16, {-1, 7}), {-1, 7});
    check(tensor_of<int8_t>(DType::kI8, {-1, 7}), {-1, 7});
    check(tensor_of<uint64_t>(DType::kU64, {9, 7}), {9, 7});
    check(tensor_of<uint32_t>(DType::kU32, {0xffffffffu, 7}), {4294967295, 7});
    check(tensor_of<uint16_t>(DType::kU16, {0xffff, 7}), {65535, 7});
    check(tensor_of<uint8_t>(DType::kU8, {255, 7}), {255, 7});
    check(tensor_of<uint8_t>(DType::kBool, {0, 1, 255}), {0, 1, 1});
  }

  TEST_CASE("tensor: an unsigned value beyond 63 bits is an error that names it") {
    const auto ints = tensor_of<uint64_t>(DType::kU64, {1, uint64_t{1} << 63}).to_ints();
    REQUIRE_FALSE(ints.ok());
    CHECK(ints.error().message.find("9223372036854775808") != std::string::npos);
  }

  TEST_CASE("tensor: zeros, scalars and empty shapes") {
    const Tensor zeros = Tensor::zeros(DType::kF16, {3, 5});
    CHECK(zeros.bytes == std::vector<std::byte>(30));
    CHECK(Tensor::zeros(DType::kF64, {}).bytes.size() == 8);
    CHECK(Tensor::zeros(DType::kF64, {4, 0}).bytes.empty());
    const auto scalar = Tensor::from_floats({}, std::vector<float>{3.0f}).to_floats();
    REQUIRE(scalar.ok());
    CHECK(*scalar == std::vector<float>{3.0f});
  }

  TEST_CASE("tensor: bytes that disagree with the shape are an error, not a read outside") {
    CHECK_FALSE(Tensor::from_floats({3}, std::vector<float>{1.0f, 2.0f}).to_floats().ok());
    CHECK_FALSE(Tensor::from_ints({1}, std::vector<int64_t>{1, 2}).to_ints().ok());
    CHECK_FALSE(Tensor::zeros(DType::kF32, {int64_t{1} << 62, 4}).to_floats().ok());
    CHECK_FALSE(Tensor::zeros(DType::kF32, {int64_t{1} << 58}).to_floats().ok());
    CHECK_FALSE(Tensor{static_cast<DType>(99), {}, {}}.to_floats().ok());
  }
}
