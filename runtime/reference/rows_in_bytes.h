// Rows rounded to signed bytes by blocks of 32, as products of integers multiply them.
//
//   x (..., K) -> y (..., K), y = scale round(x / scale), scale = max |x| / 127 of a block
// Ties go to the even value. A block with an infinity or a NaN is NaN; one whose largest magnitude
// is below 2^-119 is zero.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// Precondition: rank of at least 1.
Array rows_in_bytes(const Array& x);

// The same rows where nothing depends on how a division is rounded. Elements within a hundredth of
// a tie are put onto the value that they are rounded to.
Array clear_of_ties(Array x);

}  // namespace vkformer::reference
