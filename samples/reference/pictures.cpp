// Examples of pictures, and of prompts with them.
#include <vkformer/image_prompt_reader.h>
#include <vkformer/picture.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "examples.h"

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
  return expect(!inputs->inputs.empty(), "tensors of the picture");
}
