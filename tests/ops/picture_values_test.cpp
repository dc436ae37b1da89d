#include "ops/picture_values.h"

#include <bit>

#include "image/picture_tables.h"
#include "reference/picture_values.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

// A batch of pictures of noise, with the tables of their settings.
struct Pictures {
  std::vector<uint32_t> pixels;  // as they lie in images: the first byte is red, or blue
  PictureTables tables;
  PictureValuesAttrs attrs;
  std::vector<Array> expected;  // of each picture
  std::vector<RgbPicture> rgb;
  PictureSettings settings;
};

// The dense weights of a line's table, (targets, sources).
Array dense(const std::vector<uint32_t>& words, uint32_t entries, int64_t targets,
            int64_t sources) {
  Array weights = reference::filled({targets, sources}, 0.0);
  for (int64_t target = 0; target < targets; ++target) {
    const uint32_t* entry = words.data() + entries + 3 * target;
    for (uint32_t i = 0; i < entry[1]; ++i) {
      weights[target * sources + entry[0] + i] = static_cast<int32_t>(words[entry[2] + i]);
    }
  }
  return weights;
}

Array expected_values(const RgbPicture& picture, const PictureTables& tables, size_t index) {
  reference::PictureValuesInputs inputs;
  inputs.bytes = reference::filled({picture.height, picture.width, 3}, 0.0);
  for (size_t i = 0; i < picture.pixels.size(); ++i) inputs.bytes.data[i] = picture.pixels[i];
  const PictureTapPlace& place = tables.places[index];
  inputs.columns = dense(tables.words, place.columns, tables.size.width, picture.width);
  inputs.rows = dense(tables.words, place.rows, tables.size.height, picture.height);
  inputs.values = reference::filled({3, 256}, 0.0);
  for (int64_t i = 0; i < 768; ++i) {
    inputs.values[i] = std::bit_cast<float>(tables.words[static_cast<size_t>(i)]);
  }
  return reference::picture_values(inputs).value();
}

Pictures make_pictures(const std::vector<PictureSize>& sizes, const PictureSettings& settings,
                       bool swapped) {
  Pictures made;
  made.settings = settings;
  auto tables = make_picture_tables(sizes, settings);
  REQUIRE_MESSAGE(tables.ok(), tables.error().message);
  made.tables = std::move(tables).value();
  made.attrs.width = static_cast<uint32_t>(made.tables.size.width);
  made.attrs.height = static_cast<uint32_t>(made.tables.size.height);
  std::mt19937 engine(static_cast<uint32_t>(sizes.size()) + 7);
  for (size_t i = 0; i < sizes.size(); ++i) {
    RgbPicture picture;
    picture.width = static_cast<int>(sizes[i].width);
    picture.height = static_cast<int>(sizes[i].height);
    const PictureTapPlace& place = made.tables.places[i];
    made.attrs.pictures.push_back({static_cast<uint32_t>(made.pixels.size()),
                                   static_cast<uint32_t>(sizes[i].width),
                                   static_cast<uint32_t>(sizes[i].height), place.columns,
                                   place.rows, place.same_columns, swapped});
    for (int64_t pixel = 0; pixel < sizes[i].width * sizes[i].height; ++pixel) {
      // Extremes too: a bicubic filter overshoots there.
      const uint32_t noise = engine() % 3 == 0 ? 0xffffffffu : static_cast<uint32_t>(engine());
      const uint32_t red = noise & 255, green = noise >> 8 & 255, blue = noise >> 16 & 255;
      made.pixels.push_back(swapped ? blue | green << 8 | red << 16 | 7u << 24 : noise);
      for (uint32_t byte : {red, green, blue}) {
        picture.pixels.push_back(static_cast<uint8_t>(byte));
      }
    }
    made.expected.push_back(expected_values(picture, made.tables, i));
    made.rgb.push_back(std::move(picture));
  }
  return made;
}

PreparedOperator prepare_picture_values(const Pictures& pictures) {
  PreparedOperator op;
  const auto words = [](const std::vector<uint32_t>& list) {
    return word_tensor(list, {static_cast<int64_t>(list.size())});
  };
  const TensorId x = op.bind("pixels", words(pictures.pixels));
  const TensorId t = op.bind("tables", words(pictures.tables.words));
  const auto y = add_picture_values(op.graph, x, t, pictures.attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

// The reference and the processor on the host, both to the bit.
void check_picture_values_case(const std::vector<PictureSize>& sizes,
                               const PictureSettings& settings, bool swapped = false) {
  const Pictures pictures = make_pictures(sizes, settings, swapped);
  std::vector<const RgbPicture*> pointers;
  for (const RgbPicture& picture : pictures.rgb) pointers.push_back(&picture);
  const auto on_host = make_pixel_values(pointers, settings);
  REQUIRE_MESSAGE(on_host.ok(), on_host.error().message);
  Array expected = reference::filled(on_host->shape, 0.0);
  expected.data.clear();
  for (const Array& one : pictures.expected) {
    expected.data.insert(expected.data.end(), one.data.begin(), one.data.end());
  }
  CHECK(reference::to_tensor(expected).bytes == on_host->bytes);
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    const Tensor y = run_poisoned(device, prepare_picture_values(pictures)).at("y");
    CHECK(y.shape == on_host->shape);
    CHECK(y.bytes == on_host->bytes);
  }
}

constexpr Resampling kFilters[] = {Resampling::kNearest, Resampling::kLanczos,
                                   Resampling::kBox,     Resampling::kBilinear,
                                   Resampling::kBicubic, Resampling::kHamming};

Pictures small_batch() {
  return make_pictures({{3, 2}}, {.width = 4, .height = 5}, false);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("picture_values gives the processor's bits for every size and filter") {
    if (!have_test_device()) return;
    for (Resampling filter : kFilters) {
      CAPTURE(static_cast<int>(filter));
      PictureSettings settings{.width = 16, .height = 11, .resampling = filter};
      check_picture_values_case({{37, 23}}, settings);
      check_picture_values_case({{5, 7}}, settings);
    }
    const std::vector<PictureSize> sizes = {{1, 1},   {1, 19},  {127, 1},
                                            {128, 3}, {129, 2}, {16, 16}};
    for (const PictureSize& size : sizes) {
      CAPTURE(size.width);
      check_picture_values_case({size},
                                {.width = 16, .height = 16, .resampling = Resampling::kBicubic});
      check_picture_values_case({size}, {.width = 129, .height = 1});
    }
  }

  TEST_CASE("picture_values crops, pads with black, swaps and batches as the processor does") {
    if (!have_test_device()) return;
    PictureSettings settings{.fit = PictureFit::kShortestEdge,
                             .shortest_edge = 20,
                             .resampling = Resampling::kBicubic,
                             .crop_width = 16,
                             .crop_height = 13,
                             .image_mean = {0.485, 0.456, 0.406},
                             .image_std = {0.229, 0.224, 0.225}};
    check_picture_values_case({{31, 44}, {44, 31}, {20, 20}}, settings);
    check_picture_values_case({{31, 44}, {9, 60}}, settings, true);
    settings.fit = PictureFit::kAsIs;  // and larger than some pictures
    check_picture_values_case({{31, 44}, {9, 6}, {16, 13}, {16, 2}}, settings);
    check_picture_values_case({{1920, 1080}}, {.width = 224, .height = 224});
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("picture_values refuses what does not fit") {
    const Pictures p = small_batch();
    const auto words = [](int64_t count) { return TensorDesc{"x", DType::kU32, {count}}; };
    const auto tables = words(static_cast<int64_t>(p.tables.words.size()));
    const auto check = [&](auto change, const char* part) {
      PictureValuesAttrs attrs = p.attrs;
      change(attrs);
      check_error(check_picture_values(words(6), tables, attrs), "picture_values", part);
    };
    CHECK(check_picture_values(words(6), tables, p.attrs)->shape == Shape{1, 3, 5, 4});
    check([](auto& a) { a.pictures.clear(); }, "0 pictures");
    check([](auto& a) { a.height = 0; }, "4 x 0");
    check([](auto& a) { a.pictures[0].width = 0; }, "0 x 2");
    check([](auto& a) { a.pictures[0].height = 16385; }, "16384");
    check([](auto& a) { a.pictures[0].first_pixel = 1; }, "ends at pixel 7");
    check([](auto& a) { a.pictures[0].rows = 5; }, "words 5");
    check([](auto& a) { a.pictures[0].columns = 4000; }, "of tables");
    check([](auto& a) { a.pictures[0].same_columns = true; }, "3 pixels wide");
    check_error(check_picture_values(floats_desc({6}), tables, p.attrs), "picture_values", "F32");
    check_error(check_picture_values(words(6), {"x", DType::kU32, {2, 3}}, p.attrs),
                "picture_values", "(2, 3)");
  }

  TEST_CASE("picture_values plans two dispatches a picture, one where columns stay") {
    const PreparedOperator op = prepare_picture_values(small_batch());
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "picture_values_run__u32_none_f32");
    CHECK(plan.dispatches.size() == 2);
    check_no_aliasing(plan);
    const PreparedOperator same =
        prepare_picture_values(make_pictures({{4, 9}}, {.width = 4, .height = 5}, false));
    CHECK(plan_with_kernel(same.graph, Tier::kSubgroup, "picture_values_run__u32_none_f32")
              .dispatches.size() == 1);
  }

  TEST_CASE("pictures that come to different sizes, or to none, have no tables") {
    const PictureSize different[] = {{31, 44}, {44, 31}};
    const PictureSettings settings{.fit = PictureFit::kShortestEdge, .shortest_edge = 20};
    const auto refused = make_picture_tables(different, settings);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("20 x 28") != std::string::npos);
    const PictureSize empty[] = {{0, 4}};
    CHECK_FALSE(make_picture_tables(empty, {}).ok());
  }
}

}  // namespace vkformer::testing
