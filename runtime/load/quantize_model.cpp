#include "load/quantize_model.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/pack_file.h"
#include "checkpoint/quantization_method.h"
#include "checkpoint/replace_file.h"
#include "checkpoint/safetensors.h"
#include "gguf/gguf_store.h"
#include "load/loaded_model.h"
#include "model/model.h"
#include "weights/device_weights.h"
#include "weights/quantize_tensors.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

Error folder_error(const std::string& target, const std::string& what,
                   const std::error_code& code) {
  return invalid_argument(
      message({"[", target, "] ", what, ": ", code.message(), "; choose another directory."}));
}

// Weights at the top are written anew, in one file; those of modules in folders stay theirs.
bool is_weights(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

Status copy_files(const fs::path& from, const fs::path& to, const std::string& target) {
  std::error_code code;
  for (fs::directory_iterator file(from, code), end; !code && file != end; file.increment(code)) {
    if (is_weights(file->path())) continue;
    fs::copy(file->path(), to / file->path().filename(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing, code);
    if (code) break;
  }
  if (code) return folder_error(target, "does not take a copy of the model's files", code);
  return {};
}

// What a GGUF file says in its metadata, as the files of a directory.
Status write_files(const FileStore& files, const fs::path& to, const std::string& target) {
  for (const std::string& name : gguf_file_names()) {
    if (!files.has(name)) continue;
    VKF_ASSIGN(const MappedFile file, files.open(name));
    std::error_code code;
    fs::create_directories((to / name).parent_path(), code);
    if (code) return folder_error(target, "does not take a folder for " + name, code);
    VKF_CHECK(replace_file(target + "/" + name, {file.bytes()}));
  }
  return {};
}

// config.json without how the model's weights were quantized, which the copy's are not.
Status write_plain_config(const FileStore& files, const std::string& target) {
  VKF_ASSIGN(const MappedFile file, files.open(config_name(files)));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(text, nullptr, false);
  bool changed = false;
  for (const std::string& key : quantization_keys()) {
    changed = (config.is_object() && config.erase(key) > 0) || changed;
  }
  if (!changed) return {};
  const std::string plain =
      config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return replace_file(target + "/" + config_name(files), {std::as_bytes(std::span(plain))});
}

// The target may not be the model or lie inside it: the copy of its files would have no end.
Status make_target(const fs::path& from, const fs::path& to, const std::string& target) {
  std::error_code code;
  fs::create_directories(to, code);
  if (code) return folder_error(target, "cannot be made", code);
  const fs::path inner = fs::canonical(to, code);
  if (code) return folder_error(target, "cannot be found", code);
  for (fs::path outer = inner; !code; outer = outer.parent_path()) {
    if (fs::equivalent(from, outer, code)) {
      return invalid_argument(message({"[", target,
                                       "] is the model's directory or lies inside it; choose "
                                       "another directory for the result."}));
    }
    if (outer == outer.parent_path()) break;
  }
  if (code) return folder_error(target, "cannot be compared with the model's directory", code);
  return {};
}

}  // namespace

QuantizeReport count_stored(const Checkpoint& checkpoint) {
  QuantizeReport report;
  for (const std::string& name : checkpoint.names()) {
    const TensorView& view = *checkpoint.find(name);
    ++report.tensors;
    if (view.blocks != nullptr && view.blocks->coded != nullptr) {
      report.bytes_before += view.blocks->coded->bytes();
      continue;
    }
    report.bytes_before += view.bytes.size();
    if (view.blocks != nullptr) {
      report.bytes_before += view.blocks->scales.size() + view.blocks->minima.size();
    }
  }
  return report;
}

Result<QuantizeReport> quantize_directory(const std::string& model, const std::string& target,
                                          const QuantizeOptions& options) {
  const auto format = matrix_format_of(options.weights);
  if (!format || *format == MatrixFormat::kF32) {
    return invalid_argument(
        message({"[weights] is '", choice_name(options.weights),
                 "', to which nothing is quantized. Use q8, q4, q4m, bf16 or f16."}));
  }
  if (is_gguf_format(*format)) {
    return unsupported(message({"[weights] is '", choice_name(options.weights),
                                "', which safetensors files cannot hold; a model can be loaded in "
                                "it. Use q8, q4, q4m, bf16 or f16."}));
  }
  if (is_pack_file(model)) {
    return invalid_argument(
        message({"[", model,
                 "] is a packed model, whose weights stay as they are; give the "
                 "directory that it was made of, or pack it anew with a "
                 "format of weights."}));
  }
  const auto files = make_model_store(model);
  VKF_ASSIGN(const std::unique_ptr<ModelFamily> family, load_family(*files));
  VKF_CHECK(check_stores_values(*files, "[quantize]"));
  VKF_ASSIGN(Checkpoint checkpoint, Checkpoint::open_store(*files));
  VKF_CHECK(family->prepare(checkpoint));
  VKF_ASSIGN(const WeightTable table, family->weight_table(checkpoint));
  VKF_ASSIGN(const std::vector<ScaledAdapter> adapters, open_adapters(*files, options.adapters));
  VKF_CHECK(merge_adapters(table, adapters, checkpoint));
  VKF_CHECK(resolve_weights(table, checkpoint, WeightFormat::kAsStored));
  const fs::path from = path_from_utf8(model), to = path_from_utf8(target);
  VKF_CHECK(make_target(from, to, target));
  VKF_ASSIGN(const QuantizedCheckpoint made, quantize_checkpoint(table, checkpoint, *format));
  VKF_CHECK(is_gguf_file(model) ? write_files(*files, to, target) : copy_files(from, to, target));
  if (!is_gguf_file(model)) VKF_CHECK(write_plain_config(*files, target));
  VKF_CHECK(write_safetensors(target + "/model.safetensors", made.tensors));
  QuantizeReport report = count_stored(checkpoint);
  report.matrices = made.matrices;
  report.bytes_after = made.bytes;
  return report;
}

}  // namespace vkformer
