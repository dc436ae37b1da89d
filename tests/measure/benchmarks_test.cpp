#include "measure/benchmarks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "support/test_device.h"

using namespace vkformer;

namespace {

GemmBenchmark small_gemm() {
  GemmBenchmark options;
  options.m = 5;
  options.n = 37;
  options.k = 67;
  options.repeats = 2;
  return options;
}

EncoderBenchmark small_encoder() {
  EncoderBenchmark options;
  options.tokens = 7;
  options.layers = 2;
  options.width = 32;
  options.heads = 4;
  options.ffn = 48;
  options.repeats = 2;
  return options;
}

template <class Run>
void check_message(const Result<Run>& run, const std::string& part) {
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().code == ErrorCode::kInvalidArgument);
  CHECK_MESSAGE(run.error().message.find(part) != std::string::npos, run.error().message);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("the roofline is positive") {
    VKF_TEST_DEVICE(device);
    const auto roofline = measure_roofline(device_of(device));
    REQUIRE_MESSAGE(roofline.ok(), roofline.error().message);
    CHECK(roofline->fma_gflops > 0);
    CHECK(roofline->copy_gbytes > 0);
    CHECK(roofline->dispatch_us > 0);
    CHECK(roofline->submit_us > 0);
  }

  TEST_CASE("a product's benchmark gives times and the same bits twice") {
    VKF_TEST_DEVICE(device);
    const auto first = benchmark_gemm(device_of(device), small_gemm());
    const auto again = benchmark_gemm(device_of(device), small_gemm());
    REQUIRE_MESSAGE(first.ok(), first.error().message);
    REQUIRE_MESSAGE(again.ok(), again.error().message);
    CHECK(first->ms_median > 0);
    CHECK(first->ms_min > 0);
    CHECK(first->ms_min <= first->ms_median);
    CHECK(first->gflops == doctest::Approx(2e-6 * 5 * 37 * 67 / first->ms_median));
    CHECK(first->kernel.find("matmul_") == 0);
    CHECK(first->hash.size() == 16);
    CHECK(first->hash == again->hash);
  }

  TEST_CASE("half weights give nearly the same product") {
    VKF_TEST_DEVICE(device);
    GemmBenchmark options = small_gemm();
    const auto single = run_gemm(device, options);
    options.weights = WeightFormat::kF16;
    const auto half = run_gemm(device, options);
    REQUIRE_MESSAGE(single.ok(), single.error().message);
    REQUIRE_MESSAGE(half.ok(), half.error().message);
    REQUIRE(single->y.size() == 5 * 37);
    REQUIRE(half->y.size() == single->y.size());
    CHECK(half->time.kernel.find("_f16_") != std::string::npos);
    CHECK(half->time.hash != single->time.hash);
    float largest = 0, difference = 0;
    for (size_t i = 0; i < single->y.size(); ++i) {
      largest = std::max(largest, std::abs(single->y[i]));
      difference = std::max(difference, std::abs(single->y[i] - half->y[i]));
    }
    CHECK(largest > 0.1f);
    CHECK(largest < 10.0f);
    CHECK(difference < 1e-2f);
  }

  TEST_CASE("an encoder stack's benchmark gives times and the same bits twice") {
    VKF_TEST_DEVICE(device);
    const auto first = run_encoder(device, small_encoder());
    const auto again = benchmark_encoder(device_of(device), small_encoder());
    REQUIRE_MESSAGE(first.ok(), first.error().message);
    REQUIRE_MESSAGE(again.ok(), again.error().message);
    CHECK(first->time.ms_median > 0);
    CHECK(first->time.gflops > 0);
    // Two layers of seven operators, and the last norm.
    CHECK(first->time.dispatches >= 15);
    const double products = 2 * 2 * 7 * (3 * 32 * 32 + 32 * 32 + 2 * 32 * 48);
    CHECK(first->time.gflop == doctest::Approx(1e-9 * (products + 2 * 4 * 7 * 7 * 32)));
    CHECK(first->time.hash == again->hash);
    REQUIRE(first->y.size() == 7 * 32);
    // A normalized row has a mean square around 1.
    double squares = 0;
    for (float value : first->y) squares += double{value} * value;
    CHECK(squares / (7 * 32) > 0.5);
    CHECK(squares / (7 * 32) < 2.0);
  }

  TEST_CASE("options out of range are named") {
    VKF_TEST_DEVICE(device);
    GemmBenchmark gemm = small_gemm();
    gemm.n = 0;
    check_message(run_gemm(device, gemm), "n is 0");
    gemm = small_gemm();
    gemm.k = int64_t{1} << 40;
    check_message(run_gemm(device, gemm), "k is 1099511627776");
    gemm = small_gemm();
    gemm.repeats = -3;
    check_message(run_gemm(device, gemm), "repeats is -3");
    gemm = small_gemm();
    gemm.weights = WeightFormat::kAsStored;
    check_message(run_gemm(device, gemm), "weights is 'stored'");
    EncoderBenchmark encoder = small_encoder();
    encoder.heads = 5;
    check_message(run_encoder(device, encoder), "multiple of the 5 heads");
    encoder = small_encoder();
    encoder.layers = -1;
    check_message(run_encoder(device, encoder), "layers is -1");
  }

  TEST_CASE("sizes beyond the device are refused before anything is allocated") {
    VKF_TEST_DEVICE(device);
    GemmBenchmark gemm = small_gemm();
    gemm.m = gemm.n = int64_t{1} << 20;
    const auto run = run_gemm(device, gemm);
    REQUIRE_FALSE(run.ok());
    CHECK_MESSAGE(run.error().message.find("bytes") != std::string::npos, run.error().message);
  }
}
