// The plan of a model's pass as text, without recording it.
#pragma once

#include <string>

#include "load/loaded_model.h"

namespace vkformer {

Result<std::string> plan_text(const LoadedModel& model, const PlanOptions& options);

}  // namespace vkformer
