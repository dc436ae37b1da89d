// Resampling, against tones whose samples are known at every rate.
#include "audio/resample.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "checkpoint/temp_dir.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

struct Rates {
  int32_t from = 0;
  int32_t to = 0;
};

constexpr Rates kRates[] = {{44100, 16000}, {48000, 16000}, {8000, 16000},  {16000, 44100},
                            {44099, 16000}, {16000, 15999}, {192000, 8000}, {11025, 16000},
                            {22050, 48000}, {1000, 1001}};

std::vector<float> tone(int32_t rate, double hertz, size_t count) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i] = static_cast<float>(
        std::sin(2.0 * std::numbers::pi * hertz * static_cast<double>(i) / rate + 0.3));
  }
  return samples;
}

std::vector<float> resampled(const std::vector<float>& samples, Rates rates) {
  auto out = resample(samples, rates.from, rates.to);
  REQUIRE_MESSAGE(out.ok(), (out.ok() ? std::string() : out.error().message));
  return std::move(out).value();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("resample: tones within both bands come out as they are") {
    for (const Rates rates : kRates) {
      for (const double part : {0.01, 0.3, 0.86}) {
        CAPTURE(rates.from);
        CAPTURE(rates.to);
        CAPTURE(part);
        const double hertz = part * std::min(rates.from, rates.to) / 2.0;
        const auto out = resampled(tone(rates.from, hertz, 4 * 2500), rates);
        const auto wanted = tone(rates.to, hertz, out.size());
        // The ends lack neighbors: the filter reaches 52 samples of the lower rate.
        const size_t margin =
            static_cast<size_t>(60.0 * rates.to / std::min(rates.from, rates.to) + 1.0);
        double worst = 0.0;
        for (size_t i = margin; i + margin < out.size(); ++i) {
          worst = std::max(worst, std::abs(static_cast<double>(out[i]) - wanted[i]));
        }
        CHECK(worst < 3e-5);
      }
    }
  }

  TEST_CASE("resample: tones beyond the new band are gone") {
    for (const Rates rates : {Rates{44100, 16000}, Rates{48000, 16000}, Rates{44099, 16000}}) {
      for (const double part : {1.01, 1.3, 1.9}) {
        const auto out = resampled(tone(rates.from, part * rates.to / 2.0, 9000), rates);
        for (size_t i = 200; i + 200 < out.size(); ++i) REQUIRE(std::abs(out[i]) < 3e-5f);
      }
    }
  }

  TEST_CASE("resample: lengths and constants") {
    CHECK(resampled({}, {44100, 16000}).empty());
    CHECK(resampled({0.5f, -0.5f}, {16000, 16000}) == std::vector<float>{0.5f, -0.5f});
    for (const Rates rates : kRates) {
      for (const size_t count : {1u, 2u, 7u, 1000u}) {
        const auto out = resampled(std::vector<float>(count, 1.0f), rates);
        const auto wide = static_cast<int64_t>(count);
        CHECK(static_cast<int64_t>(out.size()) == (wide * rates.to + rates.from - 1) / rates.from);
      }
    }
    const auto flat = resampled(std::vector<float>(4000, 0.25f), {44100, 16000});
    for (size_t i = 200; i + 200 < flat.size(); ++i) {
      REQUIRE(flat[i] == doctest::Approx(0.25).epsilon(1e-6));
    }
  }

  TEST_CASE("resample: rates that are refused") {
    const std::vector<float> one(1, 0.0f);
    for (const Rates rates :
         {Rates{0, 16000}, Rates{16000, -1}, Rates{999, 16000}, Rates{16000, 768001}}) {
      const auto out = resample(one, rates.from, rates.to);
      REQUIRE_FALSE(out.ok());
      CHECK(out.error().code == ErrorCode::kInvalidArgument);
      CHECK(contains(out.error().message, "1000 to 768000"));
    }
  }
}
