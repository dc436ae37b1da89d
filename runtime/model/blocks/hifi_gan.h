// HiFi-GAN (Kong et al., 2020): a waveform of features, by transposed convolutions with stacks of
// dilated ones after each.
#pragma once

#include "model/blocks/wave_conv.h"

namespace vkformer {

struct HifiGan {
  std::string rows;      // prefix of its weight rows: "vocoder"
  int64_t features = 0;  // F
  int64_t channels = 0;  // of the first convolution; each stage halves them
  struct Stage {
    int64_t rate = 1;  // frames of the result for one
    int64_t kernel = 1;
  };
  std::vector<Stage> stages;
  // Stacks of each stage, whose results are averaged: pairs of convolutions, the first dilated.
  struct Stack {
    int64_t kernel = 1;
    std::vector<int64_t> dilations;
  };
  std::vector<Stack> stacks;
  float slope = 0.1f;  // of leaky ReLUs
  // kYes: the first convolution takes its inputs in reverse order.
  enum class Reversed : uint8_t { kNo, kYes } reversed = Reversed::kNo;

  WaveConv first() const;
  WaveConv last() const;
  WaveUpsampling upsampling(size_t stage) const;
  // Convolution `which` (0 or 1) of pair `pair` of a stack.
  WaveConv pair_conv(size_t stage, size_t stack, size_t pair, int which) const;
  int64_t width(size_t stage) const { return channels >> (stage + 1); }
  // Samples that `frames` frames make.
  int64_t samples(int64_t frames) const;
};

// Rows of tensors whose names begin with `from` ("decoder.").
void add_hifi_gan_rows(const Checkpoint& checkpoint, const HifiGan& vocoder,
                       const std::string& from, WeightTable& table);
// What is added to all frames after the first convolution, of x (B, T, channels).
using HifiGanCondition = std::function<Result<TensorId>(TensorId x)>;
// x (B, T, F) -> (B, samples(T)); `condition` may be empty.
Result<TensorId> add_hifi_gan(ModelBuilder& builder, const HifiGan& vocoder, TensorId x,
                              const HifiGanCondition& condition);

}  // namespace vkformer
