// The adapters that a request chooses, as its scales of all that the model was loaded with for
// requests.
//
// Threading: pure function.
#pragma once

#include <vector>

#include "load/loaded_model.h"
#include "vkformer/generation.h"

namespace vkformer {

// By adapter, 0 where the request does not name it. An error names one that the model does not
// have, twice the same, or a scale that is not finite.
Result<std::vector<float>> adapter_scales(const LoadedModel& model,
                                          const std::vector<AdapterScale>& chosen);

}  // namespace vkformer
