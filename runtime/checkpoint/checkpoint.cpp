#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <set>
#include <system_error>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/coded_tensors.h"
#include "checkpoint/json_config.h"
#include "checkpoint/message_text.h"

namespace vkformer {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";

std::string utf8_from_path(const fs::path& path) {
  const std::u8string text = path.u8string();
  return std::string(text.begin(), text.end());
}

// A shard's name comes from the model's author and must stay inside the model's directory.
Status check_shard_name(const std::string& name, const std::string& index_path) {
  const bool escapes = name.empty() || name == "." || name.find("..") != std::string::npos ||
                       name.find_first_of("/\\:") != std::string::npos ||
                       name.find('\0') != std::string::npos;
  if (!escapes) return {};
  return invalid_file(message({"File [", index_path, "] names the shard ", bracketed(name),
                               ", which is not a plain file name of the model's directory."}));
}

// The one *.safetensors file of a store that has neither of the usual names.
Result<std::string> only_file(const FileStore& files) {
  VKF_ASSIGN(const std::vector<std::string> found, files.safetensors_names());
  if (found.size() == 1) return found[0];
  const std::string wanted = std::string("[") + kSingleName + "] or [" + kIndexName + "]";
  if (found.empty()) {
    return not_found(
        message({"Directory [", files.label(), "] has neither ", wanted,
                 " nor another *.safetensors file; convert the model's weights to safetensors."}));
  }
  return not_found(message({"Directory [", files.label(), "] has ", found.size(),
                            " *.safetensors files but neither ", wanted,
                            "; give the path of the one to open."}));
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& model_dir) {
  try {
    return open_unguarded(model_dir);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory,
                 "The checkpoint [" + model_dir + "] has an index that does not fit into memory."};
  }
}

Result<Checkpoint> Checkpoint::open_store(const FileStore& files) {
  try {
    Checkpoint checkpoint;
    VKF_CHECK(checkpoint.add_store(files));
    return checkpoint;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "The checkpoint [" + files.label() +
                                              "] has an index that does not fit into memory."};
  }
}

Result<Checkpoint> Checkpoint::open_unguarded(const std::string& model_dir) {
  Checkpoint checkpoint;
  std::error_code code;
  const fs::path given = path_from_utf8(model_dir);
  const fs::file_status status = fs::status(given, code);
  if (code && status.type() != fs::file_type::not_found) {
    return file_error(model_dir, "cannot be examined", code.default_error_condition().value());
  }
  if (!fs::exists(status)) {
    return not_found(
        message({"The checkpoint [", model_dir,
                 "] does not exist; give a model's directory or a *.safetensors file."}));
  }
  if (!fs::is_directory(status)) {
    const fs::path parent = given.parent_path();
    checkpoint.directory_ = parent.empty() ? "." : utf8_from_path(parent);
    VKF_CHECK(checkpoint.add_file(MappedFile::open(model_dir)));
    VKF_CHECK(checkpoint.join_quantized());
    return checkpoint;
  }
  VKF_CHECK(checkpoint.add_store(*make_directory_store(model_dir)));
  return checkpoint;
}

Status Checkpoint::add_store(const FileStore& files) {
  directory_ = files.label();
  VKF_ASSIGN(stored_, files.tensors());
  if (stored_ != nullptr) {
    for (const auto& [name, entry] : stored_->tensors) {
      entries_.emplace(name, Entry{&entry.tensor.view, entry.file, true});
    }
    return {};
  }
  if (files.has(kSingleName)) {
    VKF_CHECK(add_file(files.open(kSingleName)));
  } else if (files.has(kIndexName)) {
    VKF_CHECK(add_shards(files));
  } else {
    VKF_ASSIGN(const std::string only, only_file(files));
    VKF_CHECK(add_file(files.open(only)));
  }
  // A configuration that is not JSON is the family's to refuse.
  QuantizationMethod method;
  if (files.has("config.json")) {
    if (const auto config = JsonConfig::load_from(files, "config.json")) {
      VKF_ASSIGN(method, read_quantization(*config));
    }
  }
  VKF_CHECK(join_quantized());
  return join_coded_tensors(method);
}

bool Checkpoint::has_values(const std::string& name) const {
  const Entry& entry = entries_.at(name);
  if (entry.stored) return stored_->tensors.at(name).has_values;
  return files_[entry.file].stores(*entry.view);
}

Status Checkpoint::join_quantized() {
  for (const std::string& name : names()) {
    const TensorView* values = find(name);
    const TensorView* scales = find(scales_name(name));
    if (values == nullptr || scales == nullptr) continue;
    if (values->dtype != DType::kI8 && values->dtype != DType::kU8) continue;
    auto joined = join_blocks(name, *values, *scales, find(minima_name(name)));
    if (!joined) return joined.error().with_context(message({"File [", file_of(name), "]"}));
    take_quantized(name, std::move(joined).value(), entries_[name].file);
    entries_.erase(scales_name(name));
    entries_.erase(minima_name(name));
  }
  return join_mxfp4_tensors();
}

Status Checkpoint::join_mxfp4_tensors() {
  const std::string ending = mxfp4_blocks_name("");
  for (const std::string& blocks : names()) {
    if (!blocks.ends_with(ending)) continue;
    const std::string name = blocks.substr(0, blocks.size() - ending.size());
    const TensorView* scales = find(mxfp4_scales_name(name));
    if (scales == nullptr || find(name) != nullptr) continue;
    auto joined = join_mxfp4(name, *find(blocks), *scales);
    if (!joined) return joined.error().with_context(message({"File [", file_of(blocks), "]"}));
    take_quantized(name, std::move(joined).value(), entries_[blocks].file);
    entries_.erase(blocks);
    entries_.erase(mxfp4_scales_name(name));
  }
  return {};
}

void Checkpoint::take_quantized(const std::string& name, QuantizedTensor tensor, size_t file) {
  QuantizedTensor& kept = quantized_[name];
  kept = std::move(tensor);
  kept.view.blocks = &kept.blocks;
  entries_[name] = {&kept.view, file, false};
}

Status Checkpoint::join_coded_tensors(const QuantizationMethod& method) {
  auto found =
      find_coded_tensors(method, names(), [this](const std::string& name) { return find(name); });
  if (!found) return found.error().with_context(message({"Directory [", directory_, "]"}));
  for (const std::string& name : found->dropped) entries_.erase(name);
  for (const std::string& name : names()) {
    const TensorView& view = *find(name);
    if (view.float8 != Float8::kE4m3 && view.float8 != Float8::kE5m2) continue;
    const auto is_part = [&](const CodedTensor& tensor) {
      return std::find(tensor.parts.begin(), tensor.parts.end(), name) != tensor.parts.end();
    };
    if (std::any_of(found->tensors.begin(), found->tensors.end(), is_part)) continue;
    found->tensors.push_back(plain_float8(name, view));
  }
  for (CodedTensor& tensor : found->tensors) {
    const TensorView* codes = find(tensor.from);
    if (codes == nullptr) {
      return invalid_file(
          message({"Directory [", directory_, "] has ", bracketed(tensor.from), " as the codes of ",
                   bracketed(tensor.name), ", but another tensor is made of it or drops it."}));
    }
    const size_t file = entries_[tensor.from].file;
    QuantizedTensor joined =
        tensor.matrix == nullptr
            ? mxfp4_of_shape(std::move(tensor.shape), *codes, *tensor.mxfp4_scales)
            : join_coded(std::move(tensor.matrix), std::move(tensor.shape), *codes);
    for (const std::string& part : tensor.parts) entries_.erase(part);
    take_quantized(tensor.name, std::move(joined), file);
  }
  return {};
}

Status Checkpoint::add_module(const FileStore& files, const std::string& folder) {
  const std::string name = folder + "/" + kSingleName;
  VKF_CHECK(check_inner_name(name, files.label()));
  if (!files.has(name)) {
    return not_found(message({"[", name, "] is missing in ", files.label(),
                              "; the module's weights must be there as safetensors."}));
  }
  return add_file(files.open(name), folder + "/");
}

Status Checkpoint::add_file(Result<MappedFile> opened, const std::string& prefix) {
  if (!opened) return opened.error();
  VKF_ASSIGN(SafetensorsFile file, SafetensorsFile::parse(std::move(opened).value()));
  files_.push_back(std::move(file));
  for (const auto& [name, view] : files_.back().tensors()) {
    entries_.emplace(prefix + name, Entry{&view, files_.size() - 1, false});
  }
  return {};
}

Status Checkpoint::add_shards(const FileStore& files) {
  const std::string index_path = files.label_of(kIndexName);
  VKF_ASSIGN(const JsonConfig index, JsonConfig::load_from(files, kIndexName));
  if (!index.has("weight_map")) {
    return invalid_file(
        message({"File [", index_path, "] has no [weight_map]; it lists no shards."}));
  }
  const JsonConfig weight_map = index.object("weight_map");
  VKF_CHECK(weight_map.status());
  std::map<std::string, size_t> shards;  // name -> position in files_
  for (const std::string& name : weight_map.keys()) {
    VKF_ASSIGN(const std::string shard, weight_map.get_string(name));
    const auto [position, is_new] = shards.try_emplace(shard, files_.size());
    if (is_new) {
      VKF_CHECK(check_shard_name(shard, index_path));
      const std::string context = "Shard " + bracketed(shard) + " of [" + index_path + "]";
      auto bytes = files.open(shard);
      if (!bytes) return bytes.error().with_context(context);
      auto file = SafetensorsFile::parse(std::move(bytes).value());
      if (!file) return file.error().with_context(context);
      files_.push_back(std::move(file).value());
    }
    const TensorView* view = files_[position->second].find(name);
    if (view == nullptr) {
      return invalid_file(
          message({"File [", index_path, "] places tensor ", bracketed(name), " in the shard ",
                   bracketed(shard), ", which does not hold it; download the model anew."}));
    }
    // Views keep their address when files_ grows: moving a map moves no element.
    entries_.emplace(name, Entry{view, position->second, false});
  }
  return {};
}

void Checkpoint::put_merged(const std::string& name, QuantizedTensor tensor) {
  Merged& merged = merged_[name];
  Entry& entry = entries_.at(name);
  if (merged.before == nullptr) merged.before = entry.view;
  merged.tensor = std::move(tensor);
  const bool coded = merged.tensor.blocks.coded != nullptr;
  merged.tensor.view.blocks = coded ? &merged.tensor.blocks : nullptr;
  entry.view = &merged.tensor.view;
}

const TensorView& Checkpoint::unmerged(const std::string& name) const {
  const auto found = merged_.find(name);
  return found != merged_.end() ? *found->second.before : *entries_.at(name).view;
}

const TensorView* Checkpoint::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.view;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> result;
  result.reserve(entries_.size());
  for (const auto& item : entries_) result.push_back(item.first);
  return result;
}

std::string Checkpoint::file_of(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return {};
  const Entry& entry = found->second;
  return entry.stored ? stored_->files[entry.file] : files_[entry.file].path();
}

}  // namespace vkformer
