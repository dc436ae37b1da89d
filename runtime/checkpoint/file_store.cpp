#include "checkpoint/file_store.h"

#include <exception>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/inner_link.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kReadBytes = uint64_t{16} << 20;  // of one call of a host's reader

bool is_safetensors(const std::string& name) {
  return name.ends_with(".safetensors") && name.find('/') == std::string::npos;
}

class DirectoryStore : public FileStore {
 public:
  explicit DirectoryStore(std::string directory) : directory_(std::move(directory)) {}

  bool has(const std::string& name) const override {
    std::error_code ignored;
    return fs::is_regular_file(path_from_utf8(label_of(name)), ignored);
  }
  Result<MappedFile> open(const std::string& name) const override {
    VKF_CHECK(check_inner_link(directory_, label_of(name)));
    return MappedFile::open(label_of(name));
  }
  Result<std::vector<std::string>> safetensors_names() const override {
    std::error_code code;
    fs::directory_iterator items(path_from_utf8(directory_), code);
    std::vector<std::string> found;
    for (; !code && items != fs::directory_iterator(); items.increment(code)) {
      const std::u8string text = items->path().filename().u8string();
      const std::string name(text.begin(), text.end());
      if (is_safetensors(name)) found.push_back(name);
    }
    if (!code) return found;
    return file_error(directory_, "cannot be listed", code.default_error_condition().value());
  }
  std::string label() const override { return directory_; }

 private:
  std::string directory_;
};

class MemoryStore : public FileStore {
 public:
  MemoryStore(MemoryFiles files, std::string name)
      : files_(std::move(files)), name_(std::move(name)) {}

  bool has(const std::string& name) const override { return files_.count(name) != 0; }
  Result<MappedFile> open(const std::string& name) const override {
    const auto found = files_.find(name);
    if (found != files_.end()) return MappedFile::borrow(found->second, label_of(name));
    return not_found(message({"File [", label_of(name), "] is not among those in memory."}));
  }
  Result<std::vector<std::string>> safetensors_names() const override {
    std::vector<std::string> found;
    for (const auto& [name, bytes] : files_) {
      if (is_safetensors(name)) found.push_back(name);
    }
    return found;
  }
  const FileStore* host_files() const override { return this; }
  std::string label() const override { return name_; }

 private:
  MemoryFiles files_;
  std::string name_;
};

class ReaderStore : public FileStore {
 public:
  ReaderStore(FileReader reader, std::string name)
      : reader_(std::move(reader)), name_(std::move(name)) {}

  bool has(const std::string& name) const override {
    return reader_.size && reader_.size(name).has_value();
  }
  Result<MappedFile> open(const std::string& name) const override;
  // A reader cannot list its files.
  Result<std::vector<std::string>> safetensors_names() const override {
    return std::vector<std::string>();
  }
  const FileStore* host_files() const override { return this; }
  std::string label() const override { return name_; }

 private:
  FileReader reader_;
  std::string name_;
};

Result<MappedFile> ReaderStore::open(const std::string& name) const {
  if (!reader_.size || !reader_.read) {
    return invalid_argument(
        message({"[", name_, "] is a reader without a size or a read function."}));
  }
  const std::optional<uint64_t> size = reader_.size(name);
  if (!size)
    return not_found(message({"File [", label_of(name), "] is not known to the host's reader."}));
  std::vector<std::byte> bytes;
  try {
    if (*size > std::numeric_limits<size_t>::max() / 2) throw std::bad_alloc();
    bytes.resize(static_cast<size_t>(*size));
  } catch (const std::exception&) {
    return Error{ErrorCode::kOutOfMemory, "File [" + label_of(name) + "] of " +
                                              std::to_string(*size) +
                                              " bytes does not fit into memory."};
  }
  for (uint64_t offset = 0; offset < *size; offset += kReadBytes) {
    const auto count = static_cast<size_t>(std::min(kReadBytes, *size - offset));
    const std::span<std::byte> part(bytes.data() + offset, count);
    if (reader_.read(name, offset, part)) continue;
    return invalid_file(
        message({"File [", label_of(name), "] could not be read: the host's reader failed at byte ",
                 offset, " of ", *size, "."}));
  }
  return MappedFile::from_bytes(std::move(bytes), label_of(name));
}

}  // namespace

const char* config_name(const FileStore& files) {
  return files.has(kGlinerConfig) ? kGlinerConfig : "config.json";
}

std::string FileStore::label_of(const std::string& name) const {
  const std::string base = label();
  if (base.empty() || base.back() == '/') return base + name;
  return base + "/" + name;
}

Status check_inner_name(const std::string& name, const std::string& named_by) {
  bool escapes = name.empty() || name.front() == '/' ||
                 name.find_first_of("\\:") != std::string::npos ||
                 name.find('\0') != std::string::npos;
  for (const fs::path& part : fs::path(name)) escapes = escapes || part == "..";
  if (!escapes) return {};
  return invalid_file(message({"File [", named_by, "] names the file ", bracketed(name),
                               ", which is not inside the model's directory."}));
}

std::shared_ptr<const FileStore> make_directory_store(std::string directory) {
  return std::make_shared<DirectoryStore>(std::move(directory));
}

std::shared_ptr<const FileStore> make_memory_store(MemoryFiles files, std::string name) {
  return std::make_shared<MemoryStore>(std::move(files), std::move(name));
}

std::shared_ptr<const FileStore> make_reader_store(FileReader reader, std::string name) {
  return std::make_shared<ReaderStore>(std::move(reader), std::move(name));
}

}  // namespace vkformer
