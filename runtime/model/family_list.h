// What loads a model of each family, declared from the one list, family_list.def.
#pragma once

#include "model/model.h"

namespace vkformer {

#define VKF_FAMILY(model_type, load, ...) \
  Result<std::unique_ptr<ModelFamily>> load(const ModelFiles& files);
#include "model/family_list.def"
#undef VKF_FAMILY

}  // namespace vkformer
