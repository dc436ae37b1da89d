// Images in a prompt that a tower of one image size reads: what LLaVA, PaliGemma and Gemma 3 share
// (llava.cpp, paligemma.cpp, gemma3.cpp). How the tower's states become features is each family's.
#pragma once

#include "model/blocks/picture_prompt.h"
#include "model/blocks/towers.h"

namespace vkformer {

// `more` is the number of images.
class TowerPictures : public PicturePrompt {
 public:
  // `width`: D of the decoder.
  TowerPictures(Settings settings, PictureTower tower, int64_t width)
      : PicturePrompt(std::move(settings)), tower_(std::move(tower)), width_(width) {}

  std::vector<std::string> input_names() const override { return {"pixel_values"}; }
  Status read(const TensorMap& inputs, std::vector<int64_t>& more, FeedWords& words) const override;
  Result<int64_t> image_tokens(int64_t height, int64_t width) const override;
  int64_t features(std::span<const int64_t> more) const override {
    return more.empty() ? 0 : more[0] * tokens();
  }
  // The tower's rows, then those of the projector.
  Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const override;

 protected:
  const PictureTower& tower() const { return tower_; }
  int64_t width() const { return width_; }
  // Features of one image.
  virtual int64_t tokens() const { return tower_.embedding.tokens(); }
  // A tensor of the projector, and the rows of tensors whose names begin with `from`.
  virtual const char* projector_tensor() const = 0;
  virtual void add_projector_rows(const std::string& from, WeightTable& table) const = 0;

 private:
  PictureTower tower_;
  int64_t width_;
};

}  // namespace vkformer
