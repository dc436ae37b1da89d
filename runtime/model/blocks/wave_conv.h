// Convolutions along time of features (B, T, C): dense, dilated and transposed. Files hold their
// weights as lengths and directions (Salimans and Kingma, 2016, "Weight normalization").
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/blocks/stack.h"

namespace vkformer {

// A dense convolution with a stride of 1. Its weight row `row` is (out, in * kernel).
struct WaveConv {
  std::string row;
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;  // frames
  int64_t dilation = 1;
  int64_t pad = -1;    // frames before the first; -1: half of what the kernel covers
  float slope = 1.0f;  // what is below 0 is multiplied by it before (leaky ReLU)

  int64_t covered() const { return (kernel - 1) * dilation + 1; }
};

// x (B, T, in) -> (B, T, out), with zeros beyond both ends, then `attrs`. Windows are taken some at
// a time where all of them would be too large for one tensor.
Result<TensorId> add_wave_conv(ModelBuilder& builder, const WaveConv& conv, TensorId x,
                               const LinearAttrs& attrs = {});

// A transposed convolution: T frames become (T - 1) * stride - 2 pad + kernel. It runs as a plain
// one over windows of `taps()` frames, which gives `stride` frames a window. Most weights of a tap
// are those of one phase. Its weight row `row` is (stride * out, in * taps).
struct WaveUpsampling {
  std::string row;
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 0;  // frames of the result, at least `stride`
  int64_t stride = 1;
  float slope = 1.0f;  // as WaveConv's

  int64_t pad() const { return (kernel - stride) / 2; }
  // Of a window for frames q * stride, ...: its first frame less q, and how many it has.
  int64_t first() const { return pad() / stride - (kernel - 1) / stride; }
  int64_t taps() const { return (pad() + stride - 1) / stride - first() + 1; }
  int64_t frames(int64_t t) const { return (t - 1) * stride - 2 * pad() + kernel; }
};

// x (B, T, in) -> (B, frames(T), out).
Result<TensorId> add_wave_upsampling(ModelBuilder& builder, const WaveUpsampling& conv, TensorId x);

// Rows of these. `from` is the module in the file. Its weight is there as it is, or as a length and
// a direction of each row, under either of two pairs of names.
enum class ConvBias : uint8_t { kNo, kYes };
WeightRow wave_row(const Checkpoint& checkpoint, const WaveConv& conv, const std::string& from,
                   ConvBias bias = ConvBias::kYes);
// Rows [first, first + count) of such a weight of `whole` rows.
struct RowPart {
  int64_t whole = 0;
  int64_t first = 0;
};
WeightRow wave_part_row(const Checkpoint& checkpoint, const WaveConv& conv, const std::string& from,
                        const RowPart& part);
// The same with its inputs in reverse order.
WeightRow reversed_inputs_row(const Checkpoint& checkpoint, const WaveConv& conv,
                              const std::string& from, ConvBias bias = ConvBias::kYes);
WeightRow upsampling_row(const Checkpoint& checkpoint, const WaveUpsampling& conv,
                         const std::string& from);

}  // namespace vkformer
