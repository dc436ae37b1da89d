// Convolutions by name: of conv, and of unfold before a product.
#pragma once

#include "conformance/content.h"
#include "reference/conv.h"

namespace vkformer::conformance {

struct Window {
  Shape x, w;  // (B, C, H, W), (out, C/groups, kh, kw)
  int64_t groups = 1;
  reference::WindowOptions window = {};  // the kernel's size is w's
};

// "2x6x9x7-6x1x3x3"
std::string window_text(const Window& c);

// The same stride and padding along both axes.
reference::WindowOptions square_window(int64_t stride, int64_t padding);

// What is convolved, and what comes of it.
struct ConvArrays {
  Array x, w, bias, y;  // y (B, out, OH, OW)
  Tolerance tolerance;
  double magnitude;
};
Result<ConvArrays> make_conv(const Window& c, Content content);

Result<CheckCase> conv_case(const Window& c, Content content);

}  // namespace vkformer::conformance
