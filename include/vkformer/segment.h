// Segmenter: masks of what points and boxes in a picture are in.
//
// Threading and lifetime: as all tasks (tasks.h); render_masks_png is a plain function.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "vkformer/tasks.h"

namespace vkformer {

// A place in pixels of the picture.
struct PromptPoint {
  double x = 0;
  double y = 0;
  enum class Side : uint8_t { kInside, kOutside } side = Side::kInside;  // of what is wanted
};

// In pixels of the picture.
struct PromptBox {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// What one mask is wanted of: points, a box, or both.
struct MaskPrompt {
  std::vector<PromptPoint> points;
  std::optional<PromptBox> box = std::nullopt;
};

// Of a picture, in its own size.
struct PictureMask {
  int width = 0;   // pixels
  int height = 0;  // pixels
  // Row by row from the top (height * width): 1 is inside.
  std::vector<uint8_t> inside;
  double score = 0;  // the share of the object that the model expects the mask to cover, 0 to 1
};

struct SegmentOptions {
  // Masks of each prompt, the best ones; 0: all that the model gives.
  int top = 1;
};

// Models of the family SAM.
class VKFORMER_API Segmenter : public Task {
 public:
  using Task::Task;
  static Result<Segmenter> load(const Device& device, const ModelSource& source,
                                const TaskOptions& options = {});
  // The masks of every prompt, highest score first. The prompts share one pass.
  Result<std::vector<std::vector<PictureMask>>> segment(const Picture& picture,
                                                        std::span<const MaskPrompt> prompts,
                                                        const SegmentOptions& options = {});
};

// The picture with the masks laid over it in colors. These are the bytes of an 8-bit RGB PNG file
// of the picture's own size, which all masks must have.
VKFORMER_API Result<std::vector<std::byte>> render_masks_png(const Picture& picture,
                                                             std::span<const PictureMask> masks);

}  // namespace vkformer
