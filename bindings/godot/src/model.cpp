#include "model.h"

#include <algorithm>
#include <functional>
#include <mutex>

#include "host.h"

namespace vkf_godot {
namespace {

constexpr const char* kWeights[] = {"stored", "f32", "f16", "bf16", "q8", "q4", "q4m"};
constexpr const char* kPrecisions[] = {"f32", "f16", "reproducible"};
// What may be copied out of a pack for readers of folders.
constexpr const char* kSmallFiles[] = {"config.json", "preprocessor_config.json"};

std::mutex all_mutex;
std::vector<std::weak_ptr<LoadedModel>> all_models;

std::string joined(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

// The path in the project of a file that the library asks for. It is in the folder of the model or
// of an adapter. The names of the latter begin with the path of the adapter.
std::string path_of(const ModelSettings& settings, const std::string& name) {
  for (const std::string& adapter : settings.adapters) {
    if (name == adapter || name.starts_with(joined(adapter, ""))) return name;
  }
  return joined(settings.directory, name);
}

// The library reads the files of the model and of adapters by these.
int file_size(void* settings, const char* name, uint64_t* size) {
  const gd::File file(path_of(*static_cast<const ModelSettings*>(settings), name));
  if (!file.is_open()) return 0;
  *size = file.size();
  return 1;
}
int file_read(void* settings, const char* name, uint64_t offset, void* out, size_t bytes) {
  gd::File file(path_of(*static_cast<const ModelSettings*>(settings), name));
  return file.is_open() && file.read(offset, out, bytes) ? 1 : 0;
}

}  // namespace

std::shared_ptr<LoadedModel> LoadedModel::load(const ModelSettings& settings, uint64_t owner) {
  auto made = std::make_shared<LoadedModel>();
  made->settings_ = settings;
  {
    const std::lock_guard lock(all_mutex);
    std::erase_if(all_models, [](const auto& other) { return other.expired(); });
    all_models.push_back(made);
  }
  Host::get().load([made, owner] {
    made->error_ = made->load_now();
    const bool good = made->error_.empty();
    made->state_ = good ? State::kReady : State::kFailed;
    if (good) {
      Host::get().tell({owner, "loaded", {}});
    } else {
      Host::get().tell({owner, "failed", {made->error_}});
    }
    Host::get().bury(made);  // the last reference must not go on this thread
  });
  return made;
}

void LoadedModel::release_all() {
  const std::lock_guard lock(all_mutex);
  for (const auto& other : all_models) {
    const std::shared_ptr<LoadedModel> model = other.lock();
    if (!model) continue;
    if (model->error_.empty()) model->error_ = "[model] the engine is shutting down.";
    model->state_ = State::kFailed;
    model->model_.reset();
  }
}

std::string LoadedModel::load_now() {
  const std::string& folder = settings_.directory;
  if (!gd::file_exists(joined(folder, "config.json")) &&
      !gd::file_exists(joined(folder, "model.gguf"))) {
    return "[directory] '" + folder +
           "' has no config.json; name the folder of a model, and let the export filter include "
           "its "
           "files (*.safetensors, *.json).";
  }
  if (std::string error = load_model(); !error.empty()) return error;
  return load_texts();
}

std::string LoadedModel::load_model() {
  Error error;
  std::string why;
  vkf_device* const device = Host::get().device(why);
  if (device == nullptr) return why;
  auto reader = sized<vkf_file_reader>();
  reader.size = file_size;
  reader.read = file_read;
  reader.data = &settings_;
  Source source;
  if (vkf_source_reader(&reader, settings_.directory.c_str(), made(source), error) != VKF_OK) {
    return error.message();
  }
  std::vector<const char*> adapters;
  for (const std::string& adapter : settings_.adapters) adapters.push_back(adapter.c_str());
  auto options = sized<vkf_model_options>();
  options.weights = kWeights[settings_.weights];
  options.precision = kPrecisions[settings_.precision];
  options.progress = [](void* self, uint64_t loaded, uint64_t total) {
    auto& model = *static_cast<LoadedModel*>(self);
    model.progress_ = total == 0 ? 0 : static_cast<double>(loaded) / static_cast<double>(total);
    return model.unwanted_ || Host::get().stopping() ? 0 : 1;
  };
  options.progress_data = this;
  options.adapters = adapters.data();
  options.adapter_count = adapters.size();
  const size_t scales = settings_.adapter_scales.size();
  if (scales != 0 && scales != adapters.size()) {
    return "[adapter_scales] has " + std::to_string(scales) + " numbers, but [adapters] has " +
           std::to_string(adapters.size()) + "; give one for each adapter, or none.";
  }
  if (scales != 0) options.adapter_scales = settings_.adapter_scales.data();
  if (vkf_model_load_from(device, source.get(), &options, made(model_), error) != VKF_OK) {
    return error.message();
  }
  info_.struct_size = sizeof info_;
  if (vkf_model_describe(model_.get(), made(description_), error) != VKF_OK) {
    return error.message();
  }
  if (vkf_description_get(description_.get(), &info_, error) != VKF_OK) return error.message();
  const std::vector<uint8_t> json = gd::read_file(joined(settings_.directory, "config.json"));
  const gd::Variant config =
      gd::call_static("JSON", "parse_string", {std::string(json.begin(), json.end())});
  many_labels_ =
      config.type() == GDEXTENSION_VARIANT_TYPE_DICTIONARY &&
      config.call("get", {"problem_type", ""}).as_string() == "multi_label_classification";
  // Models without a template of conversations have none.
  vkf_chat_template_load_from(source.get(), made(chat_), error);
  return "";
}

std::string LoadedModel::load_texts() {
  Error error;
  const std::vector<uint8_t> json = gd::read_file(joined(settings_.directory, "tokenizer.json"));
  if (!json.empty() &&
      vkf_tokenizer_parse(json.data(), json.size(), joined(name(), "tokenizer.json").c_str(),
                          made(tokenizer_), error) != VKF_OK) {
    return error.message();
  }
  const std::string source = info_.source;
  if (source == "pictures" &&
      vkf_picture_processor_load(small_files().c_str(), made(pictures_), error) != VKF_OK) {
    return error.message();
  }
  if (source == "features" &&
      vkf_log_mel_load(small_files().c_str(), made(sounds_), error) != VKF_OK) {
    return error.message();
  }
  return "";
}

std::string LoadedModel::small_files() const {
  const std::string found = gd::system_path(settings_.directory);
  if (!found.empty()) return found;
  // Out of the pack, by content, so that a later version of the project finds its own.
  size_t mark = std::hash<std::string>()(settings_.directory);
  std::vector<std::vector<uint8_t>> contents;
  for (const char* name : kSmallFiles) {
    contents.push_back(gd::read_file(joined(settings_.directory, name)));
    const std::string text(contents.back().begin(), contents.back().end());
    mark = mark * 31 + std::hash<std::string>()(text);
  }
  const std::string folder = "user://vkformer/" + std::to_string(mark);
  for (size_t i = 0; i < contents.size(); ++i) {
    if (!contents[i].empty()) gd::write_file(joined(folder, kSmallFiles[i]), contents[i]);
  }
  return gd::system_path(folder);
}

std::vector<std::pair<std::string, int64_t>> LoadedModel::prompt_tokens() const {
  std::vector<std::pair<std::string, int64_t>> tokens(info_.prompt_token_count);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const char* name = "";
    vkf_description_get_prompt_token(description_.get(), i, &name, &tokens[i].second, nullptr);
    tokens[i].first = name;
  }
  return tokens;
}

bool LoadedModel::prompt_token(const std::string& wanted, int64_t& found) const {
  for (const auto& [name, id] : prompt_tokens()) {
    found = id;
    if (wanted == name || "<|" + wanted + "|>" == name) return true;
  }
  return false;
}

std::vector<std::pair<std::string, int64_t>> LoadedModel::languages() const {
  std::vector<std::pair<std::string, int64_t>> languages;
  for (const auto& [name, id] : prompt_tokens()) {
    if (name.starts_with("<|")) languages.emplace_back(name.substr(2, name.size() - 4), id);
  }
  return languages;
}

ModelResource::~ModelResource() {
  Host::get().bury(std::move(loaded_));
}

std::shared_ptr<LoadedModel> ModelResource::loaded() {
  if (!loaded_ && !settings_.directory.empty()) loaded_ = LoadedModel::load(settings_, id());
  return loaded_;
}

gd::Variant ModelResource::load(const gd::Arguments&) {
  if (!loaded()) gd::print_error("[directory] is empty; name the folder of a model.");
  return {};
}
gd::Variant ModelResource::unload(const gd::Arguments&) {
  Host::get().bury(std::move(loaded_));
  loaded_.reset();
  return {};
}
gd::Variant ModelResource::is_ready(const gd::Arguments&) {
  return loaded_ && loaded_->state() == LoadedModel::State::kReady;
}
gd::Variant ModelResource::get_progress(const gd::Arguments&) {
  return loaded_ ? loaded_->progress() : 0.0;
}
gd::Variant ModelResource::get_error(const gd::Arguments&) {
  const bool failed = loaded_ && loaded_->state() == LoadedModel::State::kFailed;
  return failed ? loaded_->error() : std::string();
}
gd::Variant ModelResource::get_labels(const gd::Arguments& none) {
  std::vector<std::string> labels;
  if (is_ready(none).as_bool()) {
    const vkf_model_info& info = loaded_->info();
    labels.assign(info.labels, info.labels + info.label_count);
  }
  return gd::Variant::strings(labels);
}
gd::Variant ModelResource::get_description(const gd::Arguments& none) {
  gd::Variant found = gd::Variant::make(GDEXTENSION_VARIANT_TYPE_DICTIONARY);
  if (!is_ready(none).as_bool()) return found;
  const vkf_model_info& info = loaded_->info();
  const auto set = [&](const char* key, const gd::Variant& value) {
    found.call("set", {key, value});
  };
  set("family", info.family);
  set("kind", info.kind);
  set("source", info.source);
  set("head", info.head);
  set("parameters", info.parameters);
  set("weight_bytes", vkf_model_weight_bytes(loaded_->model()));
  set("tasks", gd::Variant::strings({info.tasks, info.tasks + info.task_count}));
  return found;
}

std::unique_ptr<gd::Class> ModelResource::register_class() {
  using T = ModelResource;
  auto c = std::make_unique<gd::Class>("VkfModel", "Resource",
                                       [] { return std::make_unique<ModelResource>(); });
  c->property<T>(
      "directory", GDEXTENSION_VARIANT_TYPE_STRING, gd::folder(),
      [](T& self) { return self.settings_.directory; },
      [](T& self, const gd::Variant& value) { self.settings_.directory = value.as_string(); });
  c->property<T>(
      "weights", GDEXTENSION_VARIANT_TYPE_INT,
      gd::choices("As stored:0,f32:1,f16:2,bf16:3,q8:4,q4:5,q4m:6"),
      [](T& self) { return self.settings_.weights; },
      [](T& self, const gd::Variant& value) {
        self.settings_.weights = static_cast<int>(std::clamp<int64_t>(value.as_int(), 0, 6));
      });
  c->property<T>(
      "precision", GDEXTENSION_VARIANT_TYPE_INT, gd::choices("f32:0,f16:1,Reproducible:2"),
      [](T& self) { return self.settings_.precision; },
      [](T& self, const gd::Variant& value) {
        self.settings_.precision = static_cast<int>(std::clamp<int64_t>(value.as_int(), 0, 2));
      });
  c->group("Adapters");
  c->property<T>(
      "adapters", GDEXTENSION_VARIANT_TYPE_PACKED_STRING_ARRAY, {},
      [](T& self) { return gd::Variant::strings(self.settings_.adapters); },
      [](T& self, const gd::Variant& value) { self.settings_.adapters = value.as_strings(); });
  c->property<T>(
      "adapter_scales", GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT32_ARRAY, {},
      [](T& self) {
        const std::vector<float>& scales = self.settings_.adapter_scales;
        return gd::Variant::floats(scales.data(), scales.size());
      },
      [](T& self, const gd::Variant& value) { self.settings_.adapter_scales = value.as_floats(); });
  c->method("load", GDEXTENSION_VARIANT_TYPE_NIL, {}, &T::load);
  c->method("unload", GDEXTENSION_VARIANT_TYPE_NIL, {}, &T::unload);
  c->method("is_ready", GDEXTENSION_VARIANT_TYPE_BOOL, {}, &T::is_ready);
  c->method("get_progress", GDEXTENSION_VARIANT_TYPE_FLOAT, {}, &T::get_progress);
  c->method("get_error", GDEXTENSION_VARIANT_TYPE_STRING, {}, &T::get_error);
  c->method("get_labels", GDEXTENSION_VARIANT_TYPE_PACKED_STRING_ARRAY, {}, &T::get_labels);
  c->method("get_description", GDEXTENSION_VARIANT_TYPE_DICTIONARY, {}, &T::get_description);
  c->signal("loaded", {});
  c->signal("failed", {{"message"}});
  return c;
}

}  // namespace vkf_godot
