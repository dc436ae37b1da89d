// Images of any proportions as rows of patches, padded to one length. The positions are resized to
// each image's grid (Tschannen et al., 2025, "SigLIP 2": NaFlex).
#pragma once

#include "model/blocks/picture_tokens.h"

namespace vkformer {

// The feed and the external tensor of the mask: which patches are no padding, (B, ceil(N/32)).
inline constexpr const char* kPatchMask = "patch_mask";

struct PatchRows {
  int64_t batch = 0;    // B
  int64_t patches = 0;  // N, padding included
  // Whether the host cut them out of whole pictures. Then they are fed as cut_patches. So
  // pixel_values in a buffer of the application are not taken for patches.
  bool cut = false;
};

// Reads pixel_values, which are either patches or whole images (B, C, height, width). Patches are
// (B, N, height * width * C of `embedding.patch`), with the grid of each row in spatial_shapes (B,
// 2), and perhaps pixel_attention_mask (B, N). Adds the words of the feeds pixel_values (or
// cut_patches), patch_positions and patch_mask. Errors name the tensor and what it should be.
Result<PatchRows> read_patch_rows(const TensorMap& inputs, const PictureEmbedding& embedding,
                                  const PictureTokens& positions, FeedWords& words);

// The fed patches, projected by the row `embedding.patches` (width, height * width * C), with their
// positions -> (B, N, width).
Result<TensorId> add_given_patches(ModelBuilder& builder, const PictureEmbedding& embedding,
                                   int64_t width, const PatchRows& rows);

}  // namespace vkformer
