#include "conformance/head_cases.h"

namespace vkformer::conformance {

bool is_quick(const HeadSizes& s) {
  return s.q[2] == 1 || s.q[2] == 33;
}

HeadArrays make_head_arrays(const HeadSizes& s, double scale) {
  const Shape values{s.q[0], s.q[1], s.q[2], s.value_width};
  return {scaled(random_array(s.q, 1), scale), scaled(random_array(s.q, 2), scale),
          random_array(values, 3)};
}

}  // namespace vkformer::conformance
