// Adapters of low rank in GGUF files, as llama.cpp's converter writes them. A file has A and B of
// each matrix under its name in the format, and alpha in the metadata.
//
// Threading: pure functions.
#pragma once

#include "checkpoint/adapter_files.h"

namespace vkformer {

// The name of such a file in a store of an adapter, where there is no adapter in PEFT's layout.
inline constexpr const char* kGgufAdapterName = "adapter.gguf";

// An adapter of `model`, whose configuration says what its heads are: files in PEFT's layout, or
// adapter.gguf. An error names the file, and the key or tensor.
Result<AdapterFiles> open_adapter_for(const FileStore& model, const FileStore& files);

// The files of an adapter's path: a directory, or a GGUF file. Where the host hands out the model's
// files itself, the path is looked for among them first. The store does not outlive `model`.
std::shared_ptr<const FileStore> make_adapter_store(const FileStore& model,
                                                    const std::string& path);

}  // namespace vkformer
