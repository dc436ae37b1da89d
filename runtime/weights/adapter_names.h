// Which tensor of a model an adapter's module changes.
//
// Threading: pure function.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace vkformer {

// The model's tensor that an adapter calls `name`. `names` are all of the checkpoint's. If the
// adapter was made of the model inside another class, or the reverse, names begin differently. An
// error begins with `where`, the adapter's module.
Result<std::string> adapted_tensor(const Checkpoint& checkpoint,
                                   const std::vector<std::string>& names, const std::string& name,
                                   const std::string& where);

}  // namespace vkformer
