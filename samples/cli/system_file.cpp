#include "system_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace vkformer::cli {

namespace {

// Locks of the open file rather than of the process, where the system has them. They stay if
// another descriptor of the same file is closed.
#ifdef F_OFD_SETLK
constexpr int kSetLock = F_OFD_SETLK;
#else
constexpr int kSetLock = F_SETLK;
#endif

int set_lock(int descriptor, int type, int64_t offset, int64_t bytes) {
  struct flock lock {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = bytes;
  int code = 0;
  do {
    code = fcntl(descriptor, kSetLock, &lock);
  } while (code != 0 && errno == EINTR);
  return code;
}

Error system_error(const std::string& path, const char* what) {
  return {ErrorCode::kInvalidFile,
          "[" + path + "] could not be " + what + ": " + std::strerror(errno) + "."};
}

// Brings names that a folder got or lost to the disk; not every file system can.
void sync_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

Result<SystemFile> SystemFile::open(const std::string& path, Content content) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (content == Content::kReplace ? O_TRUNC : 0);
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) return system_error(path, "opened");
  return SystemFile(descriptor, path);
}

SystemFile::SystemFile(SystemFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

SystemFile& SystemFile::operator=(SystemFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

SystemFile::~SystemFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Error SystemFile::error(const char* what) const {
  return system_error(path_, what);
}

Result<int64_t> SystemFile::size() const {
  struct stat facts {};
  if (fstat(descriptor_, &facts) != 0) return error("asked for its size");
  return static_cast<int64_t>(facts.st_size);
}

Status SystemFile::resize(int64_t bytes) const {
  return ftruncate(descriptor_, bytes) == 0 ? Status() : Status(error("cut"));
}

Status SystemFile::write_at(int64_t offset, std::string_view text) const {
  while (!text.empty()) {
    const ssize_t count = pwrite(descriptor_, text.data(), text.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return error("written");
    text.remove_prefix(static_cast<size_t>(count));
    offset += count;
  }
  return {};
}

Status SystemFile::sync() const {
  // EINVAL: what has no disk, such as a pipe.
  return fsync(descriptor_) == 0 || errno == EINVAL ? Status() : Status(error("written"));
}

Result<LockState> SystemFile::lock(int64_t offset, int64_t bytes) const {
  if (set_lock(descriptor_, F_WRLCK, offset, bytes) == 0) return LockState::kTaken;
  if (errno == EAGAIN || errno == EACCES) return LockState::kHeldElsewhere;
  Error failed = error("locked");
  failed.message +=
      " Put it on a file system that has POSIX locks, such as a local disk, NFS 4, CephFS, or "
      "Lustre mounted with -o flock.";
  return failed;
}

void SystemFile::unlock(int64_t offset, int64_t bytes) const {
  set_lock(descriptor_, F_UNLCK, offset, bytes);
}

Status replace_file(const std::string& path, const std::string& part, std::string_view text) {
  const auto write = [&]() -> Status {
    const Result<SystemFile> file = SystemFile::open(part, SystemFile::Content::kReplace);
    if (!file) return file.error();
    const Status written = file->write_at(0, text);
    return written ? file->sync() : written;
  };
  Status done = write();
  if (done && std::rename(part.c_str(), path.c_str()) != 0) done = system_error(path, "written");
  if (done) {
    sync_folder(path);
  } else {
    ::unlink(part.c_str());
  }
  return done;
}

}  // namespace vkformer::cli
