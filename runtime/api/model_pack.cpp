#include "vkformer/model_pack.h"

#include "base/guarded.h"
#include "load/pack_model.h"

namespace vkformer {

Result<PackInfo> pack_model(const std::string& model, const std::string& target,
                            const PackOptions& options) {
  return guarded("[pack] The model does not fit into memory.",
                 [&] { return pack_directory(model, target, options); });
}

Result<PackInfo> read_pack_info(const std::string& path, const PackLocation& location) {
  return guarded([&] { return pack_info(path, location); });
}

}  // namespace vkformer
