// Convolutions by name: of conv, and of unfold in front of a product.
#pragma once

#include "conformance/content.h"

namespace vkformer::conformance {

struct Window {
  Shape x, w;
  int64_t stride, padding, groups;
};

Result<CheckCase> conv_case(const Window& c, Content content);

}  // namespace vkformer::conformance
