// A model as one GGUF file of version 3, with the names and the order of rows that llama.cpp has.
#pragma once

#include "vkformer/quantize.h"

namespace vkformer {

Result<QuantizeReport> write_gguf_file(const std::string& model, const std::string& target,
                                       const GgufOptions& options);

}  // namespace vkformer
