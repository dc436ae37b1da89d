#include "checkpoint/pack_file.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "base/message.h"
#include "base/sha256.h"
#include "checkpoint/json_config.h"
#include "checkpoint/message_text.h"
#include "checkpoint/sparse_file.h"

namespace vkformer {
namespace {

constexpr std::string_view kMagic = "VKFPACK1";
constexpr size_t kMagicStem = 7;                      // without the version
constexpr uint64_t kMostHeader = uint64_t{64} << 20;  // as of any JSON file
constexpr size_t kMostPackedFiles = 100'000;
constexpr int64_t kMostAlignment = int64_t{1} << 20;

Error pack_error(const std::string& label, std::initializer_list<MessagePart> parts) {
  return invalid_file("File [" + label + "] is a damaged packed model: " + message(parts) +
                      " Pack the model again, or copy the file again.");
}

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

uint64_t aligned(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// A name stays inside the model, and inside the line of a message.
Status check_packed_name(const std::string& name, const std::string& label) {
  VKF_CHECK(check_inner_name(name, label));
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte != 0x7f) continue;
    return pack_error(label, {"the name ", bracketed(name), " has a control character."});
  }
  return {};
}

// One entry of the header, with its place inside the pack checked.
Result<PackedFile> read_packed_file(const std::string& name, const JsonConfig& entry,
                                    const std::string& label, uint64_t data, uint64_t end,
                                    int64_t alignment) {
  VKF_CHECK(check_packed_name(name, label));
  VKF_ASSIGN(const int64_t offset, entry.get_int("offset"));
  VKF_ASSIGN(const int64_t size, entry.get_int("size"));
  VKF_ASSIGN(const std::string sha256, entry.get_string("sha256"));
  if (offset < 0 || size < 0 || offset % alignment != 0) {
    return pack_error(
        label, {"the file ", bracketed(name), " has the offset ", offset, " and the size ", size,
                ", but both must be 0 or more, and the offset "
                "a multiple of ",
                alignment, "."});
  }
  const auto begin = static_cast<uint64_t>(offset), bytes = static_cast<uint64_t>(size);
  const uint64_t room = end - data;
  if (begin > room || bytes > room - begin) {
    return pack_error(label, {"the file ", bracketed(name), " ends at byte ", begin, " + ", bytes,
                              " of the data, of which there are ", room, "."});
  }
  if (!is_digest(sha256)) {
    return pack_error(label, {"the file ", bracketed(name), " has no SHA-256 of 64 digits."});
  }
  return PackedFile{name, data + begin, bytes, sha256};
}

Status check_apart(std::vector<PackedFile>& files, const std::string& label) {
  std::sort(files.begin(), files.end(), [](const PackedFile& a, const PackedFile& b) {
    return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
  });
  for (size_t i = 1; i < files.size(); ++i) {
    const PackedFile& before = files[i - 1];
    if (before.offset + before.size <= files[i].offset) continue;
    return pack_error(label, {"the files ", bracketed(before.name), " and ",
                              bracketed(files[i].name), " overlap."});
  }
  return {};
}

// The header's text, with the head before it checked.
Result<std::string_view> header_of(std::span<const std::byte> bytes, const std::string& label) {
  if (!begins_as_pack(bytes)) {
    return invalid_file(message({"File [", label,
                                 "] has no packed model at this place: it does "
                                 "not begin with ",
                                 kMagic,
                                 ". Give a file that `vkformer pack` "
                                 "wrote, or the offset at which it is in an archive."}));
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    const char version = static_cast<char>(bytes[kMagicStem]);
    return unsupported(message({"File [", label, "] is a packed model of the version ",
                                bracketed(std::string_view(&version, 1)),
                                ", but this build reads version 1. Use a newer vkformer."}));
  }
  if (bytes.size() < kPackHead) {
    return pack_error(
        label, {"it ends after ", bytes.size(), " bytes, inside its head of ", kPackHead, "."});
  }
  const uint64_t length = little_endian(bytes.subspan(8, 8));
  if (length > kMostHeader || length > bytes.size() - kPackHead) {
    return pack_error(label, {"its header has ", length, " bytes, but there are ",
                              bytes.size() - kPackHead, ", and the limit is ", kMostHeader, "."});
  }
  const auto header = bytes.subspan(kPackHead, static_cast<size_t>(length));
  const auto digest = sha256(header);
  if (std::memcmp(digest.data(), bytes.data() + 16, digest.size()) != 0) {
    return pack_error(label, {"its header has not the SHA-256 that its head says."});
  }
  return std::string_view(reinterpret_cast<const char*>(header.data()), header.size());
}

Result<std::vector<std::pair<std::string, double>>> read_adapters(const JsonConfig& header,
                                                                  const std::string& label) {
  std::vector<std::pair<std::string, double>> adapters;
  const JsonConfig listed = header.object("adapters");
  VKF_CHECK(listed.status());
  for (const std::string& folder : listed.keys()) {
    VKF_CHECK(check_packed_name(folder, label));
    const JsonConfig adapter = listed.object(folder);
    VKF_CHECK(adapter.status());
    VKF_ASSIGN(const double scale, adapter.get_double("scale"));
    adapters.emplace_back(folder, scale);
  }
  return adapters;
}

// A map and the pack in it, which all files keep.
struct OpenPack {
  MappedFile file;
  std::span<const std::byte> bytes;  // from the pack's first byte on
  PackContent content;
  std::vector<std::atomic<bool>> verified;  // by file

  explicit OpenPack(MappedFile opened) : file(std::move(opened)) {}
  const PackedFile* find(const std::string& name) const {
    for (const PackedFile& packed : content.files) {
      if (packed.name == name) return &packed;
    }
    return nullptr;
  }
};

Result<std::shared_ptr<OpenPack>> open_pack(MappedFile file, uint64_t offset) {
  auto pack = std::make_shared<OpenPack>(std::move(file));
  VKF_ASSIGN(pack->bytes, pack_bytes(pack->file, offset));
  VKF_ASSIGN(pack->content, read_pack(pack->bytes, pack->file.path()));
  pack->verified = std::vector<std::atomic<bool>>(pack->content.files.size());
  return pack;
}

class PackStore : public FileStore {
 public:
  // `folder`: of the pack, ends in '/'; empty: all of it.
  PackStore(Result<std::shared_ptr<OpenPack>> pack, std::string label, bool verify,
            std::string folder)
      : label_(std::move(label)), verify_(verify), folder_(std::move(folder)) {
    if (pack) {
      pack_ = *pack;
    } else {
      error_ = pack.error();
    }
  }

  bool has(const std::string& name) const override {
    // Of what cannot be read, the configuration says why.
    if (error_) return name == "config.json";
    return pack_->find(folder_ + name) != nullptr || is_sparse(name);
  }
  Result<MappedFile> open(const std::string& name) const override;
  Result<std::vector<std::string>> safetensors_names() const override {
    if (error_) return *error_;
    std::vector<std::string> found;
    for (const PackedFile& file : pack_->content.files) {
      if (!file.name.starts_with(folder_)) continue;
      std::string name = file.name.substr(folder_.size());
      if (name.ends_with(kRangesEnding)) {
        name.resize(name.size() - std::string_view(kRangesEnding).size());
      }
      if (name.ends_with(".safetensors") && name.find('/') == std::string::npos) {
        found.push_back(name);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::vector<StoredAdapter> adapters() const override {
    std::vector<StoredAdapter> found;
    if (error_ || !folder_.empty()) return found;
    for (const auto& [folder, scale] : pack_->content.adapters) {
      found.push_back({std::make_shared<PackStore>(pack_, label_of(folder), verify_, folder + "/"),
                       static_cast<float>(scale)});
    }
    return found;
  }
  std::string label() const override { return label_; }

 private:
  bool is_sparse(const std::string& name) const {
    return pack_->find(folder_ + name + kRangesEnding) != nullptr;
  }

  std::string label_;
  std::optional<Error> error_;  // why there is no pack
  std::shared_ptr<OpenPack> pack_;
  bool verify_;
  std::string folder_;
};

Result<MappedFile> PackStore::open(const std::string& name) const {
  if (error_) return *error_;
  const PackedFile* file = pack_->find(folder_ + name);
  if (file == nullptr && is_sparse(name)) {
    VKF_ASSIGN(const MappedFile ranges, open(name + kRangesEnding));
    VKF_ASSIGN(const MappedFile stored, open(name + kStoredEnding));
    return read_sparse(
        {reinterpret_cast<const char*>(ranges.bytes().data()), ranges.bytes().size()},
        stored.bytes(), label_of(name));
  }
  if (file == nullptr) {
    return not_found(message({"File [", label_of(name), "] is not in the packed model."}));
  }
  const auto bytes =
      pack_->bytes.subspan(static_cast<size_t>(file->offset), static_cast<size_t>(file->size));
  std::atomic<bool>& verified =
      pack_->verified[static_cast<size_t>(file - pack_->content.files.data())];
  if (verify_ && !verified) {
    const std::string digest = hexadecimal(sha256(bytes));
    if (digest != file->sha256) {
      return pack_error(label_, {"the file ", bracketed(file->name), " has the SHA-256 ", digest,
                                 ", but the pack says ", file->sha256, "."});
    }
    verified = true;
  }
  return MappedFile::share(pack_, bytes, label_of(name), pack_->file.pages());
}

}  // namespace

bool begins_as_pack(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagicStem) == 0;
}

bool is_pack_file(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path file = path_from_utf8(path);
  if (!std::filesystem::is_regular_file(file, ignored)) return false;
  std::ifstream stream(file, std::ios::binary);
  std::array<char, kMagic.size()> magic{};
  stream.read(magic.data(), magic.size());
  return stream.good() && begins_as_pack(std::as_bytes(std::span(magic)));
}

Result<std::span<const std::byte>> pack_bytes(const MappedFile& file, uint64_t offset) {
  const auto all = file.bytes();
  if (offset <= all.size()) return all.subspan(static_cast<size_t>(offset));
  return invalid_argument(message(
      {"[offset] is ", offset, ", but the file [", file.path(), "] has ", all.size(), " bytes."}));
}

Result<PackContent> read_pack(std::span<const std::byte> bytes, const std::string& label) {
  VKF_ASSIGN(const std::string_view text, header_of(bytes, label));
  VKF_ASSIGN(const JsonConfig header, JsonConfig::parse(text, label));
  VKF_ASSIGN(const int64_t size, header.get_int("size"));
  VKF_ASSIGN(const int64_t alignment, header.get_int("alignment"));
  const uint64_t data = kPackHead + text.size();
  if (size < 0 || static_cast<uint64_t>(size) < data ||
      static_cast<uint64_t>(size) > bytes.size()) {
    return pack_error(
        label, {"its header says that it has ", size, " bytes, but there are ", bytes.size(), "."});
  }
  if (alignment < 1 || alignment > kMostAlignment ||
      !std::has_single_bit(static_cast<uint64_t>(alignment))) {
    return pack_error(label, {"its alignment is ", alignment, ", but must be a power of two up to ",
                              kMostAlignment, "."});
  }
  PackContent content;
  // Of the header, which header_of compared with it.
  std::array<std::byte, 32> digest;
  std::copy_n(bytes.begin() + 16, digest.size(), digest.begin());
  content.sha256 = hexadecimal(digest);
  content.size = static_cast<uint64_t>(size);
  const JsonConfig listed = header.object("files");
  VKF_CHECK(listed.status());
  const std::vector<std::string> names = listed.keys();
  if (names.empty() || names.size() > kMostPackedFiles) {
    return pack_error(
        label, {"it has ", names.size(), " files, but 1 to ", kMostPackedFiles, " are allowed."});
  }
  for (const std::string& name : names) {
    const JsonConfig entry = listed.object(name);
    VKF_CHECK(entry.status());
    VKF_ASSIGN(PackedFile file,
               read_packed_file(name, entry, label, data, content.size, alignment));
    content.files.push_back(std::move(file));
  }
  VKF_CHECK(check_apart(content.files, label));
  VKF_ASSIGN(content.adapters, read_adapters(header, label));
  return content;
}

std::shared_ptr<const FileStore> make_pack_store(MappedFile file, uint64_t offset, bool verify) {
  std::string label = file.path();
  return std::make_shared<PackStore>(open_pack(std::move(file), offset), std::move(label), verify,
                                     "");
}

std::shared_ptr<const FileStore> make_pack_store(const std::string& path, uint64_t offset,
                                                 bool verify) {
  auto file = MappedFile::open(path);
  if (file) return make_pack_store(std::move(file).value(), offset, verify);
  return std::make_shared<PackStore>(file.error(), path, verify, "");
}

std::shared_ptr<const FileStore> make_plain_store(const std::string& path) {
  return is_pack_file(path) ? make_pack_store(path, 0, true) : make_directory_store(path);
}

std::vector<std::byte> pack_header(std::vector<PackedFile>& files,
                                   const std::vector<std::span<const std::byte>>& bytes,
                                   const std::vector<std::pair<std::string, double>>& adapters) {
  nlohmann::ordered_json header;
  header["format"] = "vkformer packed model";
  header["alignment"] = kPackAlignment;
  header["size"] = std::numeric_limits<int64_t>::max();  // takes the most digits
  uint64_t at = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    at = aligned(at, kPackAlignment);
    files[i].offset = at;
    files[i].size = bytes[i].size();
    files[i].sha256 = hexadecimal(sha256(bytes[i]));
    header["files"][files[i].name] = {
        {"offset", at}, {"size", files[i].size}, {"sha256", files[i].sha256}};
    at += files[i].size;
  }
  for (const auto& [folder, scale] : adapters) header["adapters"][folder] = {{"scale", scale}};
  const uint64_t data = aligned(kPackHead + header.dump().size(), kPackAlignment);
  header["size"] = data + at;
  std::string text = header.dump();
  text.resize(static_cast<size_t>(data - kPackHead), ' ');
  for (PackedFile& file : files) file.offset += data;
  std::vector<std::byte> made(static_cast<size_t>(data));
  std::memcpy(made.data(), kMagic.data(), kMagic.size());
  for (size_t i = 0; i < 8; ++i) {
    made[8 + i] = static_cast<std::byte>(uint64_t{text.size()} >> (8 * i));
  }
  const auto digest = sha256(std::as_bytes(std::span(text)));
  std::memcpy(made.data() + 16, digest.data(), digest.size());
  std::memcpy(made.data() + kPackHead, text.data(), text.size());
  return made;
}

}  // namespace vkformer
