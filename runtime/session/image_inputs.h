// Pictures in images of the application as the pixel values of a pass. It has the memory that they
// are copied to, and the recorded work that resizes, crops and scales them there.
#pragma once

#include <optional>

#include "image/picture_tables.h"
#include "recording/preparation.h"
#include "recording/recorded_graph.h"
#include "recording/sliced_work.h"
#include "vkformer/picture.h"

namespace vkformer {

// One image as the session sees it; its handle and layout go through as they are.
struct SourceImage {
  SliceImage image;
  bool swapped = false;  // the first byte of a pixel is blue
};

// What such work is recorded for.
struct ImageInputsKey {
  PictureSettings settings;
  std::vector<PictureSize> sizes;
  std::vector<bool> swapped;

  bool operator==(const ImageInputsKey& other) const;
};

class ImageInputs : public Preparation {
 public:
  // To be prepared; the pixel values have their place already.
  static Result<std::shared_ptr<ImageInputs>> create(const std::shared_ptr<VulkanDevice>& device,
                                                     const ImageInputsKey& key);
  const ImageInputsKey& key() const { return key_; }
  // (B, 3, height, width)
  const Shape& shape() const { return shape_; }

  Status plan() override;
  std::vector<const Plan*> plans() const override { return {&planned_->plan}; }
  Status record() override;
  Status finish() override;

  // The copies that come first; `images` are those of the key's sizes.
  std::vector<SliceImage> copies(const std::vector<SourceImage>& images) const;
  SlicedUnit unit() { return {&graph_->recording(), &*costs_, 1}; }
  // Where the pixel values are afterwards.
  TensorPlace place() const;

 private:
  ImageInputs(const std::shared_ptr<VulkanDevice>& device, const ImageInputsKey& key)
      : key_(key), memory_(device) {}
  Status make_values();

  ImageInputsKey key_;
  Shape shape_;
  uint64_t pixel_count_ = 0;
  PassMemory memory_;
  std::shared_ptr<Buffer> values_;       // (B, 3, height, width)
  PictureTables tables_;                 // until finish
  std::optional<PlannedGraph> planned_;  // from plan to record
  std::optional<RecordedGraph> graph_;
  std::optional<SliceCosts> costs_;
};

// The key for these images, or what is wrong with their number and sizes.
Result<ImageInputsKey> image_inputs_key(const std::vector<SourceImage>& images,
                                        const PictureSettings& settings);

}  // namespace vkformer
