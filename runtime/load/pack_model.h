// `vkformer pack`: a model directory as one file (checkpoint/pack_file.h).
#pragma once

#include "vkformer/model_pack.h"

namespace vkformer {

// pack_model and read_pack_info of the public API, where memory may run out.
Result<PackInfo> pack_directory(const std::string& model, const std::string& target,
                                const PackOptions& options);
Result<PackInfo> pack_info(const std::string& path, const PackLocation& location);

}  // namespace vkformer
