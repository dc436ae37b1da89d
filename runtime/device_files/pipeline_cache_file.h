// The pipeline cache on disk: a strict header of our own before the driver's data. Whatever does
// not match exactly is a miss; the file is then replaced.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vkformer {

// What a cache file must have been made with to be used.
struct PipelineCacheKey {
  uint32_t vendor = 0;
  uint32_t device = 0;
  uint32_t driver_version = 0;
  std::array<uint8_t, 16> uuid{};  // pipelineCacheUUID
  uint64_t kernels = 0;            // hash of every embedded kernel, see kernel_list_hash
};

// FNV-1a over the names and words of all kernels in the catalogue.
uint64_t kernel_list_hash();

// What small text files beside the cache begin with: the key as one line.
std::string key_line(const PipelineCacheKey& key);
// And what they end with: a line with a hash of the text before it.
std::string with_checksum(const std::string& text);
// The text before that line; nothing where the line is missing or its hash is another's.
std::optional<std::string> without_checksum(const std::string& text);

// The directory for `option` (DeviceOptions::cache_directory): the user's cache directory for "";
// nothing for "none" or where no home is known.
std::optional<std::string> pipeline_cache_directory(const std::string& option);
// The file of that key in that directory.
std::string pipeline_cache_path(const std::string& directory, const PipelineCacheKey& key);

// The driver's data, or nothing where the file is absent, damaged or made for something else.
std::optional<std::vector<std::byte>> read_pipeline_cache(const std::string& path,
                                                          const PipelineCacheKey& key);
// Of a file of such caches, one after the other, the driver's data of those with that key. Nothing,
// where the file is absent or damaged anywhere.
std::optional<std::vector<std::vector<std::byte>>> read_pipeline_pack(const std::string& path,
                                                                      const PipelineCacheKey& key);
// Replaces the file by these parts, whole or not at all; makes its directory where it is missing.
// False where it cannot be written.
bool replace_file(const std::string& path, std::initializer_list<std::span<const std::byte>> parts);
// The same with the header before the driver's data.
bool write_pipeline_cache(const std::string& path, const PipelineCacheKey& key,
                          std::span<const std::byte> data);

}  // namespace vkformer
