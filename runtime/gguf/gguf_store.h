// A GGUF file, whole or in parts, as the files of a model directory. config.json and tokenizer.json
// are made of its metadata. Its tensors have the names that safetensors files have.
//
// Threading and lifetime: as FileStore.
#pragma once

#include "checkpoint/file_store.h"
#include "checkpoint/gguf.h"

namespace vkformer {

// Whether a path is a file of this format, by its first bytes or its name.
bool is_gguf_file(const std::string& path);

// The store of a model directory, with_gguf, of a packed model (checkpoint/pack_file.h), or, if
// is_gguf_file, of a GGUF file. The first of
// several parts ("-00001-of-00003.gguf") finds the others beside it.
std::shared_ptr<const FileStore> make_model_store(const std::string& path);

// The files of a model in this format, the first of its parts at `path`.
Result<std::vector<GgufFile>> open_gguf_parts(const std::string& path);

// The names of files that such a store may have (FileStore::has says which).
std::vector<std::string> gguf_file_names();

// A store whose model.gguf or model.vkfpack stands for the model, where it has no config.json; else
// the store.
std::shared_ptr<const FileStore> with_gguf(std::shared_ptr<const FileStore> files);

}  // namespace vkformer
