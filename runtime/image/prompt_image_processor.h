// Makes of pictures what a decoder reads in its prompts, by the image processor of its files.
//
// Threading: immutable; any thread may process.
#pragma once

#include <span>
#include <variant>

#include "image/image_patches.h"
#include "image/image_tiles.h"

namespace vkformer {

class FileStore;

class PromptImageProcessor {
 public:
  // The processor that a model's files describe; `model_type` of config.json decides where they
  // name none.
  static Result<PromptImageProcessor> load(const FileStore& files, const std::string& model_type);
  static Result<PromptImageProcessor> parse(const JsonConfig& config,
                                            const std::string& model_type);

  Result<PromptImages> process(const RgbPicture& picture) const;

 private:
  using Kind = std::variant<PictureSettings, ImageTiles, ImagePatches>;
  explicit PromptImageProcessor(Kind kind) : kind_(std::move(kind)) {}

  Kind kind_;
};

// The tensors of all pictures of a prompt, one after the other. Precondition: they come from one
// processor, and there is one.
Result<TensorMap> join_prompt_images(std::span<const PromptImages> pictures);

}  // namespace vkformer
