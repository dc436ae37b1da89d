// Resampling against the bytes of Pillow, and what holds for any size.
#include "image/resize.h"

#include <charconv>
#include <random>
#include <string>

#include "checkpoint/temp_dir.h"
#include "image/picture_samples.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

constexpr Resampling kAll[] = {Resampling::kNearest, Resampling::kLanczos, Resampling::kBilinear,
                               Resampling::kBicubic, Resampling::kBox,     Resampling::kHamming};

RgbPicture noise(int width, int height, bool extremes, uint32_t seed) {
  std::mt19937 random(seed);
  RgbPicture picture;
  picture.width = width;
  picture.height = height;
  picture.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  for (uint8_t& value : picture.pixels) {
    value = static_cast<uint8_t>(extremes ? (random() & 1) * 255 : random() & 255);
  }
  return picture;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("resize: every filter gives the bytes of the reference") {
    const TensorMap golden = golden_pictures();
    const RgbPicture source = to_picture(golden.at("source"));
    int cases = 0;
    for (const auto& [bound_name, tensor] : golden) {
      const auto& name = bound_name;
      if (!name.starts_with("resize.")) continue;
      CAPTURE(name);
      ++cases;
      const RgbPicture expected = to_picture(tensor);
      const auto filter = static_cast<Resampling>(name[7] - '0');
      const auto actual = resize_picture(source, expected.width, expected.height, filter);
      REQUIRE(actual.ok());
      CHECK(actual->pixels == expected.pixels);
    }
    CHECK(cases == 24);
  }

  TEST_CASE("resize: a flat picture stays flat, and the same size stays the same") {
    for (const Resampling filter : kAll) {
      for (const uint8_t value : {0, 1, 128, 255}) {
        RgbPicture flat = noise(13, 7, false, 1);
        std::fill(flat.pixels.begin(), flat.pixels.end(), value);
        for (const auto& [width, height] : {std::pair(1, 1), {13, 3}, {40, 7}, {50, 31}, {5, 29}}) {
          const auto actual = resize_picture(flat, width, height, filter);
          REQUIRE(actual.ok());
          REQUIRE(actual->width == width);
          REQUIRE(actual->height == height);
          REQUIRE(actual->pixels.size() == static_cast<size_t>(width * height * 3));
          for (const uint8_t other : actual->pixels) REQUIRE(other == value);
        }
      }
      const RgbPicture picture = noise(13, 7, false, 2);
      const auto same = resize_picture(picture, 13, 7, filter);
      REQUIRE(same.ok());
      CHECK(same->pixels == picture.pixels);
    }
  }

  TEST_CASE("resize: the steepest pictures of any small size overflow nothing") {
    // The sums of fixed-point products are watched by the sanitizers.
    for (const Resampling filter : kAll) {
      for (int from = 1; from <= 9; ++from) {
        for (int to = 1; to <= 23; ++to) {
          const auto actual = resize_picture(noise(from, 10 - from, true, 3), to, 24 - to, filter);
          REQUIRE(actual.ok());
          REQUIRE(actual->pixels.size() == static_cast<size_t>(to * (24 - to) * 3));
        }
      }
    }
  }

  TEST_CASE("resize: sizes that no picture has are refused") {
    const RgbPicture tall = noise(1, 16384, false, 4);
    for (const Resampling filter : kAll) {
      CHECK(!resize_picture(tall, 0, 1, filter).ok());
      CHECK(!resize_picture(tall, 1, -1, filter).ok());
      CHECK(!resize_picture(tall, 16385, 1, filter).ok());
    }
    // Small in the end, but not on the way.
    const auto wide = resize_picture(tall, 16384, 1, Resampling::kBicubic);
    REQUIRE(!wide.ok());
    CHECK(contains(wide.error().message, "16384 x 16384"));
  }
}
