#include "weights/fold_batch_norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace vkformer;

namespace {

bool contains(const Error& error, const std::string& part) {
  return error.message.find("[layer]") != std::string::npos &&
         error.message.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("pack_conv puts each channel's bias behind its weights") {
    const float weight[] = {1, 2, 3, 4, 5, 6};
    const float bias[] = {7, 8};
    CHECK(pack_conv({"layer", 2, weight, bias}).value() ==
          std::vector<float>{1, 2, 3, 7, 4, 5, 6, 8});
    CHECK(pack_conv({"layer", 3, weight}).value() == std::vector<float>{1, 2, 0, 3, 4, 0, 5, 6, 0});
  }

  TEST_CASE("fold_batch_norm gives what the convolution and the norm give one after the other") {
    const float weight[] = {0.5f, -1.25f, 2.0f, 0.125f, 3.0f, -0.75f};
    const float bias[] = {0.25f, -2.0f};
    const float gain[] = {1.5f, -0.3f};
    const float shift[] = {0.1f, 4.0f};
    const float mean[] = {-0.7f, 12.0f};
    const float variance[] = {2.0f, 1e-3f};
    const double x[] = {0.3, -1.7, 2.2};
    for (const bool biased : {true, false}) {
      ConvWeight conv{"layer", 2, weight};
      if (biased) conv.bias = bias;
      const auto table = fold_batch_norm(conv, {gain, shift, mean, variance, 1e-3});
      REQUIRE(table.ok());
      REQUIRE(table->size() == 8);
      for (size_t o = 0; o < 2; ++o) {
        double sum = biased ? bias[o] : 0.0;
        double folded = (*table)[o * 4 + 3];
        for (size_t k = 0; k < 3; ++k) {
          sum += static_cast<double>(weight[o * 3 + k]) * x[k];
          folded += static_cast<double>((*table)[o * 4 + k]) * x[k];
        }
        const double normed = (sum - mean[o]) / std::sqrt(variance[o] + 1e-3) * gain[o] + shift[o];
        CHECK(folded == doctest::Approx(normed).epsilon(1e-6));
      }
    }
  }

  TEST_CASE("fold_batch_norm and pack_conv refuse what does not fit") {
    const float five[] = {1, 2, 3, 4, 5};
    const float two[] = {1, 2};
    const float three[] = {1, 2, 3};
    const float bad[] = {1, -1};
    const float nan[] = {1, std::numeric_limits<float>::quiet_NaN()};
    CHECK(contains(pack_conv({"layer", 2, five}).error(), "5 elements"));
    CHECK(contains(pack_conv({"layer", 0, five}).error(), "0 rows"));
    CHECK(contains(pack_conv({"layer", 5, five, two}).error(), "2 elements"));
    const ConvWeight conv{"layer", 2, two};
    CHECK(contains(fold_batch_norm(conv, {three, two, two, two}).error(), "gain has 3"));
    CHECK(contains(fold_batch_norm(conv, {two, three, two, two}).error(), "shift has 3"));
    CHECK(contains(fold_batch_norm(conv, {two, two, three, two}).error(), "mean has 3"));
    CHECK(contains(fold_batch_norm(conv, {two, two, two, three}).error(), "variance has 3"));
    CHECK(contains(fold_batch_norm(conv, {two, two, two, bad}).error(), "channel 1"));
    CHECK(contains(fold_batch_norm(conv, {two, two, two, nan}).error(), "channel 1"));
  }
}
