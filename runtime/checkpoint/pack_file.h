// A packed model: the files of a model directory in one file. It may itself be a part of a larger
// one, such as a game's archive. docs/files.md has the format:
//
//   0        "VKFPACK1"
//   8        H, bytes of the header, little-endian
//   16       SHA-256 of the header
//   48       16 zero bytes
//   64       the header: JSON, filled with spaces
//   64 + H   the files; each at a multiple of the alignment, and 64 + H too
//
// Threading: immutable once open; any thread may read.
// Lifetime: the store keeps the map. Files that it opens keep it, too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/file_store.h"

namespace vkformer {

inline constexpr uint64_t kPackHead = 64;
inline constexpr uint64_t kPackAlignment = 4096;  // of what is written: pages of most systems

struct PackedFile {
  std::string name;
  uint64_t offset = 0;  // from the pack's first byte on
  uint64_t size = 0;
  std::string sha256;  // 64 hexadecimal digits
};

// What a pack's header says, checked: files lie inside the pack, apart from each other.
struct PackContent {
  std::string sha256;             // of the header, and so of all that it names
  uint64_t size = 0;              // of the pack
  std::vector<PackedFile> files;  // by offset
  std::vector<std::pair<std::string, double>> adapters;  // folder in the pack, scale
};

// Whether bytes begin as a pack of any version does.
bool begins_as_pack(std::span<const std::byte> bytes);
// Whether a path is a file that does.
bool is_pack_file(const std::string& path);

// What a file has from the pack's first byte on.
Result<std::span<const std::byte>> pack_bytes(const MappedFile& file, uint64_t offset);
// `bytes` begin with the pack and may go on after it. `label` stands for it in messages.
Result<PackContent> read_pack(std::span<const std::byte> bytes, const std::string& label);

// The store over a pack that begins `offset` bytes into the file. With `verify` a file's bytes are
// compared with its hash when it is first opened. An error comes from its open().
std::shared_ptr<const FileStore> make_pack_store(MappedFile file, uint64_t offset, bool verify);
// The same of a file on the disk.
std::shared_ptr<const FileStore> make_pack_store(const std::string& path, uint64_t offset,
                                                 bool verify);

// The store of a packed model or, if the path is something else, of a directory.
std::shared_ptr<const FileStore> make_plain_store(const std::string& path);

// Everything before the first file: head and header, filled up. Sets offset and hash
// of each file, in the order given.
std::vector<std::byte> pack_header(std::vector<PackedFile>& files,
                                   const std::vector<std::span<const std::byte>>& bytes,
                                   const std::vector<std::pair<std::string, double>>& adapters);

}  // namespace vkformer
