// Loads a model onto a device, or onto those of options.group, and makes the pipelines of its first
// use meanwhile.
#pragma once

#include "load/loaded_model.h"

namespace vkformer {

// Errors: what read_model_weights reports. If the weights do not fit into device memory, a sentence
// names a smaller weight format which fits. kCancelled if options.progress asks for it.
Result<std::shared_ptr<const LoadedModel>> load_model(std::shared_ptr<VulkanDevice> device,
                                                      const FileStore& files,
                                                      const ModelOptions& options);

}  // namespace vkformer
