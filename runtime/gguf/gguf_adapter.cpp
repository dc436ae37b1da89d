#include "gguf/gguf_adapter.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/json_config.h"
#include "checkpoint/message_text.h"
#include "gguf/gguf_model.h"
#include "gguf/gguf_store.h"

namespace vkformer {
namespace {

constexpr std::string_view kWeightEnding = ".weight";

// A file, and what was made of its tensors.
struct AdapterSource {
  explicit AdapterSource(GgufFile opened) : file(std::move(opened)) {}

  GgufFile file;
  std::shared_ptr<const StoredTensors> tensors;
  std::vector<std::vector<float>> transposed;
};

// An adapter's file under the name that a store has for it.
class AdapterFileStore : public FileStore {
 public:
  explicit AdapterFileStore(std::string path) : path_(std::move(path)) {}

  bool has(const std::string& name) const override { return name == kGgufAdapterName; }
  Result<MappedFile> open(const std::string& name) const override {
    if (has(name)) return MappedFile::open(path_);
    return not_found(message({"File [", path_, "] is an adapter and has no ", bracketed(name)}));
  }
  Result<std::vector<std::string>> safetensors_names() const override {
    return std::vector<std::string>();
  }
  std::string label() const override { return path_; }

 private:
  std::string path_;
};

// An adapter among the files that the host hands out: a folder there, or a GGUF file.
class InnerAdapterStore : public FileStore {
 public:
  InnerAdapterStore(const FileStore& outer, std::string path)
      : outer_(outer), path_(std::move(path)) {}

  bool has(const std::string& name) const override {
    return outer_.has(path_) ? name == kGgufAdapterName : outer_.has(inside(name));
  }
  Result<MappedFile> open(const std::string& name) const override {
    return outer_.open(outer_.has(path_) && name == kGgufAdapterName ? path_ : inside(name));
  }
  Result<std::vector<std::string>> safetensors_names() const override {
    return std::vector<std::string>();
  }
  std::string label() const override { return outer_.label_of(path_); }

 private:
  std::string inside(const std::string& name) const { return path_ + "/" + name; }

  const FileStore& outer_;
  std::string path_;
};

// The number that alpha over the rank of each matrix begins with; 0: no alpha, and no division.
Result<double> read_alpha(const GgufFile& file) {
  VKF_ASSIGN(const std::string kind, file.get_string_or("general.type", "model"));
  if (kind != "adapter") {
    return file.key_error("general.type",
                          "as " + bracketed(kind) + ", but an adapter's is [adapter].");
  }
  VKF_ASSIGN(const std::string type, file.get_string("adapter.type"));
  if (type != "lora") {
    return unsupported(message({"File [", file.path(), "] has [adapter.type] as ", bracketed(type),
                                ", but only [lora] is supported."}));
  }
  constexpr const char* kInvocation = "adapter.alora.invocation_tokens";
  if (file.has(kInvocation)) {
    return unsupported(message({"File [", file.path(), "] has [", kInvocation,
                                "], but adapters that begin at a token are not supported."}));
  }
  constexpr const char* kAlpha = "adapter.lora.alpha";
  VKF_ASSIGN(const double alpha, file.get_double_or(kAlpha, 0.0));
  if (std::isfinite(alpha)) return alpha;
  return file.key_error(kAlpha, message({"as ", alpha, ", but it must be a finite number."}));
}

// A of an embedding lies in the file as (tokens, r), B as that of other matrices.
Status transpose_down(AdapterSource& source, TensorView& view) {
  if (view.shape.size() != 2) return {};  // which the module's check refuses
  const auto rows = static_cast<size_t>(view.shape[0]), rank = static_cast<size_t>(view.shape[1]);
  const GgufTensor& tensor = source.file.tensors().find("token_embd.weight.lora_a")->second;
  std::vector<float> values(rows * rank), turned(rows * rank);
  decode_ggml(tensor.type, tensor.bytes, 0, values);
  for (size_t i = 0; i < values.size(); ++i) turned[i % rank * rows + i / rank] = values[i];
  source.transposed.push_back(std::move(turned));
  view = {.dtype = DType::kF32,
          .shape = {view.shape[1], view.shape[0]},
          .bytes = std::as_bytes(std::span(source.transposed.back()))};
  return {};
}

class AdapterReader {
 public:
  AdapterReader(AdapterSource& source, double alpha, std::string embedding, AdapterFiles& out)
      : source_(source), alpha_(alpha), embedding_(std::move(embedding)), out_(out) {}

  Status add_all();

 private:
  const TensorView* find(const std::string& name) const {
    const auto found = source_.tensors->tensors.find(name);
    return found == source_.tensors->tensors.end() ? nullptr : &found->second.tensor.view;
  }
  Status add_module(const std::string& name, const TensorView& down);
  Status add_replaced(const std::string& name, const TensorView& view);
  Error lacks(const std::string& name, const char* matrix) const {
    return invalid_file(message({bracketed(name), " in ", out_.label, " lacks its matrix ", matrix,
                                 "; the file is not whole."}));
  }

  AdapterSource& source_;
  double alpha_;
  std::string embedding_;  // the model's name of the tokens' embeddings
  AdapterFiles& out_;
};

Status AdapterReader::add_module(const std::string& name, const TensorView& down) {
  const TensorView* up = find(name + kGgufUp);
  if (up == nullptr) return lacks(name, "B");
  if (!name.ends_with(kWeightEnding)) {
    return invalid_file(message({bracketed(name), " in ", out_.label,
                                 " is not a matrix of weights, but adapters change those alone."}));
  }
  AdapterModule module{.module = name.substr(0, name.size() - kWeightEnding.size()),
                       .down = down,
                       .up = *up,
                       .embedding = name == embedding_};
  if (module.embedding) VKF_CHECK(transpose_down(source_, module.down));
  VKF_CHECK(check_adapter_module(module, out_.label));
  if (alpha_ != 0) module.scale = alpha_ / static_cast<double>(module.down.shape[0]);
  out_.modules.push_back(std::move(module));
  return {};
}

// A tensor that is no part of a module stands in the place of the model's: the gain of a norm.
Status AdapterReader::add_replaced(const std::string& name, const TensorView& view) {
  if (view.shape.size() != 1 || view.blocks != nullptr) {
    return unsupported(message(
        {bracketed(name), " of shape ", shape_text(view.shape), " in ", out_.label,
         " is neither A nor B of a matrix nor a vector of floats, which adapters may have."}));
  }
  out_.replaced.push_back({name, view});
  return {};
}

Status AdapterReader::add_all() {
  for (const auto& [name, entry] : source_.tensors->tensors) {
    const size_t dot = name.rfind('.');
    const std::string ending = dot == std::string::npos ? "" : name.substr(dot);
    const std::string base = name.substr(0, dot);
    if (ending == kGgufDown) {
      VKF_CHECK(add_module(base, entry.tensor.view));
    } else if (ending != kGgufUp) {
      VKF_CHECK(add_replaced(name, entry.tensor.view));
    } else if (find(base + kGgufDown) == nullptr) {
      return lacks(base, "A");
    }
  }
  if (!out_.modules.empty() || !out_.replaced.empty()) return {};
  return invalid_file(
      message({"File [", out_.label, "] has no tensors, but an adapter changes some."}));
}

// The model's name of the tokens' embeddings, which the table of names has.
std::string embedding_name(const GgufNaming& naming) {
  for (const GgufName& name : naming.names) {
    if (std::string_view(name.from) == "token_embd") return name.to + std::string(kWeightEnding);
  }
  return {};
}

Result<AdapterFiles> read_gguf_adapter(const FileStore& model, MappedFile bytes) {
  VKF_ASSIGN(GgufFile file, GgufFile::parse(std::move(bytes)));
  const auto source = std::make_shared<AdapterSource>(std::move(file));
  VKF_ASSIGN(const double alpha, read_alpha(source->file));
  VKF_ASSIGN(const std::string architecture, source->file.get_string("general.architecture"));
  VKF_ASSIGN(const JsonConfig config, JsonConfig::load_from(model, "config.json"));
  auto naming = gguf_naming(architecture, config);
  if (!naming) {
    return naming.error().with_context(message({"The adapter [", source->file.path(), "]"}));
  }
  naming->adapter = true;
  VKF_ASSIGN(source->tensors, gguf_tensors(source->file.path(), source->file.tensors(), *naming));
  AdapterFiles adapter{.label = source->file.path(), .source = source};
  VKF_CHECK(AdapterReader(*source, alpha, embedding_name(*naming), adapter).add_all());
  return adapter;
}

}  // namespace

Result<AdapterFiles> open_adapter_for(const FileStore& model, const FileStore& files) {
  if (!files.has(kGgufAdapterName)) return open_adapter(files);
  VKF_ASSIGN(MappedFile bytes, files.open(kGgufAdapterName));
  return read_gguf_adapter(model, std::move(bytes));
}

std::shared_ptr<const FileStore> make_adapter_store(const FileStore& model,
                                                    const std::string& path) {
  if (const FileStore* files = model.host_files()) {
    auto inner = std::make_shared<InnerAdapterStore>(*files, path);
    if (inner->has(kGgufAdapterName) || inner->has(kAdapterWeightsName)) return inner;
  }
  if (is_gguf_file(path)) return std::make_shared<AdapterFileStore>(path);
  return make_directory_store(path);
}

}  // namespace vkformer
