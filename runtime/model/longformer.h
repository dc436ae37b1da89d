// Longformer (Beltagy, Peters and Cohan, "Longformer: The long-document transformer", 2020): a
// RoBERTa whose tokens see a window and the global tokens, in time linear in their number.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_longformer(const ModelFiles& files);

}  // namespace vkformer
