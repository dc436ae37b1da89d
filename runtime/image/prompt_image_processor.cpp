#include "image/prompt_image_processor.h"

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/file_store.h"
#include "image/processor_reading.h"

namespace vkformer {
namespace {

Result<PromptImages> process_whole(const PictureSettings& settings, const RgbPicture& picture) {
  const RgbPicture* const one = &picture;
  PromptImages made;
  VKF_ASSIGN(Tensor values, make_pixel_values({&one, 1}, settings));
  made.height = values.shape[2];
  made.width = values.shape[3];
  made.tensors["pixel_values"] = std::move(values);
  return made;
}

}  // namespace

Result<PromptImageProcessor> PromptImageProcessor::parse(const JsonConfig& config,
                                                         const std::string& model_type) {
  VKF_ASSIGN(const std::string type, processor_class(config));
  const std::string_view name = class_stem(type);
  const auto is = [&](std::string_view stem, std::string_view model) {
    return type.empty() ? model_type == model : name == stem;
  };
  if (is("Idefics3", "idefics3") || is("SmolVLM", "smolvlm")) {
    VKF_ASSIGN(ImageTiles tiles, ImageTiles::parse(config));
    return PromptImageProcessor(std::move(tiles));
  }
  if (is("Qwen2VL", "qwen2_5_vl") || is("Qwen2VL", "qwen3_vl")) {
    VKF_ASSIGN(ImagePatches patches, ImagePatches::parse(config));
    return PromptImageProcessor(std::move(patches));
  }
  VKF_ASSIGN(const PictureSettings settings, parse_picture_settings(config, model_type));
  return PromptImageProcessor(settings);
}

Result<PromptImageProcessor> PromptImageProcessor::load(const FileStore& files,
                                                        const std::string& model_type) {
  const auto config = load_processor_config(files);
  if (!config && config.error().code == ErrorCode::kNotFound) {
    return not_found(
        message({"The model has no [preprocessor_config.json] and no "
                 "processor_config.json, which say how its pictures are resized and "
                 "scaled: ",
                 files.label(), ". Add one of them to give it pictures."}));
  }
  if (!config) return config.error();
  return parse(*config, model_type);
}

Result<PromptImages> PromptImageProcessor::process(const RgbPicture& picture) const {
  if (const auto* tiles = std::get_if<ImageTiles>(&kind_)) return tiles->process(picture);
  if (const auto* patches = std::get_if<ImagePatches>(&kind_)) return patches->process(picture);
  return process_whole(std::get<PictureSettings>(kind_), picture);
}

Result<TensorMap> join_prompt_images(std::span<const PromptImages> pictures) {
  int64_t values = 0;
  for (const PromptImages& picture : pictures) {
    values += element_count(picture.tensors.at("pixel_values").shape);
  }
  if (values > kMaxPixelValues) {
    return invalid_argument(message({"The ", pictures.size(), " [pictures] of a prompt make ",
                                     values, " values, over the limit of ", kMaxPixelValues,
                                     "; give fewer, or smaller ones."}));
  }
  TensorMap joined;
  for (const auto& [name, first] : pictures[0].tensors) {
    // The axis along which pictures follow each other; those before it are 1.
    const size_t axis = first.shape.size() == 5 ? 1 : 0;
    Tensor& all = joined[name] = first;
    for (const PromptImages& picture : pictures.subspan(1)) {
      const Tensor& next = picture.tensors.at(name);
      all.shape[axis] += next.shape[axis];
      all.bytes.insert(all.bytes.end(), next.bytes.begin(), next.bytes.end());
    }
  }
  return joined;
}

}  // namespace vkformer
