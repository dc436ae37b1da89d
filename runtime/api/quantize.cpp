#include "vkformer/quantize.h"

#include "base/guarded.h"
#include "load/gguf_export.h"
#include "load/quantize_model.h"

namespace vkformer {

Result<QuantizeReport> quantize_model(const std::string& model, const std::string& target,
                                      const QuantizeOptions& options) {
  return guarded("[quantize] The model does not fit into memory.",
                 [&] { return quantize_directory(model, target, options); });
}

Result<QuantizeReport> write_gguf(const std::string& model, const std::string& target,
                                  const GgufOptions& options) {
  return guarded("[write_gguf] The model does not fit into memory.",
                 [&] { return write_gguf_file(model, target, options); });
}

}  // namespace vkformer
