// What image processors of models that read images in prompts make of pictures, against
// transformers, and what is refused.
#include <string>

#include "checkpoint/file_store.h"
#include "checkpoint/temp_dir.h"
#include "image/picture_samples.h"
#include "image/prompt_image_processor.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

Result<PromptImageProcessor> processor(const std::string& text, const std::string& type = "") {
  const auto config = JsonConfig::parse(text, "preprocessor_config.json");
  REQUIRE(config.ok());
  return PromptImageProcessor::parse(*config, type);
}

RgbPicture plain(int width, int height) {
  RgbPicture picture;
  picture.width = width;
  picture.height = height;
  picture.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 7);
  return picture;
}

std::string named(const std::string& type, const std::string& rest = "") {
  return R"({"image_processor_type": ")" + type + "\"" + rest + "}";
}

void refuse(const std::string& text, const std::string& part) {
  const auto made = processor(text);
  CAPTURE(text);
  REQUIRE(!made.ok());
  CAPTURE(made.error().message);
  CHECK(made.error().message.find(part) != std::string::npos);
  CHECK(made.error().message.find("preprocessor_config.json") != std::string::npos);
}

void refuse_picture(const std::string& text, const RgbPicture& picture, const std::string& part) {
  const auto made = processor(text);
  REQUIRE(made.ok());
  const auto images = made->process(picture);
  CAPTURE(text);
  REQUIRE(!images.ok());
  CAPTURE(images.error().message);
  CHECK(images.error().message.find(part) != std::string::npos);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("prompt images: pictures become what transformers makes of them") {
    auto read = read_tensor_file(std::string(VKFORMER_SOURCE_DIR) +
                                 "/tests/image/golden/prompt_images.safetensors");
    REQUIRE(read.ok());
    TensorMap& golden = *read;
    int cases = 0;
    for (; golden.count("config." + std::to_string(cases)) != 0; ++cases) {
      const std::string n = "." + std::to_string(cases);
      const Tensor& config = golden["config" + n];
      const std::string text(reinterpret_cast<const char*>(config.bytes.data()),
                             config.bytes.size());
      INFO(text);
      const auto made = processor(text);
      REQUIRE_MESSAGE(made.ok(), (made ? "" : made.error().message));
      auto images = made->process(to_picture(golden["picture" + n]));
      REQUIRE_MESSAGE(images.ok(), (images ? "" : images.error().message));
      const Tensor& values = images->tensors["pixel_values"];
      CHECK(values.shape == golden["values" + n].shape);
      const auto found = values.to_floats(), expected = golden["values" + n].to_floats();
      REQUIRE((found.ok() && expected.ok()));
      CHECK(*found == *expected);
      if (golden.count("grid" + n) != 0) {
        CHECK(images->tensors["image_grid_thw"].to_ints().value() ==
              golden["grid" + n].to_ints().value());
      }
      if (golden.count("tiles" + n) != 0) {
        CHECK(std::vector<int64_t>{images->rows, images->columns} ==
              golden["tiles" + n].to_ints().value());
      }
    }
    CHECK(cases == 18);
  }

  TEST_CASE("prompt images: the model's type decides where no class is named") {
    for (const char* type :
         {"llava", "paligemma", "gemma3", "idefics3", "smolvlm", "qwen2_5_vl", "qwen3_vl"}) {
      CHECK(processor("{}", type).ok());
    }
    CHECK(!processor("{}", "llama").ok());
    const auto fast = processor(named("Idefics3ImageProcessorFast"));
    REQUIRE(fast.ok());
    CHECK(fast->process(plain(9, 5))->tensors["pixel_values"].shape == Shape{1, 13, 3, 364, 364});
  }

  TEST_CASE("prompt images: settings that are wrong or not supported are refused") {
    refuse(named("Gemma3ImageProcessor", R"(, "do_pan_and_scan": true)"), "[do_pan_and_scan]");
    refuse(named("LlavaImageProcessor", R"(, "do_pad": true)"), "[do_pad]");
    refuse(named("Idefics3ImageProcessor", R"(, "size": {"longest_edge": 0})"),
           "[size.longest_edge]");
    refuse(named("Idefics3ImageProcessor", R"(, "max_image_size": {"longest_edge": 1e6})"),
           "[max_image_size.longest_edge]");
    refuse(
        named("SmolVLMImageProcessor", R"(, "size": {"longest_edge": 9, "height": 9, "width": 9})"),
        "[size]");
    refuse(named("SmolVLMImageProcessor", R"(, "resample": 9)"), "[resample]");
    refuse(named("Qwen2VLImageProcessor", R"(, "patch_size": 0)"), "[patch_size]");
    refuse(named("Qwen2VLImageProcessor", R"(, "min_pixels": 900, "max_pixels": 90)"), "[size]");
    refuse(named("Qwen2VLImageProcessor", R"(, "image_std": [0, 1, 1])"), "image_std");
    refuse(named("PixtralImageProcessor"), "[image_processor_type]");
  }

  TEST_CASE("prompt images: pictures that a model cannot take are refused") {
    refuse_picture(named("Qwen2VLImageProcessor"), plain(201, 1), "200 times");
    refuse_picture(named("Qwen2VLImageProcessor", R"(, "do_resize": false)"), plain(28, 30),
                   "multiples of 28");
    refuse_picture(named("Qwen2VLImageProcessor", R"(, "max_pixels": 1e12, "min_pixels": 1e11)"),
                   plain(30, 30), "over the limit");
    refuse_picture(named("SmolVLMImageProcessor", R"(, "max_image_size": {"longest_edge": 8})"),
                   plain(1000, 1000), "tiles");
  }

  TEST_CASE("prompt images: a processor may be part of processor_config.json") {
    const TempDir dir;
    dir.write("processor_config.json",
              R"({"image_processor": {"image_processor_type": "SiglipImageProcessor",
                  "size": {"height": 6, "width": 4}}, "image_seq_length": 9})");
    const auto made = PromptImageProcessor::load(*make_directory_store(dir.path()), "paligemma");
    REQUIRE(made.ok());
    CHECK(made->process(plain(9, 9))->tensors["pixel_values"].shape == Shape{1, 3, 6, 4});
    dir.write("processor_config.json", R"({"image_seq_length": 9})");
    const auto none = PromptImageProcessor::load(*make_directory_store(dir.path()), "paligemma");
    REQUIRE(!none.ok());
    CHECK(none.error().code == ErrorCode::kNotFound);
    CHECK(none.error().message.find("[preprocessor_config.json]") != std::string::npos);
  }
}
