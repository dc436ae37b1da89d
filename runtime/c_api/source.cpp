#include "c_api/support.h"
#include "vkformer/model_source.h"

using namespace vkformer;

vkf_status vkf_source_directory(const char* path, vkf_source** source, vkf_error* error) {
  return make_handle(source, error, [&] {
    need(path, "path");
    return handle(vkf_source{ModelSource::directory(path)});
  });
}

vkf_status vkf_source_pack(const char* path, uint64_t offset, vkf_source** source,
                           vkf_error* error) {
  return make_handle(source, error, [&] {
    need(path, "path");
    return handle(vkf_source{ModelSource::pack(path, {.offset = offset})});
  });
}

vkf_status vkf_source_memory(const vkf_file* files, size_t count, const char* name,
                             vkf_source** source, vkf_error* error) {
  return make_handle(source, error, [&] {
    if (count != 0) need(files, "files");
    MemoryFiles map;
    for (size_t i = 0; i < count; ++i) {
      need(files[i].name, "name of a file");
      if (files[i].size != 0) need(files[i].data, files[i].name);
      map[files[i].name] = {static_cast<const std::byte*>(files[i].data), files[i].size};
    }
    return handle(vkf_source{ModelSource::memory(std::move(map), text_or(name, "memory"))});
  });
}

vkf_status vkf_source_reader(const vkf_file_reader* reader, const char* name, vkf_source** source,
                             vkf_error* error) {
  return make_handle(source, error, [&] {
    const vkf_file_reader given = read_needed(reader, "file reader");
    if (given.size == nullptr || given.read == nullptr) {
      refuse(invalid_argument("[file reader] lacks its size or its read function; give both."));
    }
    FileReader made;
    made.size = [given](const std::string& file) -> std::optional<uint64_t> {
      uint64_t size = 0;
      if (given.size(given.data, file.c_str(), &size) == 0) return std::nullopt;
      return size;
    };
    made.read = [given](const std::string& file, uint64_t offset, std::span<std::byte> out) {
      return given.read(given.data, file.c_str(), offset, out.data(), out.size()) != 0;
    };
    return handle(vkf_source{ModelSource::reader(std::move(made), text_or(name, "host"))});
  });
}

void vkf_source_free(vkf_source* source) {
  delete source;
}
