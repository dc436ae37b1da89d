#include "weights/quantize.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "weights/pack_matrix.h"

namespace vkformer::testing {
namespace {

std::vector<float> normal_weights(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = 0;  // of 12 uniform numbers: near enough to a normal distribution
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine()) * 0x1p-32;
    value = scale * static_cast<float>(sum - 6);
  }
  return values;
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (float value : values) most = std::max(most, std::fabs(static_cast<double>(value)));
  return most;
}

// Root of the mean squared error, as a share of the root of the mean square.
double relative_error(const std::vector<float>& values, MatrixFormat format) {
  double error = 0, square = 0;
  const size_t together = quantized_together(format);
  for (size_t first = 0; first < values.size(); first += together) {
    const size_t count = std::min(together, values.size() - first);
    const std::span<const float> some = std::span(values).subspan(first, count);
    std::array<WeightBlock, kBlocksOfSuper> blocks;
    quantize_blocks(some, format, {blocks.data(), (count + kBlockSteps - 1) / kBlockSteps});
    for (size_t i = 0; i < count; ++i) {
      const WeightBlock& block = blocks[i / kBlockSteps];
      const double difference = double{block_weight(block, i % kBlockSteps, format)} - some[i];
      error += difference * difference;
      square += double{some[i]} * some[i];
    }
  }
  return std::sqrt(error / square);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("quantize: errors are those of the formats' bits, whatever the scale") {
    for (float scale : {1e-30f, 1e-6f, 0.02f, 1.0f, 1e6f, 1e30f}) {
      CAPTURE(scale);
      const auto values = normal_weights(6400, 1, scale);
      CHECK(relative_error(values, MatrixFormat::kBF16) < 0.003);
      CHECK(relative_error(values, MatrixFormat::kQ8) < 0.006);
      // Without fitting the scales they are 0.085 and 0.072.
      CHECK(relative_error(values, MatrixFormat::kQ4) < 0.084);
      CHECK(relative_error(values, MatrixFormat::kQ4M) < 0.0715);
      CHECK(relative_error(values, MatrixFormat::kMxfp4) < 0.13);
    }
  }

  TEST_CASE("quantize: errors of the formats whose scales are halves") {
    // The scales of the smallest are denormals.
    for (float scale : {3e-4f, 0.02f, 1.0f, 1e3f}) {
      CAPTURE(scale);
      const auto values = normal_weights(6400, 1, scale);
      CHECK(relative_error(values, MatrixFormat::kQ8_0) < 0.006);
      CHECK(relative_error(values, MatrixFormat::kQ4_0) < 0.084);
      CHECK(relative_error(values, MatrixFormat::kQ4_1) < 0.0715);
      CHECK(relative_error(values, MatrixFormat::kQ5_0) < 0.044);
      CHECK(relative_error(values, MatrixFormat::kQ5_1) < 0.037);
      CHECK(relative_error(values, MatrixFormat::kIq4Nl) < 0.082);
      CHECK(relative_error(values, MatrixFormat::kIq4Xs) < 0.09);
      CHECK(relative_error(values, MatrixFormat::kQ2K) < 0.33);
      CHECK(relative_error(values, MatrixFormat::kQ3K) < 0.17);
      CHECK(relative_error(values, MatrixFormat::kQ4K) < 0.08);
      CHECK(relative_error(values, MatrixFormat::kQ5K) < 0.042);
      CHECK(relative_error(values, MatrixFormat::kQ6K) < 0.024);
    }
  }

  TEST_CASE("quantize: K that ends inside what 8 blocks share") {
    const auto values = normal_weights(301, 5, 0.05f);
    for (MatrixFormat format : kMatrixFormats) {
      if (!has_supers(format)) continue;
      CAPTURE(format_name(format));
      CHECK(relative_error(values, format) < 0.33);
      const std::vector<float> zeros(301, 0.0f);
      std::array<WeightBlock, kBlocksOfSuper> blocks;
      quantize_blocks(std::span(zeros).first(256), format, blocks);
      for (const WeightBlock& block : blocks) CHECK(block_weight(block, 3, format) == 0.0f);
    }
  }

  TEST_CASE("quantize: no weight is further from its value than half a step of q8") {
    for (size_t count : {1u, 2u, 31u, 32u}) {
      for (uint32_t seed = 0; seed < 50; ++seed) {
        const auto values = normal_weights(count, seed);
        const WeightBlock block = quantize_block(values, MatrixFormat::kQ8);
        CHECK(block.scale >= largest(values) / 127);
        CHECK(block.scale <= largest(values) / 127 * 1.008);
        for (size_t i = 0; i < count; ++i) {
          CHECK(std::fabs(block_weight(block, i, MatrixFormat::kQ8) - values[i]) <=
                block.scale * 0.5001);
        }
      }
    }
  }

  TEST_CASE("quantize: constants, zeros and shifted weights are kept") {
    const std::vector<float> zeros(32, 0.0f);
    const std::vector<float> halves(32, -0.5f);
    std::vector<float> shifted = normal_weights(32, 3, 0.01f);
    for (float& value : shifted) value += 8;
    for (MatrixFormat format : kMatrixFormats) {
      if (!is_quantized(format) || has_supers(format)) continue;
      CAPTURE(format_name(format));
      const WeightBlock none = quantize_block(zeros, format);
      const WeightBlock same = quantize_block(halves, format);
      for (size_t i = 0; i < 32; ++i) {
        CHECK(block_weight(none, i, format) == 0.0f);
        CHECK(block_weight(same, i, format) == doctest::Approx(-0.5).epsilon(0.004));
      }
    }
    // A minimum takes the shift away, up to what it loses as a bfloat16.
    const WeightBlock block = quantize_block(shifted, MatrixFormat::kQ4M);
    for (size_t i = 0; i < 32; ++i) {
      CHECK(std::fabs(block_weight(block, i, MatrixFormat::kQ4M) - shifted[i]) < 0.04);
    }
  }

  TEST_CASE("quantize: what is quantized already stays as it is") {
    for (MatrixFormat format : {MatrixFormat::kBF16, MatrixFormat::kQ8}) {
      const auto values = normal_weights(32, 7);
      const WeightBlock once = quantize_block(values, format);
      std::vector<float> kept;
      for (size_t i = 0; i < 32; ++i) kept.push_back(block_weight(once, i, format));
      const WeightBlock twice = quantize_block(kept, format);
      for (size_t i = 0; i < 32; ++i) {
        CHECK(block_weight(twice, i, format) == doctest::Approx(kept[i]).epsilon(0.005));
      }
    }
  }

  TEST_CASE("quantize: numbers that no block can hold are refused") {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (float bad : {kInfinity, -kInfinity, std::nanf(""), 3e38f}) {
      std::vector<float> values(40, 1.0f);
      values[37] = bad;
      for (MatrixFormat format : kMatrixFormats) {
        if (!is_quantized(format)) continue;
        const auto packed = pack_matrix(values, {1, 40, MatrixOrder::kOutIn}, {}, format);
        REQUIRE_FALSE(packed.ok());
        CHECK(packed.error().code == ErrorCode::kUnsupported);
        CHECK(packed.error().message.find(format_name(format)) != std::string::npos);
      }
      CHECK(pack_matrix(values, {1, 40, MatrixOrder::kOutIn}, {}, MatrixFormat::kBF16).ok());
    }
    // A scale in halves ends earlier.
    const std::vector<float> large(40, 7e4f);
    CHECK(pack_matrix(large, {1, 40, MatrixOrder::kOutIn}, {}, MatrixFormat::kQ8).ok());
    CHECK_FALSE(pack_matrix(large, {1, 40, MatrixOrder::kOutIn}, {}, MatrixFormat::kQ8_0).ok());
  }

  TEST_CASE("quantize: sizes and names of formats") {
    for (MatrixFormat format : kMatrixFormats) {
      CHECK(matrix_format_of(weight_format_of(format)) == format);
      const auto packed = pack_matrix(std::vector<float>(70 * 45), {70, 45}, {}, format);
      REQUIRE(packed.ok());
      CHECK(packed->words.size() == matrix_words(format, 70, 45));
    }
    CHECK_FALSE(matrix_format_of(WeightFormat::kAsStored).has_value());
    CHECK(weight_bits(WeightFormat::kAsStored) == 32);
    CHECK(weight_bits(WeightFormat::kQ4) == 4.5);
    CHECK(weight_bits(WeightFormat::kQ6K) == 6.5625);
    CHECK(matrix_words(MatrixFormat::kQ8, 64, 32) * 4 == 2048 + 128);
    CHECK(matrix_words(MatrixFormat::kQ4, 65, 33) * 4 == 4 * (1024 + 128));
    CHECK(matrix_words(MatrixFormat::kQ4M, 64, 32) * 4 == 1024 + 256);
  }
}

}  // namespace vkformer::testing
