// A file by the system's own calls: written at places, brought to the disk, locked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vkformer/result.h"

namespace vkformer::cli {

enum class LockState : uint8_t { kTaken, kHeldElsewhere };

// Errors name the path and say why.
class SystemFile {
 public:
  // kReplace empties the file, kUpdate leaves what it has; both make it where it is missing.
  enum class Content : uint8_t { kReplace, kUpdate };
  static Result<SystemFile> open(const std::string& path, Content content);
  SystemFile(SystemFile&& other) noexcept;
  SystemFile& operator=(SystemFile&& other) noexcept;
  ~SystemFile();

  Result<int64_t> size() const;
  Status resize(int64_t bytes) const;
  Status write_at(int64_t offset, std::string_view text) const;
  // Returns once the content is on the disk.
  Status sync() const;
  // Locks `bytes` bytes from `offset` on (0: all that there will ever be), without waiting. The
  // bytes need not exist. The system ends a lock with the process, however that ends. An error
  // means that the file system has no locks.
  Result<LockState> lock(int64_t offset, int64_t bytes) const;
  void unlock(int64_t offset, int64_t bytes) const;

 private:
  SystemFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  Error error(const char* what) const;

  int descriptor_ = -1;
  std::string path_;
};

// Writes the file next to `path` under the name `part`, brings it to the disk and renames it. A
// reader gets the old text or the new, whole, even after a loss of power.
Status replace_file(const std::string& path, const std::string& part, std::string_view text);

}  // namespace vkformer::cli
