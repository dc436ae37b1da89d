// FileStore: the files of a model directory, wherever they are: on disk, in memory, or in a host's
// own reader.
//
// Threading: immutable; open() may be called from any thread if the host's reader allows it.
// Lifetime: what open() returns may outlive the store, but not the bytes of a memory store.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/mapped_file.h"
#include "checkpoint/quantized_tensors.h"
#include "vkformer/model_source.h"

namespace vkformer {

// Tensors of a format other than safetensors, under the names that safetensors files have for them.
// Views point into bytes that it keeps.
struct StoredTensors {
  struct Entry {
    QuantizedTensor tensor;  // view.blocks is null, or points to blocks
    size_t file = 0;         // in files
    bool has_values = true;  // false: zeros stand for them (sparse_file.h)
  };
  std::map<std::string, Entry> tensors;
  std::vector<std::string> files;             // paths, for messages
  std::vector<std::vector<std::byte>> owned;  // what was rearranged
};

class FileStore;

// An adapter that comes with a model: its files, and how strongly it is merged.
struct StoredAdapter {
  std::shared_ptr<const FileStore> files;
  float scale = 1;
};

class FileStore {
 public:
  virtual ~FileStore() = default;
  // Whether there is a file of that name; names are relative and use '/'.
  virtual bool has(const std::string& name) const = 0;
  // The file's bytes. An error names it.
  virtual Result<MappedFile> open(const std::string& name) const = 0;
  // The names of *.safetensors files at the top, where the store can list them.
  virtual Result<std::vector<std::string>> safetensors_names() const = 0;
  // The tensors of a store that has no safetensors files; null where it has, or should have. An
  // error names the file.
  virtual Result<std::shared_ptr<const StoredTensors>> tensors() const {
    return std::shared_ptr<const StoredTensors>();
  }
  // Adapters to merge into the model whenever it is loaded.
  virtual std::vector<StoredAdapter> adapters() const { return {}; }
  // The files that the host hands out itself, from memory or by its reader; null: they are on disk.
  // An adapter is looked for among them before the file system (make_adapter_store).
  virtual const FileStore* host_files() const { return nullptr; }
  // What stands for the store, or for a file of it, in messages.
  virtual std::string label() const = 0;
  std::string label_of(const std::string& name) const;
};

// What the library gliner calls a model's configuration.
inline constexpr const char* kGlinerConfig = "gliner_config.json";
// The file with a model's configuration: config.json, or gliner_config.json where there is one.
const char* config_name(const FileStore& files);

// A file name that a model's own files give stays inside the model: relative, without "..", drive
// or zero byte. An error says which file named it.
Status check_inner_name(const std::string& name, const std::string& named_by);

std::shared_ptr<const FileStore> make_directory_store(std::string directory);
std::shared_ptr<const FileStore> make_memory_store(MemoryFiles files, std::string name);
std::shared_ptr<const FileStore> make_reader_store(FileReader reader, std::string name);

}  // namespace vkformer
