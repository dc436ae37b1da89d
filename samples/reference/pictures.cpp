// Examples of pictures, and of prompts with them.
#include <vkformer/image_prompt_reader.h>
#include <vkformer/picture.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "examples.h"

namespace {

vkformer::Status show_frames(std::span<const std::byte> png) {
  //! [Picture::from_pixels]
  // Makes a picture of a frame of 2 x 2 BGRA pixels, such as one of a camera.
  const std::vector<uint8_t> bytes = {0, 0, 255, 255, 0, 255, 0, 255, 255, 0, 0, 255, 9, 9, 9, 255};
  vkformer::PixelView frame;
  frame.bytes = bytes;
  frame.width = frame.height = 2;
  frame.format = vkformer::PixelFormat::kBgra8;
  const auto picture = vkformer::Picture::from_pixels(frame);
  if (!picture) return picture.error();
  //! [end]

  //! [Picture::decode]
  // Reads a file in memory, of at most 1,000,000 pixels.
  const auto decoded = vkformer::Picture::decode(png, "archive/portrait.png", 1'000'000);
  if (!decoded) return decoded.error();
  //! [end]
  return expect(picture->rgb()[0] == 255, "a red pixel");
}

vkformer::Status show_processors(const std::string& directory,
                                 std::span<const vkformer::Picture> pictures) {
  //! [PictureProcessor::load PictureProcessor::process]
  // Makes the input of a vision model: "pixel_values" (B,3,height,width).
  const auto processor = vkformer::PictureProcessor::load(directory);
  if (!processor) return processor.error();
  const auto values = processor->process(pictures);
  if (!values) return values.error();
  std::printf("%s\n", vkformer::shape_text(values->shape).c_str());
  //! [end]

  //! [PictureProcessor::from_settings PictureProcessor::settings]
  // Describes what a model without preprocessor_config.json does to a picture.
  vkformer::PictureSettings settings;
  settings.fit = vkformer::PictureFit::kShortestEdge;
  settings.shortest_edge = settings.crop_width = settings.crop_height = 64;
  const auto own = vkformer::PictureProcessor::from_settings(settings);
  if (!own) return own.error();
  std::printf("mean of red: %.2f\n", own->settings().image_mean[0]);
  //! [end]
  return expect(values->shape.front() == static_cast<int64_t>(pictures.size()), "all pictures");
}

}  // namespace

vkformer::Status show_pictures(const Setting& setting) {
  //! [Picture::from_rgb Picture::width Picture::height Picture::rgb]
  // Makes a gray picture of 12 columns and 8 rows.
  const std::vector<uint8_t> gray(12 * 8 * 3, 128);
  const auto picture = vkformer::Picture::from_rgb(12, 8, gray);
  if (!picture) return picture.error();
  std::printf("%d x %d pixels, the first one's red is %d\n", picture->width(), picture->height(),
              picture->rgb()[0]);
  //! [end]

  const std::string file = setting.tasks + "/picture-0.png";
  //! [Picture::load]
  // Reads a file; its content tells whether it is PNG, JPEG, BMP, GIF or PNM.
  const auto loaded = vkformer::Picture::load(file);
  if (!loaded) return loaded.error();
  //! [end]

  const std::string directory = setting.tasks + "/prompts-llava";
  const auto model = vkformer::Model::load(setting.device, directory);
  if (!model) return model.error();
  //! [ImagePromptReader::load ImagePromptReader::placeholder ImagePromptReader::read]
  // Makes token ids and tensors of a prompt with a picture, for a batch or a session.
  const auto source = vkformer::ModelSource::directory(directory);
  const auto reader = vkformer::ImagePromptReader::load(*model, source);
  if (!reader) return reader.error();
  vkformer::PromptWithPictures prompt;
  prompt.text = reader->placeholder() + " What is this?";
  prompt.pictures = {&*loaded};
  const auto inputs = reader->read(prompt);
  if (!inputs) return inputs.error();
  std::printf("%zu tokens and %zu tensors\n", inputs->ids.size(), inputs->inputs.size());
  //! [end]
  const auto held = expect(!inputs->inputs.empty(), "tensors of the picture");
  if (!held) return held;
  const std::vector<std::byte> png = read_file(file);
  const auto frames = show_frames(png);
  if (!frames) return frames;
  return show_processors(setting.tasks + "/picture-labels", {&*loaded, 1});
}
