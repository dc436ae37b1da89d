// MappedFile: the bytes of a file, read-only, mapped where the system can and read where it cannot.
//
// Threading: immutable once open; any thread may read.
// Lifetime: the bytes live as long as the MappedFile, and stay where they are when it is moved.
// Nobody may shorten the file meanwhile: a page after its end faults, as with any map.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// Bytes [begin, end) of a file.
struct ByteRange {
  size_t begin = 0, end = 0;
};

class MappedFile {
 public:
  // Opens a regular file. An error names the path and the system's reason.
  static Result<MappedFile> open(const std::string& path);
  // The same over bytes that are in memory already; `name` stands for the path in messages.
  static MappedFile from_bytes(std::vector<std::byte> bytes, std::string name);

  // The same over bytes that somebody else keeps for as long as the MappedFile lives.
  static MappedFile borrow(std::span<const std::byte> bytes, std::string name);

  // The same over bytes that live as long as `owner`, which it keeps. `pages` as in pages().
  static MappedFile share(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                          std::string name, std::span<const std::byte> pages = {});

  // A file of `size` bytes of which only `ranges` are there, in order and apart: `bytes` has just
  // these, one after the other. The others read as zeros, and take no memory where the system has
  // maps. An error says that no addresses are left.
  static Result<MappedFile> sparse(size_t size, std::vector<ByteRange> ranges,
                                   std::span<const std::byte> bytes, std::string name);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // The system's pages that a file is mapped to, of which bytes() is a part; empty where it is not
  // mapped.
  std::span<const std::byte> pages() const { return pages_; }
  const std::string& path() const { return path_; }
  // Whether all of `part`, which lies inside bytes(), is there: of a sparse file not all is.
  bool stores(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;

  std::string path_;
  std::span<const std::byte> bytes_;
  std::span<const std::byte> pages_;
  std::vector<std::byte> owned_;                          // what bytes_ shows unless mapped_
  std::shared_ptr<const void> owner_;                     // of what share() was given
  std::shared_ptr<const std::vector<ByteRange>> ranges_;  // of a sparse file; else null
  bool mapped_ = false;
};

// The path that a UTF-8 string names on this system.
std::filesystem::path path_from_utf8(const std::string& text);

// A failure of the system with `path`: "File [path] <what>: <reason>.", coded by the reason.
// `system_code` is an errno value.
Error file_error(const std::string& path, const std::string& what, int system_code);

}  // namespace vkformer
