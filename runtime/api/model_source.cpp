#include "vkformer/model_source.h"

#include "base/handle_access.h"
#include "checkpoint/pack_file.h"
#include "gguf/gguf_store.h"

namespace vkformer {

ModelSource ModelSource::directory(const std::string& path) {
  return HandleAccess::make<ModelSource>(make_model_store(path));
}

ModelSource ModelSource::pack(const std::string& path, const PackLocation& location) {
  return HandleAccess::make<ModelSource>(
      with_gguf(make_pack_store(path, location.offset, location.verify)));
}

ModelSource ModelSource::memory(MemoryFiles files, const std::string& name) {
  return HandleAccess::make<ModelSource>(with_gguf(make_memory_store(std::move(files), name)));
}

ModelSource ModelSource::reader(FileReader reader, const std::string& name) {
  return HandleAccess::make<ModelSource>(with_gguf(make_reader_store(std::move(reader), name)));
}

}  // namespace vkformer
