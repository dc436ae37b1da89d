#include "device_files/pipeline_cache_file.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fnv.h"
#include "kernels/catalogue.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'V', 'K', 'F', 'P', 'I', 'P', 'E', '1'};
constexpr uint32_t kLibraryVersion = 0x000200;  // 0.2.0
constexpr uint64_t kMaxPayload = 256ull << 20;  // bytes; no driver's cache of ours comes near

// Fixed-size fields only, without padding; compared byte by byte.
struct Header {
  char magic[8];
  uint32_t library_version;
  uint32_t vendor;
  uint32_t device;
  uint32_t driver_version;
  uint8_t uuid[16];
  uint64_t kernels;
  uint64_t payload_bytes;
  uint64_t payload_hash;
};
static_assert(sizeof(Header) == 64);

Header make_header(const PipelineCacheKey& key, std::span<const std::byte> data) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof(kMagic));
  h.library_version = kLibraryVersion;
  h.vendor = key.vendor;
  h.device = key.device;
  h.driver_version = key.driver_version;
  std::memcpy(h.uuid, key.uuid.data(), sizeof(h.uuid));
  h.kernels = key.kernels;
  h.payload_bytes = data.size();
  h.payload_hash = fnv1a(data.data(), data.size());
  return h;
}

// Differs between processes, threads and moments.
std::string unique_suffix(const void* address) {
  const auto now = std::chrono::high_resolution_clock::now().time_since_epoch().count();
  const size_t thread = std::hash<std::thread::id>()(std::this_thread::get_id());
  uint64_t hash = fnv1a(&now, sizeof(now));
  hash = fnv1a(&thread, sizeof(thread), hash);
  return hex_text(fnv1a(&address, sizeof(address), hash));
}

}  // namespace

std::string key_line(const PipelineCacheKey& key) {
  std::string line = "key";
  for (const uint64_t number :
       {uint64_t{key.vendor}, uint64_t{key.device}, uint64_t{key.driver_version}, key.kernels}) {
    line += " " + std::to_string(number);
  }
  for (const uint8_t byte : key.uuid) line += " " + std::to_string(byte);
  return line;
}

std::string with_checksum(const std::string& text) {
  return text + "sum " + std::to_string(fnv1a(text.data(), text.size())) + "\n";
}

std::optional<std::string> without_checksum(const std::string& text) {
  const size_t last = text.rfind("sum ");
  if (last == std::string::npos) return std::nullopt;
  std::string before = text.substr(0, last);
  return text == with_checksum(before) ? std::optional(std::move(before)) : std::nullopt;
}

uint64_t kernel_list_hash() {
  uint64_t hash = fnv1a(nullptr, 0);
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    const KernelInfo& info = kernel_info(static_cast<KernelId>(i));
    hash = fnv1a(info.name.data(), info.name.size(), hash);
    // The first of a group stands for all of it.
    if (info.first_word != 0) continue;
    hash = fnv1a(info.packed.data(), info.packed.size_bytes(), hash);
  }
  return hash;
}

std::optional<std::string> pipeline_cache_directory(const std::string& option) {
  if (option == "none") return std::nullopt;
  if (!option.empty()) return option;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    return (fs::path(xdg) / "vkformer").string();
  }
#ifdef _WIN32
  if (const char* local = std::getenv("LOCALAPPDATA"); local && *local) {
    return (fs::path(local) / "vkformer").string();
  }
#endif
  if (const char* home = std::getenv("HOME"); home && *home) {
    return (fs::path(home) / ".cache" / "vkformer").string();
  }
  return std::nullopt;
}

std::string pipeline_cache_path(const std::string& directory, const PipelineCacheKey& key) {
  uint64_t hash = fnv1a(&key.vendor, sizeof(key.vendor));
  hash = fnv1a(&key.device, sizeof(key.device), hash);
  hash = fnv1a(key.uuid.data(), key.uuid.size(), hash);
  return (fs::path(directory) / (hex_text(hash) + ".pipelines")).string();
}

std::optional<std::vector<std::byte>> read_pipeline_cache(const std::string& path,
                                                          const PipelineCacheKey& key) {
  auto found = read_pipeline_pack(path, key);
  // A cache file is a pack of one.
  if (!found || found->size() != 1) return std::nullopt;
  return std::move(found->front());
}

std::optional<std::vector<std::vector<std::byte>>> read_pipeline_pack(const std::string& path,
                                                                      const PipelineCacheKey& key) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  uint64_t left = fs::file_size(path, error);
  if (error || !file) return std::nullopt;
  std::vector<std::vector<std::byte>> found;
  while (left > 0) {
    Header header{};
    if (left < sizeof(header)) return std::nullopt;
    if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return std::nullopt;
    left -= sizeof(header);
    const bool ours = std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0;
    if (!ours || header.payload_bytes > std::min(kMaxPayload, left)) return std::nullopt;
    left -= header.payload_bytes;
    Header wanted = make_header(key, {});
    wanted.payload_bytes = header.payload_bytes;
    wanted.payload_hash = header.payload_hash;
    const auto bytes = static_cast<std::streamsize>(header.payload_bytes);
    if (std::memcmp(&header, &wanted, sizeof(header)) != 0) {
      if (!file.seekg(bytes, std::ios::cur)) return std::nullopt;
      continue;
    }
    std::vector<std::byte> data(static_cast<size_t>(header.payload_bytes));
    if (!file.read(reinterpret_cast<char*>(data.data()), bytes)) return std::nullopt;
    if (fnv1a(data.data(), data.size()) != header.payload_hash) return std::nullopt;
    found.push_back(std::move(data));
  }
  return found;
}

bool replace_file(const std::string& path,
                  std::initializer_list<std::span<const std::byte>> parts) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return false;
  // Another process may be writing the same file; each writes a separate one and renames it.
  const std::string part = path + "." + unique_suffix(parts.begin()->data()) + ".part";
  bool written = false;
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    for (const std::span<const std::byte> bytes : parts) {
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    file.close();
    written = file.good();
  }
  if (written) {
    fs::rename(part, path, error);
    written = !error;
  }
  if (!written) fs::remove(part, error);
  return written;
}

bool write_pipeline_cache(const std::string& path, const PipelineCacheKey& key,
                          std::span<const std::byte> data) {
  if (data.size() > kMaxPayload) return false;
  const Header header = make_header(key, data);
  return replace_file(path, {std::as_bytes(std::span(&header, 1)), data});
}

}  // namespace vkformer
