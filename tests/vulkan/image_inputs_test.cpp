// A vision model that reads the application's images, against the processor on the host.
#include <limits>
#include <random>

#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"
#include "vulkan/host_image.h"

namespace vkformer::testing {
namespace {

constexpr double kWhole = std::numeric_limits<double>::infinity();

// A picture of noise in both of its forms.
struct Noise {
  int width, height;
  std::vector<uint32_t> words;  // as in an image
  std::vector<uint8_t> bytes;   // as in the same picture on the host

  Noise(int w, int h, uint32_t seed) : width(w), height(h) {
    std::mt19937 engine(seed);
    for (int i = 0; i < w * h; ++i) words.push_back(static_cast<uint32_t>(engine()));
    bytes.resize(4 * words.size());
    std::memcpy(bytes.data(), words.data(), bytes.size());
  }
  Picture picture(PixelFormat format = PixelFormat::kRgba8) const {
    auto made = Picture::from_pixels({bytes, width, height, 0, format});
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    return std::move(made).value();
  }
};

struct Seer {
  HostDevice host{VK_API_VERSION_1_2};
  std::optional<Session> session;
  std::optional<PictureProcessor> processor;

  explicit Seer(const PictureSettings& settings) {
    auto device = adopt_device(host.adopted(), no_cache());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    auto model = Model::load(*device, golden_case("vit-base").path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto made = Session::create(*model);
    REQUIRE(made.ok());
    session.emplace(std::move(made).value());
    auto known = PictureProcessor::from_settings(settings);
    REQUIRE_MESSAGE(known.ok(), known.error().message);
    processor.emplace(std::move(known).value());
  }

  // Of pictures on the host.
  TensorMap expected(const std::vector<Picture>& pictures) {
    auto pixels = processor->process(pictures);
    REQUIRE_MESSAGE(pixels.ok(), pixels.error().message);
    auto outputs = session->run({{"pixel_values", std::move(pixels).value()}});
    REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
    return std::move(outputs).value();
  }

  void check(const std::vector<ImageInput>& images, const TensorMap& wanted) {
    for (double budget : {kWhole, 200.0}) {
      CAPTURE(budget);
      const Status started = start_on_images(*session, {}, images, *processor);
      REQUIRE_MESSAGE(started.ok(), started.error().message);
      bool more = true;
      while (more) {
        HostQueue frame(host);
        const auto advance = session->record(frame.commands(), budget);
        REQUIRE_MESSAGE(advance.ok(), advance.error().message);
        more = advance->more_to_submit();
        frame.submit_and_wait();
      }
      compare(wanted);
    }
    const Status started = start_on_images(*session, {}, images, *processor);
    REQUIRE_MESSAGE(started.ok(), started.error().message);
    auto advance = session->advance(kWhole);
    while (advance.ok() && advance->more_to_submit()) {
      advance = session->advance(kWhole);
    }
    REQUIRE_MESSAGE(advance.ok(), advance.error().message);
    compare(wanted);
  }

  void compare(const TensorMap& wanted) {
    const auto outputs = session->finish();
    REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
    CHECK(outputs->size() == wanted.size());
    for (const auto& [bound_name, tensor] : wanted) {
      const auto& name = bound_name;
      REQUIRE(outputs->count(name) == 1);
      CHECK_MESSAGE(tensor.bytes == outputs->at(name).bytes, name);
    }
  }
};

template <class... Pictures>
std::vector<Picture> list(Pictures... pictures) {
  std::vector<Picture> all;
  (all.push_back(std::move(pictures)), ...);
  return all;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("images of the application give the bits of pictures on the host") {
    if (!have_test_device()) return;
    Seer seer({.width = 32, .height = 32});
    struct Case {
      HostImage::Place place;
      PixelFormat format;
    };
    const Case cases[] = {
        {{}, PixelFormat::kRgba8},
        {{VK_FORMAT_R8G8B8A8_SRGB, VK_IMAGE_LAYOUT_GENERAL}, PixelFormat::kRgba8},
        {{VK_FORMAT_B8G8R8A8_UNORM, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, 2, 0},
         PixelFormat::kBgra8},
        {{VK_FORMAT_B8G8R8A8_SRGB, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, 3},
         PixelFormat::kBgra8},
    };
    for (const Case& c : cases) {
      CAPTURE(c.place.format);
      const Noise noise(53, 41, static_cast<uint32_t>(c.place.format));
      HostImage image(seer.host, 53, 41, noise.words, c.place);
      seer.check({image.input()}, seer.expected(list(noise.picture(c.format))));
      // In its layout again, which validation would deny, and as it was.
      CHECK(image.read() == noise.words);
    }
  }

  TEST_CASE("a batch of images, one of them twice, cropped as the model's settings say") {
    if (!have_test_device()) return;
    Seer seer({.fit = PictureFit::kShortestEdge,
               .shortest_edge = 36,
               .resampling = Resampling::kBicubic,
               .crop_width = 32,
               .crop_height = 32,
               .image_mean = {0.485, 0.456, 0.406},
               .image_std = {0.229, 0.224, 0.225}});
    const Noise wide(70, 40, 1), high(33, 90, 2);
    HostImage first(seer.host, 70, 40, wide.words, {});
    HostImage second(seer.host, 33, 90, high.words, {VK_FORMAT_B8G8R8A8_UNORM});
    seer.check(
        {first.input(), second.input(), first.input()},
        seer.expected(list(wide.picture(), high.picture(PixelFormat::kBgra8), wide.picture())));
  }

  TEST_CASE("images that cannot be read are refused by name, and nothing is started") {
    if (!have_test_device()) return;
    Seer seer({.width = 32, .height = 32});
    const Noise noise(8, 8, 3);
    HostImage image(seer.host, 8, 8, noise.words, {});
    const auto refused = [&](auto change, const char* part) {
      ImageInput input = image.input();
      change(input);
      const Status started = start_on_images(*seer.session, {}, {input}, *seer.processor);
      REQUIRE_FALSE(started.ok());
      CHECK_MESSAGE(started.error().message.find(part) != std::string::npos,
                    started.error().message);
    };
    refused([](ImageInput& i) { i.image = VK_NULL_HANDLE; }, "is null");
    refused([](ImageInput& i) { i.format = VK_FORMAT_R16G16B16A16_SFLOAT; }, "has VkFormat 97");
    refused([](ImageInput& i) { i.layout = VK_IMAGE_LAYOUT_UNDEFINED; }, "VkImageLayout 0");
    refused([](ImageInput& i) { i.width = 0; }, "[0] of the images has 0 x 8");
    refused([](ImageInput& i) { i.height = 16385; }, "16384");
    const auto start = [&](const TensorMap& inputs, const std::vector<ImageInput>& images) {
      return start_on_images(*seer.session, inputs, images, *seer.processor);
    };
    CHECK_FALSE(start({}, {}).ok());
    const Tensor pixels = Tensor::zeros(DType::kF32, {1, 3, 32, 32});
    CHECK_FALSE(start({{"pixel_values", pixels}}, {image.input()}).ok());
    CHECK(seer.session->run({{"pixel_values", pixels}}).ok());
    REQUIRE(start({}, {image.input()}).ok());
    CHECK_FALSE(start({}, {image.input()}).ok());  // one at a time
    CHECK(seer.session->cancel().ok());
    CHECK(forget_buffers(*seer.session).ok());
  }
}

}  // namespace vkformer::testing
