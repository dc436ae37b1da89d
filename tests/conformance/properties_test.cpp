// What theory says of operators, whatever their inputs are.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/sinusoidal_positions.h"
#include "support/operator_check.h"
#include "vkformer/operators.h"

namespace vkformer::testing {
namespace {

Array run_on_device(const OperatorCall& call, const std::string& output) {
  const auto run = run_operator(*test_device(), call);
  REQUIRE_MESSAGE(run.ok(), run.error().message);
  return *reference::from_tensor(run->outputs.at(output));
}

// Row `to[i]` of the second but last axis becomes row i.
Array permuted(const Array& x, const std::vector<int64_t>& to) {
  Array y = x;
  const int64_t width = x.dim(-1), rows = x.dim(-2);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t row = i / width % rows;
    y[i] = x[i + (to[static_cast<size_t>(row)] - row) * width];
  }
  return y;
}

void check_near(const Array& a, const Array& b, double bound) {
  REQUIRE(a.shape == b.shape);
  double worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK(worst <= bound);
}

Array attend(const Array& q, const Array& k, const Array& v, const std::string& attributes = "{}") {
  return run_on_device({"attention",
                        attributes,
                        {{"Q", reference::to_tensor(q)},
                         {"K", reference::to_tensor(k)},
                         {"V", reference::to_tensor(v)}}},
                       "output");
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("attention without positions commutes with permutations of its tokens") {
    if (!have_test_device()) return;
    for (const int64_t tokens : {5, 33, 70}) {
      const Array q = random_array({2, 2, tokens, 16}, 1), k = random_array({2, 2, tokens, 16}, 2);
      const Array v = random_array({2, 2, tokens, 16}, 3);
      std::vector<int64_t> to;
      for (int64_t i = 0; i < tokens; ++i) to.push_back((i * 13 + 1) % tokens);
      const Array y = attend(q, k, v);
      check_near(attend(permuted(q, to), permuted(k, to), permuted(v, to)), permuted(y, to), 2e-6);
      // The keys' order alone does not matter either.
      check_near(attend(q, permuted(k, to), permuted(v, to)), y, 2e-6);
    }
  }

  TEST_CASE("scaling a layer norm's gain by c and the temperature by c squared changes no weight") {
    if (!have_test_device()) return;
    const int64_t width = 32;
    const Array x = random_array({1, 1, 20, width}, 4), gain = random_array({width}, 5);
    const Array v = random_array({1, 1, 20, width}, 6);
    const auto normed = [&](double c) {
      Array scaled = gain;
      for (double& value : scaled.data) value *= c;
      return run_on_device(
          {"layer_norm",
           "{}",
           {{"X", reference::to_tensor(x)}, {"weight", reference::to_tensor(scaled)}}},
          "Y");
    };
    const auto weights = [&](double c) {
      const Array n = normed(c);
      return run_on_device({"attention_weights",
                            R"({"temperature": )" + std::to_string(c * c) + "}",
                            {{"Q", reference::to_tensor(n)},
                             {"K", reference::to_tensor(n)},
                             {"V", reference::to_tensor(v)}}},
                           "weights");
    };
    for (const double c : {0.5, 2.0, 3.0}) check_near(weights(c), weights(1), 1e-5);
  }

  TEST_CASE("as the temperature sinks to 0, softmax becomes argmax") {
    if (!have_test_device()) return;
    const Array x = random_array({1, 1, 9, 50}, 7);
    const Array best = run_on_device({"argmax", "{}", {{"X", reference::to_tensor(x)}}}, "Y");
    for (const char* temperature : {"1e-3", "1e-5"}) {
      const Array y = run_on_device({"softmax",
                                     std::string(R"({"temperature": )") + temperature + "}",
                                     {{"X", reference::to_tensor(x)}}},
                                    "Y");
      for (int64_t row = 0; row < 9; ++row) {
        for (int64_t j = 0; j < 50; ++j) {
          CHECK(std::abs(y[row * 50 + j] - (j == best[row] ? 1 : 0)) < 1e-3);
        }
      }
    }
  }

  TEST_CASE("a row has the same bits whatever else is in its batch, and in every run") {
    if (!have_test_device()) return;
    const Array weight = random_array({48, 70}, 8);
    const auto rows = [&](const Array& x) {
      const OperatorCall call{
          "gemm", "{}", {{"A", reference::to_tensor(x)}, {"B", reference::to_tensor(weight)}}};
      return run_on_device(call, "Y");
    };
    if (vulkan_of(*test_device())->caps().device_class != DeviceClass::kSoftware) return;
    const Array many = random_array({40, 48}, 9);
    const Array all = rows(many);
    for (const int64_t count : {1, 2, 7, 8, 9, 17, 40}) {
      const Array few{{count, 48}, {many.data.begin(), many.data.begin() + count * 48}};
      const Array y = rows(few);
      CHECK(y.data == std::vector<double>(all.data.begin(), all.data.begin() + count * 70));
      CHECK(rows(few).data == y.data);
    }
  }
}

TEST_SUITE("cpu") {
  // Vaswani et al. 2017, section 3.5: for a fixed k, PE(p + k) is a linear function of PE(p).
  TEST_CASE("sinusoidal positions that are k farther are a rotation of those here") {
    const int64_t width = 16;
    const OperatorCall call{"sinusoidal_positions", R"({"length": 200, "dim": 16})", {}};
    const auto run = run_operator(device_of(nullptr), call);
    REQUIRE_MESSAGE(run.ok(), run.error().message);
    const Array pe = *reference::from_tensor(run->outputs.at("Y"));
    for (const int64_t k : {1, 7, 50}) {
      for (int64_t p = 0; p + k < 200; p += 13) {
        for (int64_t i = 0; i < width; i += 2) {
          const double angle =
              static_cast<double>(k) * std::pow(10000.0, -static_cast<double>(i) / width);
          const double sine = pe[p * width + i], cosine = pe[p * width + i + 1];
          CHECK(std::abs(pe[(p + k) * width + i] -
                         (sine * std::cos(angle) + cosine * std::sin(angle))) < 1e-6);
          CHECK(std::abs(pe[(p + k) * width + i + 1] -
                         (cosine * std::cos(angle) - sine * std::sin(angle))) < 1e-6);
        }
      }
    }
  }
}

}  // namespace vkformer::testing
