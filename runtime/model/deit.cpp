#include "model/deit.h"

#include "model/vit.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_deit(const ModelFiles& files) {
  return load_vit_family(files.config, VitEncoder::Tokens::kDistillation);
}

}  // namespace vkformer
