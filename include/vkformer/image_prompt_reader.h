// ImagePromptReader: texts with pictures as the token ids and tensors that a model reads, for
// Session::generate_masked and GenerationBatch. TextGenerator does the same in one call.
//
// An encoder-decoder that describes a picture (BLIP, TrOCR) is read for, too. Its ids are what the
// description begins with, often none. A GenerationBatch takes them as its prompt; for a Session
// they follow the start token in GenerateOptions::decoder_prompt. Captioner does it in one call.
//
// Threading: immutable; any number of threads may read at the same time. Lifetime: owns all it
// needs and keeps its model alive; move-only. Nothing throws.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/model_source.h"
#include "vkformer/tasks.h"

namespace vkformer {

// What a model reads of one prompt.
struct ImagePromptInputs {
  // T tokens. Each feature of a picture has an image token, unless an encoder reads the picture.
  std::vector<TokenId> ids;
  // The tensors of the pictures, one after the other, such as pixel_values; empty: there are none.
  TensorMap inputs;
};

class VKFORMER_API ImagePromptReader {
 public:
  // `source` has the files that `model` was loaded from: tokenizer and image processor are read.
  // kUnsupported: the model reads no images in its prompts, and describes none.
  static Result<ImagePromptReader> load(const Model& model, const ModelSource& source);
  ImagePromptReader(ImagePromptReader&&) noexcept;
  ImagePromptReader& operator=(ImagePromptReader&&) noexcept;
  ~ImagePromptReader();

  // What stands for a picture in a prompt, such as "<image>". Empty: the model describes a picture.
  const std::string& placeholder() const;
  // The prompt as TextGenerator::generate_with_pictures reads it, or as Captioner::caption does.
  // kInvalidArgument: placeholders and pictures differ in number, or it has more tokens than the
  // model takes. A model that describes a picture takes exactly one.
  Result<ImagePromptInputs> read(const PromptWithPictures& prompt) const;

 private:
  friend struct HandleAccess;
  struct Parts;
  explicit ImagePromptReader(std::unique_ptr<const Parts> impl);
  std::unique_ptr<const Parts> impl_;
};

}  // namespace vkformer
