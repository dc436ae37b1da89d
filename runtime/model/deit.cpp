// DeiT (Touvron et al., 2020): a ViT with a second token, trained on what a teacher says.
#include "model/family_list.h"
#include "model/vit.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_deit(const ModelFiles& files) {
  return load_vit_family(files.config, kDeitTokens);
}

}  // namespace vkformer
