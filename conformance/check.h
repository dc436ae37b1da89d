// A check: what it runs, and what it must give. Operators declare theirs in cases/<operator>.cpp
// (cases.h); nothing here needs a device.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "operators/operator_arguments.h"
#include "plan/device_caps.h"
#include "reference/array.h"
#include "reference/tolerance.h"
#include "vkformer/conformance.h"

namespace vkformer::conformance {

using reference::Array;
using reference::Tolerance;

// What one output must be. Magnitudes: errors grow with the terms of a sum, so the absolute part of
// the tolerance is multiplied by the largest of them.
struct Expected {
  Array values;
  Tolerance tolerance = {};
  double magnitude = 1;
};

// One operator with its inputs, and what must come of it.
struct CheckCase {
  PreparedOperator op;
  std::map<std::string, Expected> expected;  // by output
  Precision precision = Precision::kF32;
  uint32_t live_slots = UINT32_MAX;  // of a decoding step
  bool may_be_refused = false;       // a binding is larger than some devices allow
};

struct Check {
  std::string op;    // ops/op_list.def
  std::string name;  // "softmax/masked/2x3x5x33"
  bool quick = false;
  std::function<Result<CheckCase>()> make;
  bool tested = false;  // by the operator's tests, however many checks it has
};

// How far `actual` is from what was expected.
struct Comparison {
  double error = 0;  // the largest difference, as a share of the bound; above 1 is wrong
  double ulps = 0;   // the largest difference in f32's units in the last place
  int64_t elements = 0;
  std::string message;  // of the worst element, where it is wrong; else empty
};
// A NaN must meet a NaN, an infinity the same one; f32 may keep denormals or make them zero.
Comparison compare(const std::string& name, const Tensor& actual, const Expected& expected);

}  // namespace vkformer::conformance
