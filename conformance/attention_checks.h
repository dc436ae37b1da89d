// Checks of attention over whole sequences: masks, windows, biases, shared heads, maps.
#pragma once

#include "conformance/cases.h"

namespace vkformer::conformance {

// Of attention, or of attention_weights, which gives the maps as well.
void add_whole_attention_checks(OperatorCases& cases);

}  // namespace vkformer::conformance
