#include "checkpoint/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#if defined(_WIN32) && !defined(VKFORMER_NO_MMAP)
#define VKFORMER_HAS_MMAP 0
#define VKFORMER_HAS_VIEWS 1
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#elif __has_include(<sys/mman.h>) && !defined(VKFORMER_NO_MMAP)
#define VKFORMER_HAS_MMAP 1
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#define VKFORMER_HAS_MMAP 0
#include <fstream>
#endif

#include "base/check.h"

namespace vkformer {

std::filesystem::path path_from_utf8(const std::string& text) {
  return std::filesystem::path(std::u8string(text.begin(), text.end()));
}

Error file_error(const std::string& path, const std::string& what, int system_code) {
  ErrorCode code = ErrorCode::kInvalidFile;
  if (system_code == ENOENT || system_code == ENOTDIR) code = ErrorCode::kNotFound;
  if (system_code == ENOMEM) code = ErrorCode::kOutOfMemory;
  return {code, "File [" + path + "] " + what + ": " +
                    std::generic_category().message(system_code) + "."};
}

namespace {

#if VKFORMER_HAS_MMAP || defined(VKFORMER_HAS_VIEWS)
// The last page of a map is whole: zeros follow the file's bytes.
std::span<const std::byte> whole_pages(std::span<const std::byte> bytes, size_t page) {
  return {bytes.data(), (bytes.size() + page - 1) / page * page};
}
#endif

// Null for no bytes, and where there are no addresses.
std::shared_ptr<std::byte> zero_bytes(size_t size) {
  if (size == 0) return nullptr;
#if VKFORMER_HAS_MMAP
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(address), [size](std::byte* at) { ::munmap(at, size); }};
#else
  return {static_cast<std::byte*>(std::calloc(size, 1)), std::free};
#endif
}

}  // namespace

MappedFile MappedFile::borrow(std::span<const std::byte> bytes, std::string name) {
  MappedFile result;
  result.path_ = std::move(name);
  result.bytes_ = bytes;
  return result;
}

MappedFile MappedFile::share(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                             std::string name, std::span<const std::byte> pages) {
  MappedFile result = borrow(bytes, std::move(name));
  result.owner_ = std::move(owner);
  result.pages_ = pages;
  return result;
}

MappedFile MappedFile::from_bytes(std::vector<std::byte> bytes, std::string name) {
  MappedFile file;
  file.path_ = std::move(name);
  file.owned_ = std::move(bytes);
  file.bytes_ = file.owned_;
  return file;
}

Result<MappedFile> MappedFile::sparse(size_t size, std::vector<ByteRange> ranges,
                                      std::span<const std::byte> bytes, std::string name) {
  const std::shared_ptr<std::byte> whole = zero_bytes(size);
  if (whole == nullptr && size > 0) return file_error(name, "cannot be mapped", ENOMEM);
  for (const ByteRange& range : ranges) {
    const auto part = bytes.first(range.end - range.begin);
    if (!part.empty()) std::memcpy(whole.get() + range.begin, part.data(), part.size());
    bytes = bytes.subspan(part.size());
  }
  MappedFile result = share(whole, {whole.get(), size}, std::move(name));
  result.ranges_ = std::make_shared<const std::vector<ByteRange>>(std::move(ranges));
  return result;
}

bool MappedFile::stores(std::span<const std::byte> part) const {
  if (ranges_ == nullptr || part.empty()) return true;
  const auto begin = static_cast<size_t>(part.data() - bytes_.data());
  for (const ByteRange& range : *ranges_) {
    if (range.begin <= begin && begin + part.size() <= range.end) return true;
  }
  return false;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      pages_(std::exchange(other.pages_, {})),
      owned_(std::move(other.owned_)),
      owner_(std::move(other.owner_)),
      ranges_(std::move(other.ranges_)),
      mapped_(std::exchange(other.mapped_, false)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(pages_, other.pages_);
  std::swap(owned_, other.owned_);
  std::swap(owner_, other.owner_);
  std::swap(ranges_, other.ranges_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

#if VKFORMER_HAS_MMAP

namespace {

// Closes a descriptor when it leaves scope; a map outlives it.
struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  const int fd;
};

}  // namespace

MappedFile::~MappedFile() {
  if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return file_error(path.c_str(), "has a zero byte in its name", EINVAL);
  }
  // O_NONBLOCK: a named pipe without a writer must not hold us up; regular files ignore it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) return file_error(path, "cannot be opened", errno);
  struct stat status = {};
  if (::fstat(file.fd, &status) != 0) return file_error(path, "cannot be examined", errno);
  if (S_ISDIR(status.st_mode)) return file_error(path, "cannot be read", EISDIR);
  if (!S_ISREG(status.st_mode)) return file_error(path, "is not a regular file", EINVAL);
  if (static_cast<uint64_t>(status.st_size) > std::numeric_limits<size_t>::max()) {
    return file_error(path, "cannot be mapped", EFBIG);
  }
  MappedFile result;
  result.path_ = path;
  if (status.st_size == 0) return result;  // a map of no bytes does not exist
  const size_t size = static_cast<size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) return file_error(path, "cannot be mapped", errno);
  result.bytes_ = {static_cast<const std::byte*>(address), size};
  result.pages_ = whole_pages(result.bytes_, static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  result.mapped_ = true;
  return result;
}

#elif defined(VKFORMER_HAS_VIEWS)

namespace {

// Closes a handle when it leaves scope; a view outlives it.
struct Handle {
  explicit Handle(HANDLE opened) : value(opened) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (value != nullptr && value != INVALID_HANDLE_VALUE) ::CloseHandle(value);
  }
  const HANDLE value;
};

// The last error of the system as the number that POSIX has for it.
int last_error() {
  const auto code = static_cast<int>(::GetLastError());
  return std::system_category().default_error_condition(code).value();
}

Result<std::wstring> wide_path(const std::string& path) {
  try {
    return path_from_utf8(path).wstring();
  } catch (const std::exception&) {
    return file_error(path, "has a name that is not UTF-8", EINVAL);
  }
}

}  // namespace

MappedFile::~MappedFile() {
  if (mapped_) ::UnmapViewOfFile(bytes_.data());
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return file_error(path.c_str(), "has a zero byte in its name", EINVAL);
  }
  VKF_ASSIGN(const std::wstring name, wide_path(path));
  const DWORD attributes = ::GetFileAttributesW(name.c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) {
    return file_error(path, "cannot be opened", last_error());
  }
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
    return file_error(path, "cannot be read", EISDIR);
  }
  const Handle file(::CreateFileW(name.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                  nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
  if (file.value == INVALID_HANDLE_VALUE) {
    return file_error(path, "cannot be opened", last_error());
  }
  if (::GetFileType(file.value) != FILE_TYPE_DISK) {
    return file_error(path, "is not a regular file", EINVAL);
  }
  LARGE_INTEGER size = {};
  if (!::GetFileSizeEx(file.value, &size)) {
    return file_error(path, "cannot be examined", last_error());
  }
  if (static_cast<uint64_t>(size.QuadPart) > std::numeric_limits<size_t>::max()) {
    return file_error(path, "cannot be mapped", EFBIG);
  }
  MappedFile result;
  result.path_ = path;
  if (size.QuadPart == 0) return result;  // a view of no bytes does not exist
  const Handle map(::CreateFileMappingW(file.value, nullptr, PAGE_READONLY, 0, 0, nullptr));
  const void* address =
      map.value != nullptr ? ::MapViewOfFile(map.value, FILE_MAP_READ, 0, 0, 0) : nullptr;
  if (address == nullptr) return file_error(path, "cannot be mapped", last_error());
  result.bytes_ = {static_cast<const std::byte*>(address), static_cast<size_t>(size.QuadPart)};
  SYSTEM_INFO system = {};
  ::GetSystemInfo(&system);
  result.pages_ = whole_pages(result.bytes_, system.dwPageSize);
  result.mapped_ = true;
  return result;
}

#else

MappedFile::~MappedFile() = default;

Result<MappedFile> MappedFile::open(const std::string& path) {
  try {
    const std::filesystem::path native = path_from_utf8(path);
    std::error_code code;
    const bool regular = std::filesystem::is_regular_file(native, code);
    if (code) return file_error(path, "cannot be opened", code.default_error_condition().value());
    if (!regular) return file_error(path, "is not a regular file", EINVAL);
    const uintmax_t size = std::filesystem::file_size(native, code);
    if (code) return file_error(path, "cannot be examined", code.default_error_condition().value());
    errno = 0;
    std::ifstream stream(native, std::ios::binary);
    if (!stream) return file_error(path, "cannot be opened", errno != 0 ? errno : EIO);
    if (size > std::numeric_limits<size_t>::max()) {
      return file_error(path, "cannot be read", EFBIG);
    }
    std::vector<std::byte> bytes(static_cast<size_t>(size));
    stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!stream) return file_error(path, "cannot be read to its end", errno != 0 ? errno : EIO);
    return from_bytes(std::move(bytes), path);
  } catch (const std::exception&) {
    return file_error(path, "does not fit into memory", ENOMEM);
  }
}

#endif

}  // namespace vkformer
