// The plans of a model's passes for a device that need not be there: what the benchmark's estimates
// and vkformer_compile go by.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/model_source.h"

namespace vkformer {

// Of a forward pass, or of prompt and step of a generation. Reads the configuration and the headers
// of tensors only. Errors: those of loading the model, and of planning it for that device.
VKFORMER_API Result<std::vector<Plan>> plan_passes(const DeviceCaps& caps,
                                                   const ModelSource& source,
                                                   const ModelOptions& options,
                                                   const SessionSizes& sizes);

}  // namespace vkformer
