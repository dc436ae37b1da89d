// reference/array: conversion, rounding, broadcasting, and the shape errors every reference shares.
#include "reference/array.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

using namespace vkformer;
using reference::Array;

namespace {

// A tensor of `dtype` from raw values of the same width.
template <class T>
Tensor raw_tensor(DType dtype, const std::vector<T>& values) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.bytes.resize(values.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reference array: every dtype widens exactly") {
    using reference::from_tensor;
    const std::vector<double> expected = {1.0, 2.0, 100.0};
    const auto same = [&](const Tensor& tensor) {
      const Result<Array> array = from_tensor(tensor);
      return array.ok() && array->data == expected && array->shape == Shape{3};
    };
    CHECK(same(raw_tensor<double>(DType::kF64, {1, 2, 100})));
    CHECK(same(raw_tensor<float>(DType::kF32, {1, 2, 100})));
    CHECK(same(raw_tensor<uint16_t>(DType::kF16, {0x3C00, 0x4000, 0x5640})));
    CHECK(same(raw_tensor<uint16_t>(DType::kBF16, {0x3F80, 0x4000, 0x42C8})));
    CHECK(same(raw_tensor<int64_t>(DType::kI64, {1, 2, 100})));
    CHECK(same(raw_tensor<int32_t>(DType::kI32, {1, 2, 100})));
    CHECK(same(raw_tensor<int16_t>(DType::kI16, {1, 2, 100})));
    CHECK(same(raw_tensor<int8_t>(DType::kI8, {1, 2, 100})));
    CHECK(same(raw_tensor<uint64_t>(DType::kU64, {1, 2, 100})));
    CHECK(same(raw_tensor<uint32_t>(DType::kU32, {1, 2, 100})));
    CHECK(same(raw_tensor<uint16_t>(DType::kU16, {1, 2, 100})));
    CHECK(same(raw_tensor<uint8_t>(DType::kU8, {1, 2, 100})));
    const Result<Array> flags = from_tensor(raw_tensor<uint8_t>(DType::kBool, {0, 1}));
    REQUIRE(flags.ok());
    CHECK(flags->data == std::vector<double>{0.0, 1.0});
    const Result<Array> negative = from_tensor(raw_tensor<int8_t>(DType::kI8, {-3}));
    REQUIRE(negative.ok());
    CHECK(negative->data[0] == -3.0);
  }

  TEST_CASE("reference array: bytes that do not match the shape are an error") {
    Tensor tensor = raw_tensor<float>(DType::kF32, {1, 2, 3});
    tensor.shape = {4};
    CHECK_FALSE(reference::from_tensor(tensor).ok());
    tensor.shape = {-3};
    CHECK_FALSE(reference::from_tensor(tensor).ok());
    tensor.shape = {int64_t{1} << 40, int64_t{1} << 40};
    CHECK_FALSE(reference::from_tensor(tensor).ok());
    tensor.shape = {3};
    tensor.bytes.pop_back();
    CHECK_FALSE(reference::from_tensor(tensor).ok());
  }

  TEST_CASE("reference array: to_tensor rounds to F32 and keeps the shape") {
    const Tensor tensor = reference::to_tensor({{1, 2}, {0.1, -2.0}});
    CHECK(tensor.dtype == DType::kF32);
    CHECK(tensor.shape == Shape{1, 2});
    const Result<Array> back = reference::from_tensor(tensor);
    REQUIRE(back.ok());
    CHECK(back->data == std::vector<double>{static_cast<double>(0.1F), -2.0});
  }

  TEST_CASE("reference array: rounding to storage types") {
    const Array x = {{3}, {0.1, 65504.0, 1.0 + 1.0 / 4096.0}};
    CHECK(reference::round_to_f32(x).data[0] == static_cast<double>(0.1F));
    const Array half = reference::round_to_f16(x);
    CHECK(half.data[0] == doctest::Approx(0.0999755859375).epsilon(1e-15));
    CHECK(half.data[1] == 65504.0);
    CHECK(half.data[2] == 1.0);
    const Array bfloat = reference::round_to_bf16(x);
    CHECK(bfloat.data[0] == 0.10009765625);
    CHECK(bfloat.data[1] == 65536.0);
    CHECK(reference::round_to_f16(half).data == half.data);
    CHECK(reference::round_to_bf16(bfloat).data == bfloat.data);
  }

  TEST_CASE("reference array: broadcasting by numpy's rule") {
    const Array row = {{3}, {1, 2, 3}};
    const Result<Array> rows = reference::broadcast_to(row, {2, 3}, "op", "row");
    REQUIRE(rows.ok());
    CHECK(rows->data == std::vector<double>{1, 2, 3, 1, 2, 3});
    const Array column = {{2, 1}, {5, 6}};
    const Result<Array> columns = reference::broadcast_to(column, {2, 2, 2}, "op", "column");
    REQUIRE(columns.ok());
    CHECK(columns->data == std::vector<double>{5, 5, 6, 6, 5, 5, 6, 6});
    const Result<Array> scalar = reference::broadcast_to({{}, {7}}, {2}, "op", "scalar");
    REQUIRE(scalar.ok());
    CHECK(scalar->data == std::vector<double>{7, 7});
  }

  TEST_CASE("reference array: errors name the operator and the array") {
    const Array row = {{3}, {1, 2, 3}};
    const Result<Array> wrong = reference::broadcast_to(row, {2, 4}, "some_op", "bias");
    REQUIRE_FALSE(wrong.ok());
    CHECK(wrong.error().code == ErrorCode::kInvalidArgument);
    CHECK(wrong.error().message.find("[some_op] bias") != std::string::npos);
    CHECK_FALSE(reference::broadcast_to(row, {}, "op", "row").ok());
    CHECK_FALSE(reference::check_array({{2, 2}, {1, 2, 3}}, "op", "x").ok());
    CHECK_FALSE(reference::check_array({{-1}, {}}, "op", "x").ok());
    CHECK_FALSE(reference::check_shape(row, {1, 3}, "op", "x").ok());
    CHECK(reference::check_shape(row, {3}, "op", "x").ok());
    CHECK(row.dim(-1) == 3);
  }
}
