// Tokens of pictures of any size. They are class tokens, registers and detection tokens around the
// patches. They have learned positions, which are resized to the grid of the picture.
#pragma once

#include "model/blocks/resized_positions.h"

namespace vkformer {

// What is added to the tokens of a pass, as the file has it.
struct PictureTokens {
  std::vector<float> first;    // (class tokens, D): the tokens themselves, and their positions
  std::vector<float> patches;  // (grid, D): positions; empty: none
  std::vector<float> last;     // (last tokens, D), as `first`
  GridSize grid;               // of `patches`
  int64_t width = 0;           // D
  PositionFilter filter = PositionFilter::kBicubic;

  // (T, D) for a picture of that grid.
  std::vector<float> table(const GridSize& wanted) const;
};

// Where a file has them.
struct PictureTokenNames {
  // Tensors (1, n, D) of tokens before the patches.
  struct Tokens {
    std::string name;
    int64_t count = 1;
  };
  std::vector<Tokens> first;  // in order, the embedding's class_tokens in all
  std::string last;           // (1, last_tokens, D), or empty
  std::string positions;      // (1, placed + grid + last_tokens, D), or empty
  int64_t placed = 1;         // how many of the first tokens have a position
};

// Reads the tensors; an error names the one that is missing or has another shape.
Result<PictureTokens> read_picture_tokens(const Checkpoint& checkpoint,
                                          const PictureEmbedding& embedding, int64_t width,
                                          const PictureTokenNames& names);

// Positions (class tokens + grid + last tokens, D) that are added without any token.
PictureTokens split_positions(const PictureEmbedding& embedding, int64_t width,
                              std::span<const float> values);

// The patches of pixel_values (B, C, height, width), a grid of `grid`, with the tokens around them
// -> (B, T, D).
Result<TensorId> add_picture_tokens(ModelBuilder& builder, const PictureEmbedding& embedding,
                                    const PictureTokens& tokens, const GridSize& grid,
                                    TensorId pixels);

}  // namespace vkformer
