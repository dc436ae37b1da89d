#include "conformance/content.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/message.h"
#include "operators/operator_runner.h"

namespace vkformer::conformance {

uint64_t Noise::bits() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Noise::uniform() {
  return static_cast<double>(bits() >> 11) * 0x1p-53;
}

double Noise::normal() {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform();
  return sum;
}

const char* content_name(Content content) {
  switch (content) {
    case Content::kNormal:
      return "normal";
    case Content::kWide:
      return "wide";
    case Content::kTiny:
      return "tiny";
    case Content::kSpecial:
      return "special";
  }
  return "";
}

Array random_array(const Shape& shape, uint64_t seed, Content content) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // No denormals: a device may take them for zeros, and zero times infinity is something else.
  constexpr double kSpecials[] = {std::numeric_limits<double>::quiet_NaN(),
                                  kInfinity,
                                  -kInfinity,
                                  0.0,
                                  -0.0,
                                  65504.0,
                                  -13.5,
                                  1e-30};
  Noise noise(seed);
  Array array = reference::filled(shape, 0.0);
  for (double& value : array.data) {
    value = noise.normal();
    if (content == Content::kWide) value *= noise.below(8) == 0 ? 1e5 : 30;
    if (content == Content::kTiny) value *= noise.below(2) == 0 ? 1e-39 : 1e-36;
    const int64_t special = content == Content::kSpecial ? noise.below(64) : 64;
    if (special < 8) value = kSpecials[special];
  }
  return reference::round_to_f32(std::move(array));
}

Array scaled(Array array, double factor) {
  for (double& value : array.data) value *= factor;
  return reference::round_to_f32(std::move(array));
}

Array stacked_rows(Array first, const Array& second) {
  first.shape.insert(first.shape.begin(), 2);
  first.data.insert(first.data.end(), second.data.begin(), second.data.end());
  return first;
}

Array with_ties(Array array) {
  for (double& value : array.data) {
    if (std::abs(value) < 4) value = std::round(value * 2) / 2;
  }
  return array;
}

Array random_ids(const Shape& shape, uint64_t seed, int64_t count) {
  Noise noise(seed);
  Array array = reference::filled(shape, 0.0);
  for (double& value : array.data) value = static_cast<double>(noise.below(count));
  return array;
}

Array random_mask(const Shape& shape, uint64_t seed, double share) {
  Noise noise(seed);
  Array array = reference::filled(shape, 0.0);
  for (double& value : array.data) value = noise.uniform() < share ? 1 : 0;
  return array;
}

double magnitude_of_sum(int64_t terms, Content content) {
  return std::sqrt(static_cast<double>(terms)) * (content == Content::kWide ? 1e5 : 1);
}

double magnitude_of(const Array& array) {
  double most = 1;
  for (const double value : array.data) {
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  }
  return most;
}

Tensor floats(const Array& array) {
  return reference::to_tensor(array);
}

Tensor integers(const Array& array) {
  std::vector<int64_t> values;
  for (const double value : array.data) values.push_back(static_cast<int64_t>(value));
  return Tensor::from_ints(array.shape, values);
}

Tensor mask_bytes(const Array& array) {
  Tensor tensor = Tensor::zeros(DType::kU8, array.shape);
  for (size_t i = 0; i < array.data.size(); ++i) {
    tensor.bytes[i] = static_cast<std::byte>(array.data[i] != 0 ? 1 : 0);
  }
  return tensor;
}

Tensor words(const std::vector<uint32_t>& words) {
  Tensor tensor = Tensor::zeros(DType::kU32, {static_cast<int64_t>(words.size())});
  if (!words.empty()) std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
  return tensor;
}

std::string size_text(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

Result<CheckCase> call_case(const Call& call, std::map<std::string, Expected> expected) {
  OperatorOptions options;
  options.weights = call.weights;
  CheckCase made;
  VKF_ASSIGN(made.op, prepare_operator_call({call.name, call.attributes, call.inputs}, options));
  made.expected = std::move(expected);
  return made;
}

namespace {

constexpr double kLeastNormal = 0x1p-126;

// The distance between f32's numbers at that value.
double ulp_at(double value) {
  const double magnitude = std::max(std::abs(value), kLeastNormal);
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

bool same(double actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual);
  return actual == expected;
}

}  // namespace

Comparison compare(const std::string& name, const Tensor& actual, const Expected& expected) {
  Comparison result;
  const std::vector<double>& wanted = expected.values.data;
  auto found = reference::from_tensor(actual);
  if (!found || actual.shape != expected.values.shape || found->data.size() != wanted.size()) {
    result.error = std::numeric_limits<double>::infinity();
    result.message = "[" + name + "] is " + shape_text(actual.shape) + ", but " +
                     shape_text(expected.values.shape) + " was expected.";
    return result;
  }
  result.elements = static_cast<int64_t>(wanted.size());
  const Tolerance& t = expected.tolerance;
  int64_t wrong = 0;
  size_t worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double a = found->data[i], e = wanted[i];
    if (same(a, e)) continue;
    const bool finite = std::isfinite(a) && std::isfinite(e);
    const double difference = finite ? std::abs(a - e) : std::numeric_limits<double>::infinity();
    // Without any tolerance bits must be the same, but for denormals, which may become zeros.
    // No bound is made of a NaN: nothing would exceed it.
    const double bound =
        finite ? t.absolute * expected.magnitude + t.relative * std::abs(e) + kLeastNormal : 1;
    if (difference > bound) ++wrong;
    result.ulps = std::max(result.ulps, difference / ulp_at(finite ? e : 1));
    if (difference / bound <= result.error) continue;
    result.error = difference / bound;
    worst = i;
  }
  if (wrong == 0) return result;
  result.message = "[" + name + "] " + std::to_string(wrong) + " of " +
                   std::to_string(wanted.size()) + " elements of " + shape_text(actual.shape) +
                   " are wrong, the worst is element " + std::to_string(worst) + ": " +
                   number_text(found->data[worst]) + " instead of " + number_text(wanted[worst]) +
                   ".";
  return result;
}

}  // namespace vkformer::conformance
