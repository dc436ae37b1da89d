// Pictures to pixel values: preprocessor_config.json against transformers, and what is refused.
#include "image/picture_processor.h"

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/temp_dir.h"
#include "image/picture_samples.h"
#include "vkformer/picture.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

Result<PictureSettings> parse(const std::string& text, const std::string& model_type = "") {
  const auto config = JsonConfig::parse(text, "preprocessor_config.json");
  REQUIRE(config.ok());
  return parse_picture_settings(*config, model_type);
}

PictureSettings parsed(const std::string& text, const std::string& model_type = "") {
  const auto settings = parse(text, model_type);
  REQUIRE_MESSAGE(settings.ok(), (settings ? "" : settings.error().message));
  return *settings;
}

// `rest` follows the processor's name.
void refuse(const std::string& rest, ErrorCode code, const std::string& part,
            const std::string& type = "ViTImageProcessor") {
  const auto settings = parse(R"({"image_processor_type": ")" + type + "\"" + rest + "}");
  CAPTURE(rest);
  REQUIRE(!settings.ok());
  CAPTURE(settings.error().message);
  CHECK(settings.error().code == code);
  CHECK(contains(settings.error().message, "preprocessor_config.json"));
  CHECK(contains(settings.error().message, part));
}

Picture flat(int width, int height, uint8_t value) {
  const std::vector<uint8_t> bytes(static_cast<size_t>(width * height * 3), value);
  auto picture = Picture::from_rgb(width, height, bytes);
  REQUIRE(picture.ok());
  return std::move(*picture);
}

Result<Tensor> process(const PictureSettings& settings, std::vector<Picture> pictures) {
  const auto processor = PictureProcessor::from_settings(settings);
  REQUIRE_MESSAGE(processor.ok(), (processor ? "" : processor.error().message));
  return processor->process(pictures);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("picture processor: CLIP, Bit and Siglip have their own defaults") {
    for (const char* type : {"CLIPImageProcessor", "CLIPFeatureExtractor", "BitImageProcessor"}) {
      const PictureSettings s = parsed(R"({"image_processor_type": ")" + std::string(type) + "\"}");
      CHECK(s.fit == PictureFit::kShortestEdge);
      CHECK(s.shortest_edge == 224);
      CHECK(s.crop_width == 224);
      CHECK(s.image_mean[0] == 0.48145466);
      CHECK(s.image_std[2] == 0.27577711);
      CHECK(s.resampling == Resampling::kBicubic);
    }
    // A number is the shortest edge.
    const PictureSettings old = parsed(
        R"({"feature_extractor_type": "CLIPFeatureExtractor", "size": 336, "crop_size": 320})");
    CHECK(old.shortest_edge == 336);
    CHECK(old.crop_height == 320);
    CHECK(parsed("{}", "dinov2").shortest_edge == 224);
    const PictureSettings blip = parsed(R"({"image_processor_type": "BlipImageProcessor"})");
    CHECK(blip.width == 384);
    CHECK(blip.resampling == Resampling::kBicubic);
    CHECK(blip.image_mean[0] == 0.48145466);
    const PictureSettings sig = parsed(R"({"image_processor_type": "SiglipImageProcessor"})");
    CHECK(sig.fit == PictureFit::kStretch);
    CHECK(sig.width == 224);
    CHECK(sig.crop_width == 0);
    CHECK(sig.image_mean[1] == 0.5);
    const PictureSettings dino = parsed("{}", "dinov3_vit");
    CHECK(dino.fit == PictureFit::kStretch);
    CHECK(dino.resampling == Resampling::kBilinear);
    CHECK(dino.width == 224);
    CHECK(dino.image_std == std::array{0.229, 0.224, 0.225});
  }

  TEST_CASE("picture processor: an unknown class is answered with those that are known") {
    refuse("", ErrorCode::kUnsupported,
           "Beit, ConvNext, CLIP, Llava, Bit, Detr, Yolos, RTDetr, DPT, Sam, Siglip, Blip, Gemma3, "
           "Siglip2, DINOv3ViT",
           "SomeImageProcessor");
  }

  TEST_CASE("picture processor: the pixel values of the reference, bit by bit") {
    const TensorMap golden = golden_pictures();
    const RgbPicture source = to_picture(golden.at("source"));
    int cases = 0;
    for (const auto& [bound_name, tensor] : golden) {
      const auto& name = bound_name;
      if (!name.starts_with("config.")) continue;
      CAPTURE(name);
      ++cases;
      const TempDir dir;
      dir.write("preprocessor_config.json",
                {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
      const auto processor = PictureProcessor::load(dir.path());
      REQUIRE_MESSAGE(processor.ok(), (processor ? "" : processor.error().message));
      std::vector<Picture> batch;
      for (int i = 0; i < 2; ++i) {
        auto picture = Picture::from_rgb(source.width, source.height, source.pixels);
        REQUIRE(picture.ok());
        batch.push_back(std::move(*picture));
      }
      const auto values = processor->process(batch);
      REQUIRE_MESSAGE(values.ok(), (values ? "" : values.error().message));
      const Tensor& expected = golden.at("values." + name.substr(7));
      const Shape& shape = expected.shape;
      REQUIRE(values->dtype == DType::kF32);
      REQUIRE(values->shape == Shape{2, 3, shape[2], shape[3]});
      auto twice = expected.bytes;
      twice.insert(twice.end(), expected.bytes.begin(), expected.bytes.end());
      CHECK(values->bytes == twice);
    }
    CHECK(cases == 10);
  }

  TEST_CASE("picture processor: missing keys have the defaults of their class") {
    const PictureSettings vit = parsed(R"({"image_processor_type": "ViTImageProcessorFast"})");
    CHECK(vit.fit == PictureFit::kStretch);
    CHECK(vit.width == 224);
    CHECK(vit.height == 224);
    CHECK(vit.resampling == Resampling::kBilinear);
    CHECK(vit.crop_width == 0);
    CHECK(vit.rescale == 1.0 / 255.0);
    CHECK(vit.image_mean == std::array{0.5, 0.5, 0.5});
    CHECK(vit.image_std == std::array{0.5, 0.5, 0.5});
    const PictureSettings deit = parsed(R"({"feature_extractor_type": "DeiTFeatureExtractor"})");
    CHECK(deit.width == 256);
    CHECK(deit.crop_width == 224);
    CHECK(deit.crop_height == 224);
    CHECK(deit.resampling == Resampling::kBicubic);
    const PictureSettings large = parsed(R"({"image_processor_type": "ConvNextImageProcessor"})");
    CHECK(large.fit == PictureFit::kStretch);
    CHECK(large.width == 384);
    CHECK(large.crop_width == 0);
    const PictureSettings small =
        parsed(R"({"feature_extractor_type": "ConvNextFeatureExtractor", "size": 224})");
    CHECK(small.fit == PictureFit::kShortestEdge);
    CHECK(small.shortest_edge == 256);
    CHECK(small.crop_width == 224);
    CHECK(small.resampling == Resampling::kBicubic);
  }

  TEST_CASE("picture processor: detectors bound the longer side") {
    const PictureSettings detr = parsed(R"({"image_processor_type": "DetrImageProcessor",
        "do_pad": true, "size": {"shortest_edge": 800, "longest_edge": 1333}})");
    const PictureSettings yolos = parsed(R"({"feature_extractor_type": "YolosFeatureExtractor"})");
    CHECK(detr.image_mean == std::array{0.485, 0.456, 0.406});
    CHECK(yolos.longest_edge == 1333);
    CHECK(parsed(R"({"size": 512, "max_size": 864})", "yolos").longest_edge == 864);
    // As get_size_with_aspect_ratio of transformers rounds; YOLOS's sides are multiples of 16.
    const struct {
      PictureSize picture, detr, yolos;
    } rows[] = {{{640, 480}, {1066, 800}, {1056, 800}},  {{480, 640}, {800, 1066}, {800, 1056}},
                {{2000, 300}, {1333, 200}, {1328, 192}}, {{301, 2000}, {201, 1333}, {192, 1328}},
                {{800, 800}, {800, 800}, {800, 800}},    {{1201, 97}, {1333, 108}, {1328, 96}}};
    for (const auto& row : rows) {
      CHECK(resized_size(row.picture, detr) == row.detr);
      CHECK(resized_size(row.picture, yolos) == row.yolos);
    }
    refuse(R"(, "size": 512, "max_size": 0)", ErrorCode::kInvalidFile, "[max_size]",
           "YolosImageProcessor");
  }

  TEST_CASE("picture processor: pictures of DPT change as little as sides of patches allow") {
    const std::string file =
        R"({"image_processor_type": "DPTImageProcessor", "keep_aspect_ratio": true,
        "ensure_multiple_of": 14, "size": {"height": 518, "width": 518}})";
    const PictureSettings s = parsed(file, "");
    CHECK(s.fit == PictureFit::kLeastChange);
    // As get_resize_output_image_size of transformers rounds.
    const struct {
      PictureSize picture, resized;
    } rows[] = {{{640, 480}, {686, 518}}, {{480, 640}, {518, 686}},    {{518, 518}, {518, 518}},
                {{300, 200}, {518, 350}}, {{1000, 2000}, {518, 1036}}, {{21, 20}, {518, 490}}};
    for (const auto& row : rows) CHECK(resized_size(row.picture, s) == row.resized);
    CHECK(keeps_proportions(s));
    const PictureSettings stretched = parsed(
        R"({"ensure_multiple_of": 32, "size": {"height": 400, "width": 336}})", "depth_anything");
    CHECK(stretched.fit == PictureFit::kStretch);
    CHECK(stretched.height == 384);  // 12.5 times 32 goes to the even one
    CHECK(stretched.width == 320);
    CHECK(stretched.image_mean[0] == 0.5);
    refuse(R"(, "ensure_multiple_of": 0)", ErrorCode::kInvalidFile, "[ensure_multiple_of]",
           "DPTImageProcessor");
  }

  TEST_CASE(
      "picture processor: pictures of SAM are padded with zeros at the right and the bottom") {
    const PictureSettings whole = parsed("{}", "sam");
    CHECK(whole.fit == PictureFit::kLongestEdge);
    CHECK(whole.longest_edge == 1024);
    CHECK(resized_size({1800, 1200}, whole) == PictureSize{1024, 683});
    CHECK(resized_size({7, 2000}, whole) == PictureSize{4, 1024});
    CHECK_FALSE(keeps_proportions(whole));
    const PictureSettings small =
        parsed(R"({"size": {"longest_edge": 4}, "pad_size": {"height": 6, "width": 5}})", "sam");
    const auto processor = PictureProcessor::from_settings(small);
    REQUIRE(processor.ok());
    const std::vector<uint8_t> bytes(4 * 2 * 3, 255);
    const Picture picture = std::move(Picture::from_rgb(4, 2, bytes)).value();
    const auto values = processor->process({&picture, 1});
    REQUIRE(values.ok());
    CHECK(values->shape == Shape{1, 3, 6, 5});
    const std::vector<float> planes = values->to_floats().value();
    for (int64_t i = 0; i < 3 * 6 * 5; ++i) {
      const bool inside = i % 5 < 4 && i / 5 % 6 < 2;
      CHECK((planes[static_cast<size_t>(i)] != 0.0f) == inside);
    }
    refuse(R"(, "do_pad": false)", ErrorCode::kUnsupported, "[pad_size]", "SamImageProcessor");
    refuse(R"(, "size": {"longest_edge": 2000})", ErrorCode::kUnsupported, "[pad_size]",
           "SamImageProcessor");
  }

  TEST_CASE("picture processor: pictures of RT-DETR are normalized if the file says so") {
    const PictureSettings plain = parsed(R"({"image_mean": [0.1, 0.2, 0.3]})", "rt_detr");
    CHECK(plain.fit == PictureFit::kStretch);
    CHECK(plain.width == 640);
    CHECK(plain.image_mean[1] == 0.0);
    CHECK(plain.image_std[1] == 1.0);
    CHECK(plain.rescale == doctest::Approx(1.0 / 255.0));
    const PictureSettings normal = parsed(R"({"do_normalize": true})", "rt_detr");
    CHECK(normal.image_mean[0] == 0.485);
  }

  TEST_CASE("picture processor: pictures in patches are as large as these allow") {
    // As get_image_size_for_max_num_patches of transformers searches.
    const struct {
      PictureSize picture;
      int patch, most;
      PictureSize resized;
    } rows[] = {{{640, 480}, 16, 256, {288, 224}},  {{480, 640}, 16, 256, {224, 288}},
                {{16, 16}, 16, 256, {256, 256}},    {{3000, 20}, 16, 256, {2400, 16}},
                {{97, 1201}, 14, 729, {112, 1274}}, {{1, 16384}, 16, 1, {16, 16}},
                {{333, 777}, 16, 1024, {336, 768}}};
    for (const auto& row : rows) {
      PictureSettings s = parsed("{}", "siglip2");
      CHECK(s.max_patches == 256);
      CHECK(s.side_multiple == 16);
      s.side_multiple = row.patch;
      s.max_patches = row.most;
      CHECK(resized_size(row.picture, s) == row.resized);
    }
    CHECK(parsed(R"({"max_num_patches": 1024, "patch_size": 14})", "siglip2").side_multiple == 14);
    CHECK(keeps_proportions(parsed("{}", "siglip2")));
    CHECK_FALSE(keeps_proportions(parsed("{}", "siglip")));
    refuse(R"(, "max_num_patches": 0)", ErrorCode::kInvalidFile, "[max_num_patches]",
           "Siglip2ImageProcessor");
  }

  TEST_CASE("picture processor: values as files spell them") {
    const PictureSettings settings =
        parsed(R"({"image_processor_type": "ViTImageProcessor", "size": [10, 20], "resample": 0,
          "do_center_crop": null, "image_mean": 0.25, "image_std": [1, 2, 3], "do_convert_rgb": true,
          "rescale_factor": 0.5})");
    CHECK(settings.height == 10);
    CHECK(settings.width == 20);
    CHECK(settings.resampling == Resampling::kNearest);
    CHECK(settings.image_mean == std::array{0.25, 0.25, 0.25});
    CHECK(settings.image_std == std::array{1.0, 2.0, 3.0});
    CHECK(settings.rescale == 0.5);
    const PictureSettings bare = parsed(
        R"({"image_processor_type": "ViTImageProcessor", "do_resize": false, "do_rescale": false,
          "do_normalize": false, "size": {"nonsense": true}})");
    CHECK(bare.fit == PictureFit::kAsIs);
    CHECK(bare.rescale == 1.0);
    CHECK(bare.image_mean == std::array{0.0, 0.0, 0.0});
    CHECK(bare.image_std == std::array{1.0, 1.0, 1.0});
  }

  TEST_CASE("picture processor: where no class is named, the model's type decides") {
    CHECK(parsed("{}", "swin").width == 224);
    CHECK(parsed("{}", "deit").crop_width == 224);
    CHECK(parsed(R"({"size": 224})", "cvt").shortest_edge == 256);
    for (const char* type : {"", "bert"}) {
      const auto unknown = parse("{}", type);
      REQUIRE(!unknown.ok());
      CHECK(unknown.error().code == ErrorCode::kUnsupported);
    }
    const TempDir dir;
    dir.write("preprocessor_config.json", "{}");
    CHECK(!PictureProcessor::load(dir.path()).ok());
    dir.write("config.json", R"({"model_type": "vit"})");
    CHECK(PictureProcessor::load(dir.path()).ok());
  }

  TEST_CASE("picture processor: what is not supported or wrong is named") {
    const auto bad = ErrorCode::kInvalidFile, no = ErrorCode::kUnsupported;
    refuse("", no, "PerceiverImageProcessor", "PerceiverImageProcessor");
    refuse(R"(, "do_pad": true)", no, "[do_pad]");
    refuse(R"(, "resample": 6)", no, "[resample]");
    refuse(R"(, "resample": "bicubic")", bad, "resample");
    refuse(R"(, "size": 0)", bad, "[size]");
    refuse(R"(, "size": 16385)", bad, "16384");
    refuse(R"(, "size": [1, 2, 3])", bad, "list of 3");
    refuse(R"(, "size": [])", bad, "[size]");
    refuse(R"(, "size": "large")", bad, "size");
    refuse(R"(, "size": {"longest_edge": 5})", no, "[size.longest_edge]");
    refuse(R"(, "size": {"height": 5})", bad, "height and width");
    refuse(R"(, "size": {"height": 5, "width": 6, "shortest_edge": 7})", bad, "height and width");
    refuse(R"(, "size": {"height": -5, "width": 6})", bad, "[size.height]");
    refuse(R"(, "size": {})", bad, "height and width");
    refuse(R"(, "do_center_crop": true)", bad, "[crop_size]");
    refuse(R"(, "do_center_crop": true, "crop_size": {"shortest_edge": 3})", bad, "[crop_size]");
    refuse(R"(, "do_resize": 1)", bad, "do_resize");
    refuse(R"(, "image_mean": [1, 2])", bad, "[image_mean]");
    refuse(R"(, "image_std": [1, 0, 1])", bad, "std");
    refuse(R"(, "image_std": 1e-60)", bad, "std");
    const std::string conv_next = "ConvNextImageProcessor";
    refuse(R"(, "size": {"height": 5, "width": 5})", no, "shortest_edge", conv_next);
    refuse(R"(, "size": 5, "crop_pct": 0)", bad, "[crop_pct]", conv_next);
    refuse(R"(, "size": 5, "crop_pct": -1)", bad, "[crop_pct]", conv_next);
    refuse(R"(, "size": 5, "crop_pct": 1e-9)", bad, "[crop_pct]", conv_next);
    refuse(R"(, "size": 5, "do_center_crop": true)", no, "[do_center_crop]", conv_next);
  }

  TEST_CASE("picture processor: a directory without the file says what to do") {
    const TempDir dir;
    const auto processor = PictureProcessor::load(dir.path());
    REQUIRE(!processor.ok());
    CHECK(processor.error().code == ErrorCode::kNotFound);
    CHECK(contains(processor.error().message, "[preprocessor_config.json]"));
    CHECK(contains(processor.error().message, "PictureSettings"));
  }

  TEST_CASE("picture processor: settings that make no picture are refused") {
    const auto refused = [](auto change) {
      PictureSettings settings;
      change(settings);
      return !PictureProcessor::from_settings(settings).ok();
    };
    CHECK(!refused([](PictureSettings&) {}));
    CHECK(refused([](PictureSettings& s) { s.width = 0; }));
    CHECK(refused([](PictureSettings& s) { s.height = 20000; }));
    CHECK(refused([](PictureSettings& s) { s.crop_width = 1; }));
    CHECK(refused([](PictureSettings& s) { s.crop_width = s.crop_height = -1; }));
    CHECK(refused([](PictureSettings& s) { s.image_std[1] = 0.0; }));
    CHECK(refused(
        [](PictureSettings& s) { s.image_mean[2] = std::numeric_limits<double>::quiet_NaN(); }));
    CHECK(refused([](PictureSettings& s) { s.rescale = std::numeric_limits<double>::infinity(); }));
    CHECK(refused([](PictureSettings& s) { s.resampling = static_cast<Resampling>(6); }));
    CHECK(refused([](PictureSettings& s) { s.fit = static_cast<PictureFit>(6); }));
    CHECK(refused([](PictureSettings& s) {
      s.fit = PictureFit::kShortestEdge;
      s.shortest_edge = 0;
    }));
    CHECK(refused([](PictureSettings& s) {
      s.fit = PictureFit::kMostPatches;
      s.max_patches = 0;
    }));
  }

  TEST_CASE("picture processor: a crop larger than the picture has a black margin") {
    PictureSettings settings;
    settings.fit = PictureFit::kAsIs;
    settings.crop_width = 4;
    settings.crop_height = 1;
    settings.image_mean = {1.0, 0.0, 0.0};
    settings.image_std = {1.0, 1.0, 1.0};
    std::vector<Picture> pictures;
    pictures.push_back(flat(1, 3, 255));
    const auto values = process(settings, std::move(pictures));
    REQUIRE(values.ok());
    CHECK(values->shape == Shape{1, 3, 1, 4});
    const auto floats = values->to_floats();
    REQUIRE(floats.ok());
    CHECK(*floats == std::vector<float>{-1, -1, 0, -1, 0, 0, 1, 0, 0, 0, 1, 0});
  }

  TEST_CASE("picture processor: a batch has one size") {
    PictureSettings settings;
    settings.fit = PictureFit::kShortestEdge;
    settings.shortest_edge = 4;
    std::vector<Picture> pictures;
    pictures.push_back(flat(8, 16, 1));
    pictures.push_back(flat(2, 4, 2));
    const auto same = process(settings, std::move(pictures));
    REQUIRE(same.ok());
    CHECK(same->shape == Shape{2, 3, 8, 4});
    pictures.clear();
    pictures.push_back(flat(8, 16, 1));
    pictures.push_back(flat(16, 8, 1));
    const auto mixed = process(settings, std::move(pictures));
    REQUIRE(!mixed.ok());
    CHECK(contains(mixed.error().message, "[1]"));
    CHECK(contains(mixed.error().message, "8 x 4"));
    CHECK(!process(settings, {}).ok());
    pictures.clear();
    pictures.push_back(flat(8, 16, 1));
    const Picture moved = std::move(pictures.front());
    CHECK(!process(settings, std::move(pictures)).ok());
  }

  TEST_CASE("picture processor: a strip that would become too long is refused") {
    PictureSettings settings;
    settings.fit = PictureFit::kShortestEdge;
    settings.shortest_edge = 224;
    settings.crop_width = settings.crop_height = 224;
    std::vector<Picture> pictures;
    pictures.push_back(flat(1, 16384, 1));
    const auto values = process(settings, std::move(pictures));
    REQUIRE(!values.ok());
    CHECK(contains(values.error().message, "3670016"));
  }
}
