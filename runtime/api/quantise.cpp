#include "vkformer/quantise.h"

#include "base/guarded.h"
#include "load/quantise_model.h"

namespace vkformer {

Result<QuantiseReport> quantise_model(const std::string& model, const std::string& target,
                                      const QuantiseOptions& options) {
  return guarded("[quantise] The model does not fit into memory.",
                 [&] { return quantise_directory(model, target, options); });
}

}  // namespace vkformer
