// Pages as Donut's image processor makes them. Resampling itself is held to Pillow in
// resize_test.cpp.
#include "image/document_pages.h"

#include <random>

#include "checkpoint/temp_dir.h"
#include "image/picture_samples.h"
#include "image/resize.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

Result<DocumentPages> parse_pages(const std::string& rest) {
  const auto config = JsonConfig::parse(
      R"({"image_processor_type": "DonutImageProcessor")" + rest + "}", "preprocessor_config.json");
  REQUIRE(config.ok());
  return DocumentPages::parse(*config);
}

DocumentPages pages_of(int width, int height, const std::string& rest = "") {
  auto pages = parse_pages(R"(, "size": {"height": )" + std::to_string(height) + R"(, "width": )" +
                           std::to_string(width) + "}" + rest);
  REQUIRE_MESSAGE(pages.ok(), (pages ? "" : pages.error().message));
  return std::move(*pages);
}

RgbPicture random_page(int width, int height) {
  std::mt19937 random(static_cast<uint32_t>(width * 31 + height));
  RgbPicture picture{width, height, {}};
  picture.pixels.resize(static_cast<size_t>(width * height * 3));
  for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(random() & 255);
  return picture;
}

// A size on the way, and the filter that leads to it.
struct Fit {
  int width, height;
  Resampling resampling;
};

// The values (3, height, width) of a page: resized step by step, at `left` and `top`, black around.
std::vector<float> expected(const RgbPicture& picture, const std::vector<Fit>& steps, int left,
                            int top, int width, int height) {
  RgbPicture page = picture;
  for (const Fit& step : steps) {
    auto next = resize_picture(page, step.width, step.height, step.resampling);
    REQUIRE(next.ok());
    page = std::move(*next);
  }
  std::vector<float> values;
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const bool inside = x >= left && x < left + page.width && y >= top && y < top + page.height;
        const double byte = inside ? page.row(y - top)[(x - left) * 3 + channel] : 0;
        values.push_back(static_cast<float>((byte / 255.0 - 0.5) / 0.5));
      }
    }
  }
  return values;
}

void check_pages(const DocumentPages& pages, const std::vector<const RgbPicture*>& pictures,
                 const Shape& shape, const std::vector<float>& values) {
  const auto made = pages.process(pictures);
  REQUIRE_MESSAGE(made.ok(), (made ? "" : made.error().message));
  CHECK(made->shape == shape);
  const auto found = made->to_floats();
  REQUIRE(found.ok());
  REQUIRE(found->size() == values.size());
  float farthest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    farthest = std::max(farthest, std::abs((*found)[i] - values[i]));
  }
  // Rounding of the three operations in f32.
  CHECK(farthest <= 3e-7f);
  // Again, the same bits.
  CHECK(pages.process(pictures)->bytes == made->bytes);
}

constexpr auto kLinear = Resampling::kBilinear;
constexpr auto kCubic = Resampling::kBicubic;

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("document pages: a picture fits into the page, and black is around it") {
    const struct {
      int width, height;  // of the picture
      std::vector<Fit> steps;
      int left, top;
    } cases[] = {
        // The shorter side becomes 20.
        {7, 9, {{20, 25, kLinear}}, 0, 2},
        {20, 30, {}, 0, 0},
        {6, 6, {{20, 20, kLinear}}, 0, 5},
        {1, 1, {{20, 20, kLinear}}, 0, 5},
        // Then what is too long is shrunk.
        {9, 7, {{25, 20, kLinear}, {20, 16, kCubic}}, 0, 7},
        {5, 50, {{20, 200, kLinear}, {3, 30, kCubic}}, 8, 0},
        {47, 31, {{30, 20, kLinear}, {20, 13, kCubic}}, 0, 8},
    };
    const DocumentPages pages = pages_of(20, 30);
    std::vector<RgbPicture> all;
    std::vector<float> values;
    for (const auto& c : cases) {
      CAPTURE(c.width);
      const RgbPicture picture = random_page(c.width, c.height);
      const std::vector<float> one = expected(picture, c.steps, c.left, c.top, 20, 30);
      check_pages(pages, {&picture}, {1, 3, 30, 20}, one);
      all.push_back(picture);
      values.insert(values.end(), one.begin(), one.end());
    }
    std::vector<const RgbPicture*> batch;
    for (const RgbPicture& picture : all) batch.push_back(&picture);
    check_pages(pages, batch, {static_cast<int64_t>(batch.size()), 3, 30, 20}, values);
  }

  TEST_CASE("document pages: a picture that lies is turned clockwise where the file says so") {
    const DocumentPages pages = pages_of(2, 3, R"(, "do_align_long_axis": true)");
    const RgbPicture lying = random_page(3, 2), standing = random_page(2, 3);
    RgbPicture turned{2, 3, {}};
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 2; ++x) {
        for (int c = 0; c < 3; ++c) turned.pixels.push_back(lying.row(1 - x)[y * 3 + c]);
      }
    }
    check_pages(pages, {&lying}, {1, 3, 3, 2}, expected(turned, {}, 0, 0, 2, 3));
    check_pages(pages, {&standing}, {1, 3, 3, 2}, expected(standing, {}, 0, 0, 2, 3));
    // A page that lies turns pictures that stand, and a square one turns none.
    const DocumentPages wide = pages_of(3, 2, R"(, "do_align_long_axis": true)");
    const DocumentPages square = pages_of(3, 3, R"(, "do_align_long_axis": true)");
    check_pages(wide, {&lying}, {1, 3, 2, 3}, expected(lying, {}, 0, 0, 3, 2));
    RgbPicture laid{3, 2, {}};
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 3; ++x) {
        for (int c = 0; c < 3; ++c) laid.pixels.push_back(standing.row(2 - x)[y * 3 + c]);
      }
    }
    check_pages(wide, {&standing}, {1, 3, 2, 3}, expected(laid, {}, 0, 0, 3, 2));
    check_pages(square, {&lying}, {1, 3, 3, 3},
                expected(lying, {{4, 3, kLinear}, {3, 2, kCubic}}, 0, 0, 3, 3));
  }

  TEST_CASE("document pages: files of any age are read, and a list is width and height") {
    const RgbPicture picture = random_page(11, 5);
    const auto old = JsonConfig::parse(
        R"({"feature_extractor_type": "DonutFeatureExtractor", "size": [20, 30], "resample": 3,)"
        R"( "image_mean": [0, 0, 0], "image_std": [1, 1, 1]})",
        "preprocessor_config.json");
    REQUIRE(old.ok());
    CHECK(DocumentPages::named_by(*old).value());
    const auto pages = DocumentPages::parse(*old);
    REQUIRE(pages.ok());
    const auto made = pages->process(std::vector<const RgbPicture*>{&picture});
    REQUIRE(made.ok());
    CHECK(made->shape == Shape{1, 3, 30, 20});
    const std::vector<float> values =
        expected(picture, {{44, 20, kCubic}, {20, 9, kCubic}}, 0, 10, 20, 30);
    const auto found = made->to_floats();
    REQUIRE(found.ok());
    for (size_t i = 0; i < values.size(); ++i) {
      REQUIRE((*found)[i] == doctest::Approx(values[i] * 0.5 + 0.5).epsilon(1e-6));
    }
    const auto other = JsonConfig::parse(R"({"image_processor_type": "ViTImageProcessor"})", "x");
    CHECK_FALSE(DocumentPages::named_by(*other).value());
    const auto newer =
        JsonConfig::parse(R"({"image_processor_type": "DonutImageProcessorFast"})", "x");
    CHECK(DocumentPages::named_by(*newer).value());
  }

  TEST_CASE("document pages: what makes no page is refused") {
    const auto refuse = [](const std::string& rest, const std::string& part) {
      const auto pages = parse_pages(rest);
      CAPTURE(rest);
      REQUIRE_FALSE(pages.ok());
      CHECK_MESSAGE(contains(pages.error().message, part), pages.error().message);
    };
    refuse(R"(, "do_pad": false)", "[do_pad] is false");
    refuse(R"(, "do_thumbnail": false)", "[do_thumbnail] is false");
    refuse(R"(, "do_resize": false)", "[do_resize] is false");
    refuse(R"(, "size": [7])", "is a list of 1");
    refuse(R"(, "size": {"height": 7})", "width");
    refuse(R"(, "size": {"height": 0, "width": 7})", "a side is 1 to");
    refuse(R"(, "size": {"height": 7, "width": 16385})", "a side is 1 to");
    refuse(R"(, "image_std": [1, 0, 1])", "image_std");
    refuse(R"(, "resample": 9)", "resample");
    const DocumentPages pages = pages_of(20, 30);
    const auto failed = [&](const std::vector<const RgbPicture*>& pictures,
                            const std::string& part) {
      const auto made = pages.process(pictures);
      REQUIRE_FALSE(made.ok());
      CHECK(made.error().code == ErrorCode::kInvalidArgument);
      CHECK_MESSAGE(contains(made.error().message, part), made.error().message);
    };
    failed({}, "give at least one");
    const RgbPicture thread = random_page(1, 100), rope = random_page(1, 1000);
    failed({&thread}, "0 x 30 pixels");
    failed({&rope}, "20 x 20000 pixels");
  }
}
