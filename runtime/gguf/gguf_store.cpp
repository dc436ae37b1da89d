#include "gguf/gguf_store.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "checkpoint/pack_file.h"
#include "checkpoint/sparse_file.h"
#include "gguf/gguf_model.h"
#include "gguf/gguf_tokenizer.h"
#include "tokenizer_files/tokenizer_store.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOnlyName = "model.gguf";
constexpr const char* kPackName = "model.vkfpack";
constexpr const char* kConfig = "config.json";
constexpr const char* kGeneration = "generation_config.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kModules = "modules.json";
constexpr const char* kPooling = "1_Pooling/config.json";
constexpr int64_t kMostParts = 9999;

// "-00001-of-00003.gguf", which ends the name of a part.
std::string part_ending(int64_t part, int64_t count) {
  const auto five = [](int64_t number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "-" + five(part) + "-of-" + five(count) + ".gguf";
}

// Opens one file beside the first.
using PartOpener = std::function<Result<MappedFile>(const std::string& name)>;

Status check_part(const GgufFile& file, int64_t part, int64_t count) {
  VKF_ASSIGN(const int64_t number, file.get_int("split.no"));
  VKF_ASSIGN(const int64_t said, file.get_int("split.count"));
  if (number == part && said == count) return {};
  return invalid_file(message({"File [", file.path(), "] is part ", number + 1, " of ", said,
                               " by its metadata, but part ", part + 1, " of ", count,
                               " by its name; download the model anew."}));
}

// The files of a model whose first one is open. `name`: of the first, for the others' names.
Result<std::vector<GgufFile>> open_parts(MappedFile first, const std::string& name,
                                         const PartOpener& open) {
  std::vector<GgufFile> files;
  VKF_ASSIGN(GgufFile head, GgufFile::parse(std::move(first)));
  files.push_back(std::move(head));
  VKF_ASSIGN(const int64_t count, files.front().get_int_or("split.count", 1));
  if (count == 0 || count == 1) return files;
  if (count < 0 || count > kMostParts) {
    return files.front().key_error(
        "split.count", message({"as ", count, ", but a model has 1 to ", kMostParts, " parts."}));
  }
  const std::string ending = part_ending(1, count);
  if (!name.ends_with(ending)) {
    return invalid_file(
        message({"File [", files.front().path(), "] is one of ", count,
                 " parts of a model; give the first of them, whose name ends with ", ending, "."}));
  }
  const std::string stem = name.substr(0, name.size() - ending.size());
  VKF_CHECK(check_part(files.front(), 0, count));
  size_t tensors = files.front().tensors().size();
  for (int64_t part = 1; part < count; ++part) {
    auto bytes = open(stem + part_ending(part + 1, count));
    if (!bytes) {
      return bytes.error().with_context(
          message({"Part ", part + 1, " of ", count, " of [", files.front().path(), "]"}));
    }
    VKF_ASSIGN(GgufFile file, GgufFile::parse(std::move(bytes).value()));
    VKF_CHECK(check_part(file, part, count));
    tensors += file.tensors().size();
    files.push_back(std::move(file));
  }
  VKF_ASSIGN(const int64_t all,
             files.front().get_int_or("split.tensors.count", static_cast<int64_t>(tensors)));
  if (all == static_cast<int64_t>(tensors)) return files;
  return files.front().key_error(
      "split.tensors.count",
      message({"as ", all, ", but the ", count, " parts hold ", tensors, " tensors."}));
}

// A model's files, and what they say. Stays at its address.
struct GgufContent {
  std::vector<GgufFile> files;
  Result<GgufModel> model = GgufModel{};

  std::vector<const GgufFile*> parts() const {
    std::vector<const GgufFile*> all;
    for (const GgufFile& file : files) all.push_back(&file);
    return all;
  }
};

class GgufStore : public FileStore {
 public:
  // `store`: where the file lies, if that is another store; it may have the weights as GPUs read
  // them.
  GgufStore(Result<std::vector<GgufFile>> parts, std::string label,
            std::shared_ptr<const FileStore> store = nullptr);

  bool has(const std::string& name) const override;
  Result<MappedFile> open(const std::string& name) const override;
  Result<std::vector<std::string>> safetensors_names() const override {
    return std::vector<std::string>();
  }
  Result<std::shared_ptr<const StoredTensors>> tensors() const override;
  const FileStore* host_files() const override {
    return files_ == nullptr ? nullptr : files_->host_files();
  }
  std::string label() const override { return label_; }

 private:
  Result<std::string> text_of(const std::string& name) const;
  bool in_pack(const std::string& name) const {
    return files_ != nullptr && (name == kDeviceWeightsIndex || name == kDeviceWeightsName) &&
           files_->has(name);
  }

  std::string label_;
  std::optional<Error> error_;  // why there is no content
  std::shared_ptr<GgufContent> content_;
  std::shared_ptr<const FileStore> files_;
};

GgufStore::GgufStore(Result<std::vector<GgufFile>> parts, std::string label,
                     std::shared_ptr<const FileStore> store)
    : label_(std::move(label)), files_(std::move(store)) {
  if (!parts) {
    error_ = parts.error();
    return;
  }
  content_ = std::make_shared<GgufContent>();
  content_->files = std::move(parts).value();
  content_->model = read_gguf_model(content_->parts());
}

bool GgufStore::has(const std::string& name) const {
  if (name == kConfig) return true;  // which says what is wrong
  if (content_ == nullptr) return false;
  if (in_pack(name)) return true;
  if (name == kTokenizer || name == kTokenizerConfig) {
    return content_->files.front().has("tokenizer.ggml.model");
  }
  if (!content_->model) return false;
  if (name == kGeneration) return true;
  return ((name == kModules || name == kPooling) && !content_->model->modules.is_null()) ||
         content_->model->dense.count(name) != 0;
}

Result<std::string> GgufStore::text_of(const std::string& name) const {
  if (error_) return *error_;
  const GgufFile& first = content_->files.front();
  if (name == kTokenizer) return gguf_tokenizer_json(first);
  if (name == kTokenizerConfig) return gguf_tokenizer_config(first);
  if (!content_->model) return content_->model.error();
  const GgufModel& model = *content_->model;
  if (name == kConfig) return model.config.dump();
  if (name == kGeneration) return model.generation.dump();
  if (name == kModules && has(name)) return model.modules.dump();
  if (name == kPooling && has(name)) return model.pooling.dump();
  const auto dense = model.dense.find(name);
  if (dense != model.dense.end()) return dense->second.dump();
  return not_found(message({"File [", label_, "] has nothing that ", bracketed(name),
                            " of a model directory could be made of."}));
}

Result<MappedFile> GgufStore::open(const std::string& name) const {
  if (in_pack(name)) return files_->open(name);
  VKF_ASSIGN(const std::string text, text_of(name));
  const auto bytes = std::as_bytes(std::span(text));
  return MappedFile::from_bytes({bytes.begin(), bytes.end()}, label_of(name));
}

Result<std::shared_ptr<const StoredTensors>> GgufStore::tensors() const {
  if (error_) return *error_;
  if (!content_->model) return content_->model.error();
  // Views point into the files, which live as long as what is handed out.
  struct Kept {
    std::shared_ptr<const GgufContent> content;
    std::shared_ptr<const StoredTensors> tensors;
  };
  auto kept = std::make_shared<Kept>();
  kept->content = content_;
  VKF_ASSIGN(kept->tensors, gguf_tensors(content_->parts(), content_->model->naming));
  const StoredTensors* tensors = kept->tensors.get();
  return std::shared_ptr<const StoredTensors>(std::move(kept), tensors);
}

// The store of the only file that stands for a model, where the files have one in the place of a
// configuration.
std::shared_ptr<const FileStore> chosen_store(const std::shared_ptr<const FileStore>& files,
                                              bool packs_too = true) {
  if (packs_too && !files->has(kConfig) && files->has(kPackName)) {
    auto pack = files->open(kPackName);
    if (!pack) return std::make_shared<GgufStore>(pack.error(), files->label_of(kPackName));
    return chosen_store(make_pack_store(std::move(pack).value(), 0, true), false);
  }
  if (files->has(kConfig) || !files->has(kOnlyName)) return with_tokenizer(files);
  auto first = files->open(kOnlyName);
  const std::string label = files->label_of(kOnlyName);
  if (!first) return std::make_shared<GgufStore>(first.error(), label);
  auto opened = open_parts(std::move(first).value(), kOnlyName,
                           [&](const std::string& part) { return files->open(part); });
  return std::make_shared<GgufStore>(std::move(opened), label, files);
}

// A store that looks at its files when it is first asked for something, by the thread that loads.
class LazyStore : public FileStore {
 public:
  using Maker = std::function<std::shared_ptr<const FileStore>()>;
  explicit LazyStore(Maker make) : make_(std::move(make)) {}

  bool has(const std::string& name) const override { return store().has(name); }
  Result<MappedFile> open(const std::string& name) const override { return store().open(name); }
  Result<std::vector<std::string>> safetensors_names() const override {
    return store().safetensors_names();
  }
  Result<std::shared_ptr<const StoredTensors>> tensors() const override {
    return store().tensors();
  }
  std::vector<StoredAdapter> adapters() const override { return store().adapters(); }
  const FileStore* host_files() const override { return store().host_files(); }
  std::string label() const override { return store().label(); }

 private:
  const FileStore& store() const {
    std::call_once(made_once_, [this] { made_ = make_(); });
    return *made_;
  }

  Maker make_;
  mutable std::once_flag made_once_;
  mutable std::shared_ptr<const FileStore> made_;
};

}  // namespace

bool is_gguf_file(const std::string& path) {
  std::error_code ignored;
  const fs::path file = path_from_utf8(path);
  if (!fs::is_regular_file(file, ignored)) return false;
  if (file.extension() == ".gguf") return true;
  std::ifstream stream(file, std::ios::binary);
  std::array<char, 4> magic{};
  stream.read(magic.data(), magic.size());
  return stream.good() && GgufFile::begins(std::as_bytes(std::span(magic)));
}

Result<std::vector<GgufFile>> open_gguf_parts(const std::string& path) {
  const fs::path file = path_from_utf8(path);
  const std::u8string parent = file.parent_path().u8string(), name = file.filename().u8string();
  const auto beside =
      make_directory_store(parent.empty() ? "." : std::string(parent.begin(), parent.end()));
  VKF_ASSIGN(MappedFile first, MappedFile::open(path));
  return open_parts(std::move(first), std::string(name.begin(), name.end()),
                    [&](const std::string& part) { return beside->open(part); });
}

std::shared_ptr<const FileStore> make_model_store(const std::string& path) {
  if (is_pack_file(path)) {
    return std::make_shared<LazyStore>(
        [path] { return chosen_store(make_pack_store(path, 0, true), false); });
  }
  if (!is_gguf_file(path)) return with_gguf(make_directory_store(path));
  return std::make_shared<LazyStore>(
      [path] { return std::make_shared<GgufStore>(open_gguf_parts(path), path); });
}

std::shared_ptr<const FileStore> with_gguf(std::shared_ptr<const FileStore> files) {
  return std::make_shared<LazyStore>([files = std::move(files)] { return chosen_store(files); });
}

std::vector<std::string> gguf_file_names() {
  return {kConfig,  kGeneration,           kTokenizer,           kTokenizerConfig, kModules,
          kPooling, "2_Dense/config.json", "3_Dense/config.json"};
}

}  // namespace vkformer
