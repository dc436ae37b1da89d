// ModelSource: where a model's files come from: a directory, memory, or the host's own reader (game
// archives, Android assets).
//
// Threading: a plain handle; a reader's functions are called from the thread that loads.
// Lifetime: a source is a shared handle and owns its description, not the bytes. The application
// owns bytes in memory, and whatever a reader's functions refer to. They must stay valid until
// loading has returned; the loaded model does not need them. Only bytes in memory of a model with
// ModelOptions::adapters must stay valid as long as the model, for set_adapter_scales.
//
// Names of ModelOptions::adapters and request_adapters are looked for among the files in memory or
// of a reader first, then on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "vkformer/export.h"
#include "vkformer/result.h"

namespace vkformer {

class FileStore;

// Files by the names they have in a model directory: "config.json", "model.safetensors",
// "tokenizer.json", "1_Pooling/config.json". "model.gguf" and "model.vkfpack" stand alone.
using MemoryFiles = std::map<std::string, std::span<const std::byte>>;

// The host's own files. Neither function may throw.
struct FileReader {
  // The size of a file in bytes, or nothing if there is none of that name.
  std::function<std::optional<uint64_t>(const std::string& name)> size;
  // Fills `out` with the file's bytes from `offset` on; false if that failed.
  std::function<bool(const std::string& name, uint64_t offset, std::span<std::byte> out)> read;
};

// Where a packed model is (model_pack.h).
struct PackLocation {
  uint64_t offset = 0;  // bytes of the file before it, as in a game's archive
  bool verify = true;   // compare each file with its SHA-256 when it is first read
};

class VKFORMER_API ModelSource {
 public:
  // A model directory, a GGUF file (the first of its parts), or a packed model; files are mapped.
  static ModelSource directory(const std::string& path);
  // A packed model, mapped: the whole file `path`, or a part of an archive. The file must stay as
  // it is until loading has returned.
  static ModelSource pack(const std::string& path, const PackLocation& location = {});
  // Files in memory; `name` stands for them in messages.
  static ModelSource memory(MemoryFiles files, const std::string& name = "memory");
  // Files that the host reads, one at a time and whole; `name` stands for them in messages.
  static ModelSource reader(FileReader reader, const std::string& name = "host");

 private:
  friend struct HandleAccess;
  explicit ModelSource(std::shared_ptr<const FileStore> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const FileStore> impl_;
};

}  // namespace vkformer
