// Matrices rounded to what a storage format holds; conformance checks need the same.
#pragma once

#include "conformance/matrix_rounding.h"

namespace vkformer::testing {

using conformance::round_to_format;

}  // namespace vkformer::testing
