// What unfold and conv share: the picture in a tensor, the window that goes over it, their sizes.
#pragma once

#include "ops/op.h"
#include "params/conv.h"

namespace vkformer {

enum class ChannelOrder : uint8_t {
  kFirst,  // (B, C, H, W), or (B, C, T) with T = H * W
  kLast,   // (B, H, W, C), or (B, T, C) with T = H * W
};

// How a tensor holds its pictures.
struct ConvSource {
  ChannelOrder order = ChannelOrder::kFirst;
  // H and W where x has three dimensions, pixels row by row; both 0: a picture of one row.
  uint32_t height = 0;
  uint32_t width = 0;
};

// The kernel's size and steps, in pixels. Outside the picture x counts as 0.
struct ConvWindow {
  uint32_t kernel_height = 1;
  uint32_t kernel_width = 1;
  uint32_t stride_height = 1;
  uint32_t stride_width = 1;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  // OH and OW, positions. 0: as many as fit when bottom and right are padded like top and left,
  // (H + 2 * pad_top - kernel_height) / stride_height + 1.
  uint32_t out_height = 0;
  uint32_t out_width = 0;
};

// A window over a tensor's pictures, checked: no offset of it leaves 32 bits.
struct ConvSizes {
  uint32_t batch = 0;     // B
  uint32_t channels = 0;  // C
  ConvPicture picture{};  // `offset` and strides skip the leading tokens
};

// Sizes and strides of `window` over x, whose pictures follow `leading` tokens each (channels last
// only). x as `source` says. An error names operator `op`.
Result<ConvSizes> conv_sizes(OpId op, const TensorDesc& x, const ConvSource& source,
                             const ConvWindow& window, uint32_t leading);

// `factors` multiplied, or an error of operator `op` if it is not below 2^32; `what` names it.
Result<uint32_t> conv_product(OpId op, const char* what, std::initializer_list<uint64_t> factors);

// "kernel=3x3 stride=2x2 pad=1x1 out=56x56", for dumps.
std::string window_text(const ConvPicture& picture);

}  // namespace vkformer
