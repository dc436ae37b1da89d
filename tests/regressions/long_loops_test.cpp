// Mesa's llvmpipe leaves every loop of a shader after 65,535 rounds and says nothing
// (ops/row_kernel.h). Rows longer than that, whose last element decides.
#include <algorithm>

#include "operators/operator_runner.h"
#include "reference/conv.h"
#include "reference/layer_norm.h"
#include "reference/log_softmax.h"
#include "reference/mean_pool.h"
#include "reference/softmax.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

constexpr int64_t kLong = 300007;  // a prime

// Random values, the last of them the largest by far.
Array spiked(const Shape& shape, uint32_t seed) {
  Array array = random_array(shape, seed);
  array.data.back() = 14.0;
  return array;
}

std::vector<float> run(const TierDevice& device, const OperatorCall& call, const char* output) {
  OperatorOptions options;
  options.poison = true;
  auto result = run_operator_call(device.device, call, options);
  REQUIRE_MESSAGE(result.ok(), result.error().message);
  return result->outputs.at(output).to_floats().value();
}

void check_relative(const std::vector<float>& actual, const Array& expected, double relative) {
  REQUIRE(actual.size() == expected.data.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double wanted = expected.data[i];
    worst = std::max(worst, std::fabs(actual[i] - wanted) / (1e-12 + std::fabs(wanted)));
  }
  CHECK(worst < relative);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("rows longer than a software driver's loops: softmax and its kin") {
    const Array x = spiked({1, 1, 1, kLong}, 1);
    const Tensor tensor = reference::to_tensor(x);
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      const std::vector<float> y = run(device, {"softmax", "{}", {{"X", tensor}}}, "Y");
      check_relative(y, reference::softmax(x).value(), 1e-4);
      check_relative(run(device, {"log_softmax", "{}", {{"X", tensor}}}, "Y"),
                     reference::log_softmax(x).value(), 1e-4);
      const double share = 1.0 / static_cast<double>(kLong);
      const Array uniform = reference::filled({1, kLong}, static_cast<float>(share));
      const std::vector<float> entropy =
          run(device, {"row_entropy", "{}", {{"X", reference::to_tensor(uniform)}}}, "Y");
      CHECK(entropy[0] == doctest::Approx(-std::log(share)).epsilon(1e-4));
      const auto best =
          run_operator_call(device.device, {"argmax", "{}", {{"X", tensor}}}, OperatorOptions{});
      REQUIRE_MESSAGE(best.ok(), best.error().message);
      CHECK(best->outputs.begin()->second.to_ints().value()[0] == kLong - 1);
    }
  }

  TEST_CASE("rows longer than a software driver's loops: norms") {
    const Array x = spiked({2, kLong}, 2);
    const Array wanted = reference::layer_norm(x, {}).value();
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      const std::vector<float> y =
          run(device, {"layer_norm", "{}", {{"X", reference::to_tensor(x)}}}, "Y");
      REQUIRE(y.size() == wanted.data.size());
      CHECK(y.back() == doctest::Approx(wanted.data.back()).epsilon(1e-3));
      CHECK(y[5] == doctest::Approx(wanted.data[5]).epsilon(1e-3));
    }
  }

  TEST_CASE("products of a long K are right, and refused where a driver cannot") {
    for (const int64_t k : {int64_t{262100}, kLong}) {
      const Array x = spiked({1, k}, 3);
      double dot = 0;
      for (double value : x.data) dot += value * value;
      const OperatorCall call{"gemm",
                              R"({"trans_b": true})",
                              {{"A", reference::to_tensor(x)}, {"B", reference::to_tensor(x)}}};
      for (const TierDevice& device : tier_devices()) {
        CAPTURE(device.tier);
        const auto result = run_operator_call(device.device, call, OperatorOptions{});
        if (result.ok()) {
          const float y = result->outputs.at("Y").to_floats().value()[0];
          CHECK(y == doctest::Approx(dot).epsilon(1e-4));
        } else {
          CHECK_MESSAGE(result.error().code == ErrorCode::kUnsupported, result.error().message);
          CHECK(k == kLong);
        }
      }
    }
  }

  TEST_CASE("mean_pool counts every token of a long text, for every column") {
    // 1,000 tokens of width 768 are 96 columns of 1,000 rounds for each of 8 lanes.
    for (const Shape& shape : {Shape{1, 1000, 768}, Shape{1, 30000, 9}}) {
      const Array x = spiked(shape, 4);
      for (const bool normalize : {false, true}) {
        reference::MeanPoolOptions options;
        options.normalize = normalize;
        const Array wanted = reference::mean_pool(x, options).value();
        const OperatorCall call{"mean_pool",
                                normalize ? R"({"normalize": true})" : "{}",
                                {{"X", reference::to_tensor(x)}}};
        for (const TierDevice& device : tier_devices()) {
          CAPTURE(device.tier);
          CAPTURE(normalize);
          const std::vector<float> y = run(device, call, "Y");
          REQUIRE(y.size() == wanted.data.size());
          double worst = 0;
          for (size_t i = 0; i < y.size(); ++i) {
            worst = std::max(worst, std::fabs(y[i] - wanted.data[i]));
          }
          CHECK(worst < 1e-5);
        }
      }
    }
  }

  TEST_CASE("a grouped convolution of many taps sees all of them, for every channel") {
    // 32 inputs x 128 taps for each of 512 channels, as wav2vec 2.0 encodes positions.
    reference::ConvOptions options;
    options.groups = 16;
    options.window.pad_left = 64;
    Array x = random_array({1, 512, 1, 24}, 6);
    Array weight = random_array({512, 32, 1, 128}, 7, 0.02);
    const auto wanted = reference::conv(x, weight, options);
    REQUIRE_MESSAGE(wanted.ok(), wanted.error().message);
    x.shape = {1, 512, 24};
    weight.shape = {512, 32, 128};
    const OperatorCall call{"conv1d",
                            R"({"groups": 16, "padding": 64})",
                            {{"X", reference::to_tensor(x)}, {"W", reference::to_tensor(weight)}}};
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      const std::vector<float> y = run(device, call, "Y");
      REQUIRE(y.size() == wanted->data.size());
      double worst = 0;
      for (size_t i = 0; i < y.size(); ++i) {
        worst = std::max(worst, std::fabs(y[i] - wanted->data[i]));
      }
      CHECK(worst < 1e-4);
    }
  }

  TEST_CASE("rows longer than a software driver's loops: attention and its map") {
    constexpr int64_t kKeys = 70001;
    const Array q = random_array({1, 1, 1, 4}, 3);
    Array k = random_array({1, 1, kKeys, 4}, 4);
    // The last key is the query, made long.
    for (int64_t e = 0; e < 4; ++e) k[(kKeys - 1) * 4 + e] = 20 * q[e];
    const Array v = random_array({1, 1, kKeys, 4}, 5);
    const OperatorCall call{"attention_weights",
                            "{}",
                            {{"Q", reference::to_tensor(q)},
                             {"K", reference::to_tensor(k)},
                             {"V", reference::to_tensor(v)}}};
    for (const TierDevice& device : tier_devices()) {
      CAPTURE(device.tier);
      OperatorOptions options;
      const auto result = run_operator_call(device.device, call, options);
      // Too long for this device is an answer; a wrong one is not.
      if (!result.ok()) {
        CHECK_MESSAGE(result.error().code == ErrorCode::kUnsupported, result.error().message);
        continue;
      }
      const std::vector<float> weights = result->outputs.at("weights").to_floats().value();
      double sum = 0;
      for (float weight : weights) sum += weight;
      CHECK(sum == doctest::Approx(1.0).epsilon(1e-4));
      const std::vector<float> y = result->outputs.at("output").to_floats().value();
      for (int64_t e = 0; e < 4; ++e) {
        double wanted = 0;
        for (int64_t j = 0; j < kKeys; ++j) {
          wanted += static_cast<double>(weights[static_cast<size_t>(j)]) * v[j * 4 + e];
        }
        CHECK(y[static_cast<size_t>(e)] == doctest::Approx(wanted).epsilon(1e-3));
      }
      double scale = 0;
      for (int64_t e = 0; e < 4; ++e) scale += 10 * q[e] * q[e];
      if (scale > 20) CHECK(weights.back() > 0.5f);
    }
  }
}

}  // namespace vkformer::testing
