// What SAM is asked for. These are points and boxes as tokens of its mask decoder. The host
// computes them from random Fourier features (Tancik et al., 2020) that the file holds.
#pragma once

#include <vector>

#include "model/model.h"

namespace vkformer {

class SamPrompts {
 public:
  struct Config {
    int64_t width = 256;     // D of tokens
    int64_t picture = 1024;  // pixels a side
    int64_t grid = 64;       // features a side
    int64_t mask_tokens = 4;
  };

  SamPrompts() = default;
  explicit SamPrompts(Config config) : c_(config) {}

  // Reads the small tensors. `checkpoint` has them without a prefix.
  Status prepare(const Checkpoint& checkpoint);

  // The tokens (B, P, N, D) of input_points (B, P, n, 2), input_labels (B, P, n) and input_boxes
  // (B, P, 4), where there are such. The first ones are those of quality and masks.
  struct Tokens {
    int64_t prompts = 1;  // P
    int64_t tokens = 0;   // N
    std::vector<float> values;
  };
  Result<Tokens> read(const TensorMap& inputs, int64_t batch) const;

  // (grid * grid, D), what keys of features see.
  std::vector<float> positions() const;
  // (D), what features get where there is no mask.
  const std::vector<float>& no_mask() const { return no_mask_; }

 private:
  struct Points;
  // Appends the features of a place, as parts of the picture.
  void add_features(double x, double y, std::vector<float>& values) const;
  Result<Points> read_points(const TensorMap& inputs, int64_t batch) const;
  void add_point(const Points& points, size_t index, std::vector<float>& values) const;
  void add_boxes(const std::vector<float>& boxes, size_t index, std::vector<float>& values) const;

  Config c_;
  std::vector<float> frequencies_;          // (2, D / 2)
  std::vector<float> first_;                // (1 + mask tokens, D)
  std::vector<std::vector<float>> labels_;  // (D) of points outside and inside, and of corners
  std::vector<float> no_point_;
  std::vector<float> no_mask_;
};

}  // namespace vkformer
