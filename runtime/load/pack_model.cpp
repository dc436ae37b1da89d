#include "load/pack_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/message.h"
#include "base/work_sharing.h"
#include "checkpoint/gguf.h"
#include "checkpoint/message_text.h"
#include "checkpoint/pack_file.h"
#include "checkpoint/replace_file.h"
#include "checkpoint/sparse_file.h"
#include "gguf/gguf_adapter.h"
#include "gguf/gguf_model.h"
#include "gguf/gguf_store.h"
#include "load/loaded_model.h"
#include "load/quantize_model.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackedGguf = "model.gguf";

// What goes into a pack, open.
struct PackContents {
  std::vector<PackedFile> files;
  std::vector<MappedFile> opened;
  std::vector<std::pair<std::string, double>> adapters;

  Status add(const FileStore& store, const std::string& name, const std::string& packed_name) {
    VKF_ASSIGN(MappedFile file, store.open(name));
    opened.push_back(std::move(file));
    files.push_back({.name = packed_name});
    return {};
  }
};

// Files at the top that some part of loading reads.
bool is_model_file(const std::string& name) {
  for (const char* ending : {".json", ".jinja", ".model", ".tiktoken", ".safetensors"}) {
    if (name.ends_with(ending)) return true;
  }
  return name.ends_with(".txt") && (name.starts_with("vocab") || name.starts_with("merges"));
}

// Folders of modules that modules.json names, such as 1_Pooling.
bool is_module_folder(const std::string& name) {
  const size_t digits = name.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string::npos && name[digits] == '_';
}

std::string utf8_name(const fs::path& path) {
  const std::u8string text = path.filename().u8string();
  return {text.begin(), text.end()};
}

// Names of a directory's files and folders, sorted.
Result<std::vector<std::string>> names_in(const std::string& directory, bool folders) {
  std::error_code code;
  std::vector<std::string> names;
  fs::directory_iterator items(path_from_utf8(directory), code);
  for (; !code && items != fs::directory_iterator(); items.increment(code)) {
    std::error_code ignored;
    const bool is_folder = items->is_directory(ignored);
    if (is_folder == folders) names.push_back(utf8_name(items->path()));
  }
  if (code) {
    return file_error(directory, "cannot be listed", code.default_error_condition().value());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status add_directory(const std::string& directory, PackContents& contents) {
  const auto store = make_directory_store(directory);
  VKF_ASSIGN(const std::vector<std::string> names, names_in(directory, false));
  for (const std::string& name : names) {
    if (is_model_file(name)) VKF_CHECK(contents.add(*store, name, name));
  }
  VKF_ASSIGN(const std::vector<std::string> folders, names_in(directory, true));
  for (const std::string& folder : folders) {
    if (!is_module_folder(folder)) continue;
    for (const char* name : {"/config.json", "/model.safetensors"}) {
      if (store->has(folder + name)) VKF_CHECK(contents.add(*store, folder + name, folder + name));
    }
  }
  return {};
}

Status add_adapters(const std::string& model, const std::vector<AdapterChoice>& choices,
                    PackContents& contents) {
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto files = make_model_store(model);
    const auto store = make_adapter_store(*files, choices[i].directory);
    VKF_CHECK(open_adapter_for(*files, *store));
    const std::string folder = "adapters/" + std::to_string(i);
    for (const char* name : {kGgufAdapterName, kAdapterConfigName, kAdapterWeightsName}) {
      if (store->has(name)) VKF_CHECK(contents.add(*store, name, folder + "/" + name));
    }
    contents.adapters.emplace_back(folder, double{choices[i].scale});
  }
  return {};
}

Status write_pack(PackContents& contents, const std::string& target) {
  std::vector<std::span<const std::byte>> bytes;
  for (const MappedFile& file : contents.opened) bytes.push_back(file.bytes());
  const std::vector<std::byte> head = pack_header(contents.files, bytes, contents.adapters);
  const std::vector<std::byte> zeros(kPackAlignment);
  std::vector<std::span<const std::byte>> pieces = {head};
  uint64_t at = head.size();
  for (size_t i = 0; i < bytes.size(); ++i) {
    pieces.push_back(std::span(zeros).first(static_cast<size_t>(contents.files[i].offset - at)));
    pieces.push_back(bytes[i]);
    at = contents.files[i].offset + bytes[i].size();
  }
  return replace_file(target, pieces);
}

constexpr size_t kSmallTensor = 4096;  // bytes

// Of a file the header, which ends where the first tensor begins, and some tensors.
SparseFile with_header(const MappedFile& whole, size_t header, std::vector<ByteRange> tensors) {
  tensors.push_back({0, header});
  std::sort(tensors.begin(), tensors.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  return make_sparse(whole.bytes(), tensors);
}

ByteRange range_in(const MappedFile& whole, std::span<const std::byte> bytes) {
  const auto at = static_cast<size_t>(bytes.data() - whole.bytes().data());
  return {at, at + bytes.size()};
}

// Of a safetensors file the header, the tensors that loading reads, and the small ones.
Result<SparseFile> without_weights(const MappedFile& whole, const std::set<std::string>& reads) {
  VKF_ASSIGN(const SafetensorsFile file,
             SafetensorsFile::parse(MappedFile::borrow(whole.bytes(), whole.path())));
  size_t header = whole.bytes().size();
  std::vector<ByteRange> stored;
  for (const auto& [name, view] : file.tensors()) {
    const ByteRange range = range_in(whole, view.bytes);
    header = std::min(header, range.begin);
    if (reads.contains(name) || view.bytes.size() <= kSmallTensor) stored.push_back(range);
  }
  return with_header(whole, header, std::move(stored));
}

// The same of a GGUF file, which has the tensors under other names.
Result<SparseFile> without_gguf_weights(const MappedFile& whole,
                                        const std::set<std::string>& reads) {
  VKF_ASSIGN(const GgufFile file, GgufFile::parse(MappedFile::borrow(whole.bytes(), whole.path())));
  VKF_ASSIGN(const GgufModel model, read_gguf_model({&file}));
  std::set<std::string> read_here;
  for (const std::string& name : reads) {
    if (const auto place = gguf_place(model.naming, name)) read_here.insert(place->name);
  }
  size_t header = whole.bytes().size();
  std::vector<ByteRange> stored;
  for (const auto& [name, tensor] : file.tensors()) {
    const ByteRange range = range_in(whole, tensor.bytes);
    header = std::min(header, range.begin);
    if (read_here.contains(name) || gguf_ignores(model.naming, name) ||
        tensor.bytes.size() <= kSmallTensor) {
      stored.push_back(range);
    }
  }
  return with_header(whole, header, std::move(stored));
}

// Options with which every device has the same slices.
Result<ModelWeights> weights_of_any_device(const FileStore& files) {
  DeviceCaps caps;
  caps.limits.max_storage_range = kDeviceWeightsSlice;
  return read_model_weights(caps, files, {});
}

// Puts the weights as GPUs read them in the place of the tensors that they are made of.
Status add_device_weights(const std::string& model, PackContents& contents) {
  VKF_ASSIGN(const ModelWeights read, weights_of_any_device(*make_model_store(model)));
  CoreThreads threads;
  std::set<std::string> reads = *read.reads;
  for (const std::string& name : *read.reads) {
    reads.insert({scales_name(name), minima_name(name)});
  }
  PackContents made;
  const auto add = [&](const std::string& name, std::vector<std::byte> bytes) {
    made.opened.push_back(MappedFile::from_bytes(std::move(bytes), name));
    made.files.push_back({.name = name});
  };
  const auto add_text = [&](const std::string& name, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    add(name, {bytes.begin(), bytes.end()});
  };
  for (size_t i = 0; i < contents.files.size(); ++i) {
    const std::string& name = contents.files[i].name;
    const bool gguf = name == kPackedGguf;
    if (!gguf && (!name.ends_with(".safetensors") || name.find('/') != std::string::npos)) {
      made.opened.push_back(std::move(contents.opened[i]));
      made.files.push_back(contents.files[i]);
      continue;
    }
    VKF_ASSIGN(SparseFile sparse, gguf ? without_gguf_weights(contents.opened[i], reads)
                                       : without_weights(contents.opened[i], reads));
    add_text(name + kRangesEnding, sparse.ranges);
    add(name + kStoredEnding, std::move(sparse.stored));
  }
  add_text(kDeviceWeightsIndex, device_weights_index(read.weights));
  VKF_ASSIGN(std::vector<std::byte> bytes,
             make_device_weights(read.weights, *read.checkpoint, threads.helpers()));
  add(kDeviceWeightsName, std::move(bytes));
  contents = std::move(made);
  return {};
}

// A folder that goes away with it.
struct TemporaryFolder {
  explicit TemporaryFolder(std::string named) : path(std::move(named)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_from_utf8(path), ignored);
  }
  const std::string path;
};

Result<PackInfo> pack_quantized(const std::string& model, const std::string& target,
                                const PackOptions& options) {
  const std::string path = target + ".files";
  std::error_code ignored;
  if (fs::exists(path_from_utf8(path), ignored)) {
    return invalid_argument(message({"[", path,
                                     "] is there already, but the quantized model is written there "
                                     "first. Remove it, or choose another target."}));
  }
  const TemporaryFolder folder(path);
  QuantizeOptions settings;
  settings.weights = *options.weights;
  settings.adapters = options.adapters;
  VKF_CHECK(quantize_directory(model, folder.path, settings));
  PackOptions packing;
  packing.device_layout = options.device_layout;
  return pack_directory(folder.path, target, packing);
}

}  // namespace

Result<PackInfo> pack_directory(const std::string& model, const std::string& target,
                                const PackOptions& options) {
  if (is_pack_file(model)) {
    return invalid_argument(message({"[", model,
                                     "] is a packed model already; give the directory that it was "
                                     "made of."}));
  }
  if (options.weights) return pack_quantized(model, target, options);
  if (options.device_layout && !options.adapters.empty()) {
    return unsupported(
        message({"[device_layout] The weights of ", model,
                 " and its adapters are packed for devices only as a format of weights, into which "
                 "adapters are merged; give one (PackOptions::weights, --weights)."}));
  }
  VKF_ASSIGN(const ModelInfo info, read_model_info(model));
  PackContents contents;
  if (!is_gguf_file(model)) {
    VKF_CHECK(add_directory(model, contents));
    VKF_CHECK(add_adapters(model, options.adapters, contents));
    if (options.device_layout) VKF_CHECK(add_device_weights(model, contents));
  } else if (model.find("-of-") != std::string::npos || !options.adapters.empty()) {
    return unsupported(message({"[", model,
                                "] A GGUF file is packed as it is only if it has one part and no "
                                "adapter; give a format of weights to pack what quantizing makes "
                                "of it."}));
  } else {
    VKF_ASSIGN(MappedFile file, MappedFile::open(model));
    contents.opened.push_back(std::move(file));
    contents.files.push_back({.name = kPackedGguf});
    if (options.device_layout) VKF_CHECK(add_device_weights(model, contents));
  }
  VKF_CHECK(write_pack(contents, target));
  if (options.device_layout) {
    // Loading reads no more than what is there.
    VKF_CHECK(weights_of_any_device(*with_gguf(make_pack_store(target, 0, false))));
  }
  return pack_info(target, {.offset = 0, .verify = false});
}

Result<PackInfo> pack_info(const std::string& path, const PackLocation& location) {
  VKF_ASSIGN(MappedFile file, MappedFile::open(path));
  VKF_ASSIGN(const auto bytes, pack_bytes(file, location.offset));
  VKF_ASSIGN(PackContent content, read_pack(bytes, path));
  PackInfo info{.sha256 = content.sha256, .size = content.size};
  for (const auto& [folder, scale] : content.adapters) {
    info.adapters.push_back({folder, static_cast<float>(scale)});
  }
  for (const PackedFile& packed : content.files) {
    info.files.push_back({packed.name, packed.offset, packed.size, packed.sha256});
  }
  if (!location.verify) return info;
  const auto store = make_pack_store(std::move(file), location.offset, true);
  for (const PackedFile& packed : content.files) VKF_CHECK(store->open(packed.name));
  return info;
}

}  // namespace vkformer
