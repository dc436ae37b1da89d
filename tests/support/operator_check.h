// What every operator test needs: seeded inputs, devices of every tier, a poisoned run, comparison
// with the reference, and the GPU-free plan checks.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "conformance/case_sizes.h"
#include "operators/graph_runner.h"
#include "operators/operator_arguments.h"
#include "ops/op.h"
#include "reference/array.h"
#include "reference/tolerance.h"
#include "support/kept.h"
#include "support/test_device.h"

namespace vkformer::testing {

using reference::Array;
using reference::Tolerance;
using reference::tolerance_for;

// Normally distributed values that are exact in f32. -> shape
inline Array random_array(const Shape& shape, uint32_t seed, double scale = 1, double offset = 0) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(offset, scale);
  Array array = reference::filled(shape, 0.0);
  for (double& value : array.data) value = normal(engine);
  return reference::round_to_f32(std::move(array));
}

// 0 or 1, about `share` of them 1, as U8. -> shape
inline Tensor random_mask(const Shape& shape, uint32_t seed, double share = 0.6) {
  std::mt19937 engine(seed);
  std::bernoulli_distribution coin(share);
  Tensor mask = Tensor::zeros(DType::kU8, shape);
  for (std::byte& b : mask.bytes) b = coin(engine) ? std::byte{1} : std::byte{0};
  return mask;
}

inline Tensor half_tensor(const Array& array) {
  OperatorOptions options;
  options.weights = WeightFormat::kF16;
  OperatorCall call{"table", "{}", {{"table", reference::to_tensor(array)}}};
  return OperatorArguments::parse(call, options)->weights("table").value();
}

inline Tensor word_tensor(const std::vector<uint32_t>& words, Shape shape) {
  Tensor tensor = Tensor::zeros(DType::kU32, std::move(shape));
  REQUIRE(tensor.bytes.size() == words.size() * 4);
  if (!words.empty()) std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
  return tensor;
}

inline std::vector<uint32_t> words_of(const Tensor& tensor) {
  std::vector<uint32_t> words(tensor.bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), tensor.bytes.data(), words.size() * 4);
  return words;
}

struct TierDevice {
  std::string tier;
  std::shared_ptr<VulkanDevice> device;
  bool wide = false;  // with the workgroups of a discrete device
};

// The test device (test_device.h) in every tier that it has, up to VKFORMER_TEST_TIER. A software
// device is tested with wide workgroups, too. With VKFORMER_TEST_VALIDATION set, it runs under the
// validation layer. Empty, with a reason, without a device.
inline std::vector<TierDevice> make_tier_devices() {
  std::vector<TierDevice> list;
  if (!have_test_device()) return list;
  const Tier highest = vulkan_of(*test_device())->caps().tier;
  for (Tier tier : {Tier::kBaseline, Tier::kSubgroup}) {
    if (tier > highest) continue;
    DeviceOptions options = test_device_options();
    options.tier = tier;
    options.validation = !test_environment("VKFORMER_TEST_VALIDATION").empty();
    auto device = make_test_device(options, test_device_tweaks());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    list.push_back({choice_name(tier), vulkan_of(*device)});
    if (vulkan_of(*device)->caps().device_class == DeviceClass::kSoftware) {
      list.push_back({std::string(choice_name(tier)) + ", wide", vulkan_of(*device), true});
    }
  }
  return list;
}

// make_tier_devices(), shared by the tests.
inline const std::vector<TierDevice>& tier_devices() {
  static Kept<std::vector<TierDevice>> devices;
  return devices.get(make_tier_devices);
}

struct PoisonedRun {
  Precision precision = Precision::kF32;
  uint32_t live_slots = UINT32_MAX;  // of a decoding step
};

// Runs the prepared graph three times over poisoned memory; the bits must agree.
inline TensorMap run_poisoned(const TierDevice& device, const PreparedOperator& op,
                              const PoisonedRun& run = {}) {
  GraphRunOptions options;
  options.precision = run.precision;
  options.live_slots = run.live_slots;
  options.poison = GraphRunOptions::Poison::kOn;
  options.repeats = 3;
  if (device.wide) {
    options.caps = device.device->caps();
    options.caps->device_class = DeviceClass::kDiscrete;
  }
  auto report = run_graph(device.device, op.graph, op.inputs, options);
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  return std::move(report->outputs);
}

// Compares with the reference; NaN must meet NaN and infinity the same infinity.
inline void check_close(const Tensor& actual, const Array& expected, Tolerance tolerance) {
  REQUIRE(actual.shape == expected.shape);
  const auto values = actual.to_floats();
  REQUIRE(values.ok());
  size_t wrong = 0;
  size_t worst = 0;
  double worst_excess = 0;
  for (size_t i = 0; i < values->size(); ++i) {
    const double a = (*values)[i];
    const double e = expected.data[i];
    if (std::isnan(e) ? std::isnan(a) : a == e) continue;
    const double bound = tolerance.absolute + tolerance.relative * std::abs(e);
    const double excess = std::isfinite(a) && std::isfinite(e) ? std::abs(a - e) / bound : 1e30;
    if (excess <= 1) continue;
    ++wrong;
    if (excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  const double shown = values->empty() ? 0 : (*values)[worst];
  const double wanted = expected.data.empty() ? 0 : expected.data[worst];
  CHECK_MESSAGE(wrong == 0, "" << wrong << " of " << values->size() << " elements of "
                               << shape_text(actual.shape) << " differ, the worst at " << worst
                               << ": " << shown << " instead of " << wanted);
}

// Capabilities of an invented device, for the GPU-free tests.
inline DeviceCaps caps_of_tier(Tier tier) {
  DeviceCaps caps;
  caps.name = "invented";
  caps.device_class = DeviceClass::kIntegrated;
  caps.tier = tier;
  caps.subgroup_size = 32;
  return caps;
}

// The plan of a graph, and its dump must name `kernel`.
inline Plan plan_with_kernel(const Graph& graph, Tier tier, const std::string& kernel) {
  auto plan = make_plan(graph, caps_of_tier(tier), Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  const std::string dump = plan->dump();
  CHECK_MESSAGE(dump.find(kernel + " [") != std::string::npos, dump);
  return *plan;
}

// No dispatch writes memory that it also reads, or that holds a value still to be read.
inline void check_no_aliasing(const Plan& plan) {
  const auto overlaps = [&](uint32_t a, uint32_t b) {
    const PlanBuffer& x = plan.buffers[a];
    const PlanBuffer& y = plan.buffers[b];
    if (x.source != BufferSource::kArena || y.source != BufferSource::kArena) return a == b;
    return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  };
  const auto is_read_from = [&](uint32_t buffer, size_t first) {
    for (size_t i = first; i < plan.dispatches.size(); ++i) {
      for (const BoundBuffer& b : plan.dispatches[i].bindings) {
        if (b.buffer == buffer) return b.access != Access::kWrite;
      }
    }
    return false;
  };
  // What nothing has written yet holds no value: a kernel may fill a buffer and read it again.
  std::vector<bool> holds(plan.buffers.size(), false);
  for (size_t i = 0; i < plan.dispatches.size(); ++i) {
    for (const BoundBuffer& written : plan.dispatches[i].bindings) {
      if (written.access == Access::kRead) continue;
      for (const BoundBuffer& other : plan.dispatches[i].bindings) {
        if (&other != &written) CHECK_FALSE(overlaps(written.buffer, other.buffer));
      }
      for (uint32_t held = 0; held < plan.buffers.size(); ++held) {
        if (!holds[held] || held == written.buffer || !overlaps(held, written.buffer)) continue;
        CHECK_FALSE(is_read_from(held, i));
      }
    }
    for (const BoundBuffer& bound : plan.dispatches[i].bindings) {
      if (bound.access != Access::kRead) holds[bound.buffer] = true;
    }
  }
}

// The error names the operator and contains `part`.
template <class T>
void check_error(const Result<T>& result, const std::string& op, const std::string& part) {
  REQUIRE_FALSE(result.ok());
  const std::string& message = result.error().message;
  CHECK_MESSAGE(message.find("[" + op + "]") != std::string::npos, message);
  CHECK_MESSAGE(message.find(part) != std::string::npos, message);
}

inline TensorDesc floats_desc(Shape shape) {
  return {"x", DType::kF32, std::move(shape)};
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace vkformer::testing
