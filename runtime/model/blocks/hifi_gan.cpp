#include "model/blocks/hifi_gan.h"

#include "ops/combine.h"

namespace vkformer {
namespace {

constexpr int64_t kEndKernel = 7;    // of the first and the last convolution
constexpr float kLastSlope = 0.01f;  // of the leaky ReLU before the last convolution

// x (B, T, C) through the pairs of a stack.
Result<TensorId> add_stack_of(ModelBuilder& b, const HifiGan& v, size_t stage, size_t stack,
                              TensorId x) {
  for (size_t pair = 0; pair < v.stacks[stack].dilations.size(); ++pair) {
    VKF_ASSIGN(const TensorId h, add_wave_conv(b, v.pair_conv(stage, stack, pair, 0), x));
    VKF_ASSIGN(x, add_wave_conv(b, v.pair_conv(stage, stack, pair, 1), h, {.residual = x}));
  }
  return x;
}

}  // namespace

WaveConv HifiGan::first() const {
  return {.row = rows + ".first", .in = features, .out = channels, .kernel = kEndKernel};
}

WaveConv HifiGan::last() const {
  return {.row = rows + ".last",
          .in = width(stages.size() - 1),
          .out = 1,
          .kernel = kEndKernel,
          .slope = kLastSlope};
}

WaveUpsampling HifiGan::upsampling(size_t stage) const {
  return {.row = rows + ".up." + std::to_string(stage),
          .in = channels >> stage,
          .out = width(stage),
          .kernel = stages[stage].kernel,
          .stride = stages[stage].rate,
          .slope = slope};
}

WaveConv HifiGan::pair_conv(size_t stage, size_t stack, size_t pair, int which) const {
  const size_t block = stage * stacks.size() + stack;
  return {.row = rows + "." + std::to_string(block) + "." + std::to_string(pair) +
                 (which == 0 ? ".dilated" : ".dense"),
          .in = width(stage),
          .out = width(stage),
          .kernel = stacks[stack].kernel,
          .dilation = which == 0 ? stacks[stack].dilations[pair] : 1,
          .slope = slope};
}

int64_t HifiGan::samples(int64_t frames) const {
  for (size_t i = 0; i < stages.size(); ++i) frames = upsampling(i).frames(frames);
  return frames;
}

void add_hifi_gan_rows(const Checkpoint& checkpoint, const HifiGan& v, const std::string& from,
                       WeightTable& table) {
  const bool reversed = v.reversed == HifiGan::Reversed::kYes;
  table.rows.push_back(reversed ? reversed_inputs_row(checkpoint, v.first(), from + "conv_pre")
                                : wave_row(checkpoint, v.first(), from + "conv_pre"));
  for (size_t i = 0; i < v.stages.size(); ++i) {
    const std::string up = from + "upsampler." + std::to_string(i);
    table.rows.push_back(upsampling_row(checkpoint, v.upsampling(i), up));
    for (size_t j = 0; j < v.stacks.size(); ++j) {
      const std::string block = from + "resblocks." + std::to_string(i * v.stacks.size() + j);
      for (size_t pair = 0; pair < v.stacks[j].dilations.size(); ++pair) {
        const std::string number = std::to_string(pair);
        table.rows.push_back(
            wave_row(checkpoint, v.pair_conv(i, j, pair, 0), block + ".convs1." + number));
        table.rows.push_back(
            wave_row(checkpoint, v.pair_conv(i, j, pair, 1), block + ".convs2." + number));
      }
    }
  }
  table.rows.push_back(wave_row(checkpoint, v.last(), from + "conv_post", ConvBias::kNo));
}

Result<TensorId> add_hifi_gan(ModelBuilder& b, const HifiGan& v, TensorId x,
                              const HifiGanCondition& condition) {
  Graph& g = b.graph();
  VKF_ASSIGN(x, add_wave_conv(b, v.first(), x));
  if (condition) {
    VKF_ASSIGN(x, condition(x));
  }
  const float share = 1.0f / static_cast<float>(v.stacks.size());
  for (size_t i = 0; i < v.stages.size(); ++i) {
    VKF_ASSIGN(x, add_wave_upsampling(b, v.upsampling(i), x));
    TensorId sum = kNoTensor;
    for (size_t j = 0; j < v.stacks.size(); ++j) {
      VKF_ASSIGN(const TensorId y, add_stack_of(b, v, i, j, x));
      g.set_scope(v.rows + ".mean." + std::to_string(i));
      if (j == 0) {
        sum = y;
      } else {
        VKF_ASSIGN(sum, add_combine(g, sum, y, {.alpha = j == 1 ? share : 1.0f, .beta = share}));
      }
    }
    x = sum;
  }
  VKF_ASSIGN(x, add_wave_conv(b, v.last(), x, {.activation = ActivationKind::kTanh}));
  g.tensor(x).shape.pop_back();
  return x;
}

}  // namespace vkformer
