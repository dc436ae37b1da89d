// Fuzz target: model.safetensors.index.json beside two shards. Whatever it says, only the shards
// are opened.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"

namespace {

// A header and eight bytes of data.
std::string shard(const std::string& tensor) {
  const std::string header =
      "{\"" + tensor + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + std::string(8, '\1');
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string kFirst = shard("a"), kSecond = shard("b");
  vkformer::MemoryFiles files;
  files["model.safetensors.index.json"] = std::as_bytes(std::span(data, size));
  files["first.safetensors"] = bytes_of(kFirst);
  files["second.safetensors"] = bytes_of(kSecond);
  const auto store = vkformer::make_memory_store(std::move(files), "fuzz");
  const auto checkpoint = vkformer::Checkpoint::open_store(*store);
  if (!checkpoint.ok()) return 0;
  for (const std::string& name : checkpoint->names()) {
    const auto* view = checkpoint->find(name);
    if (view == nullptr || view->bytes.size() != 8) __builtin_trap();
  }
  return 0;
}
