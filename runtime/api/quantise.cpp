#include "vkformer/quantise.h"

#include "base/guarded.h"
#include "load/gguf_export.h"
#include "load/quantise_model.h"

namespace vkformer {

Result<QuantiseReport> quantise_model(const std::string& model, const std::string& target,
                                      const QuantiseOptions& options) {
  return guarded("[quantise] The model does not fit into memory.",
                 [&] { return quantise_directory(model, target, options); });
}

Result<QuantiseReport> write_gguf(const std::string& model, const std::string& target,
                                  const GgufOptions& options) {
  return guarded("[write_gguf] The model does not fit into memory.",
                 [&] { return write_gguf_file(model, target, options); });
}

}  // namespace vkformer
