#include "checkpoint/replace_file.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

#include "checkpoint/mapped_file.h"

namespace vkformer {

namespace {

std::FILE* create_new(const std::filesystem::path& path) {
  errno = 0;
#if defined(_WIN32)
  return ::_wfopen(path.c_str(), L"wbx");
#else
  return std::fopen(path.c_str(), "wbx");
#endif
}

bool flush_to_disk(std::FILE* file) {
  if (std::fflush(file) != 0) return false;
#if defined(_WIN32)
  return ::_commit(::_fileno(file)) == 0;
#else
  // Some file systems have nothing to flush and say so.
  return ::fsync(::fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP;
#endif
}

// 0, or the errno of what failed. Closes the file in any case.
int write_pieces(std::FILE* file, const std::vector<std::span<const std::byte>>& pieces) {
  int code = 0;
  for (const auto piece : pieces) {
    if (piece.empty()) continue;
    errno = 0;
    if (std::fwrite(piece.data(), 1, piece.size(), file) == piece.size()) continue;
    code = errno != 0 ? errno : EIO;
    break;
  }
  errno = 0;
  if (code == 0 && !flush_to_disk(file)) code = errno != 0 ? errno : EIO;
  errno = 0;
  if (std::fclose(file) != 0 && code == 0) code = errno != 0 ? errno : EIO;
  return code;
}

Status write_into(const std::string& path, const std::filesystem::path& target,
                  const std::vector<std::span<const std::byte>>& pieces) {
  errno = 0;
  std::FILE* file = std::fopen(target.string().c_str(), "wb");
  const int code = file != nullptr ? write_pieces(file, pieces) : errno;
  if (code == 0 && file != nullptr) return {};
  return file_error(path, "cannot be written", code != 0 ? code : EIO);
}

}  // namespace

Status replace_file(const std::string& path,
                    const std::vector<std::span<const std::byte>>& pieces) {
  const std::filesystem::path target = path_from_utf8(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(target, ignored)) {
    return file_error(path, "cannot be written", EISDIR);
  }
  // A pipe or a terminal has nothing to replace.
  if (std::filesystem::is_other(target, ignored)) return write_into(path, target, pieces);
  // A separate name for every writer. Two may write the same path at once, and a writer that was
  // killed may have left its file there.
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  std::filesystem::path temporary;
  std::FILE* file = nullptr;
  for (int attempt = 0; attempt < 100 && file == nullptr; ++attempt) {
    temporary = target;
    temporary += ".tmp" + std::to_string(ticks) + "-" + std::to_string(attempt);
    file = create_new(temporary);
    if (file == nullptr && errno != EEXIST) break;
  }
  if (file == nullptr) return file_error(path, "cannot be written", errno != 0 ? errno : EIO);
  const int code = write_pieces(file, pieces);
  if (code != 0) {
    std::filesystem::remove(temporary, ignored);
    return file_error(path, "cannot be written", code);
  }
  std::error_code renamed;
  std::filesystem::rename(temporary, target, renamed);
  if (!renamed) return {};
  std::filesystem::remove(temporary, ignored);
  return file_error(path, "cannot be replaced", renamed.default_error_condition().value());
}

}  // namespace vkformer
