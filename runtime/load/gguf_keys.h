// What a configuration says, as the metadata of a GGUF file: the other way round than
// gguf/gguf_model.h. What an architecture has no key for is refused by its name.
//
// Threading: pure functions.
#pragma once

#include "checkpoint/gguf_writer.h"
#include "model/model.h"

namespace vkformer {

// The architecture that files of such a model have. A type of models that has none is kUnsupported;
// the message lists those that have.
Result<std::string> gguf_architecture_of(const ModelFiles& files);

// Puts the keys of the architecture, and tensors that hold what no key does. An error names a key
// of the configuration that they cannot say.
Status put_gguf_keys(const ModelFiles& files, GgufWriter& writer);

// Whether the architecture leaves the tensor out on purpose: a pooler of an encoder.
bool gguf_leaves_out(const std::string& architecture, const std::string& tensor);

}  // namespace vkformer
