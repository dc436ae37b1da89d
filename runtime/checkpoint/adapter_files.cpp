#include "checkpoint/adapter_files.h"

#include <cmath>
#include <map>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/json_config.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

constexpr const char* kPrefix = "base_model.model.";

struct AdapterSettings {
  double alpha = 8;
  bool rank_stabilized = false;
  std::map<std::string, double> alphas;  // of modules whose names end so
};

Error unsupported_key(const JsonConfig& config, const std::string& key, const std::string& what) {
  return unsupported(message({"[", key, "] in ", config.where(), " ", what,
                              "; merge the adapter into its model where it was trained."}));
}

Result<AdapterSettings> read_settings(const JsonConfig& config) {
  VKF_ASSIGN(const std::string kind, config.get_string_or("peft_type", "LORA"));
  if (kind != "LORA") {
    return unsupported_key(config, "peft_type", "is " + bracketed(kind) + ", but must be LORA");
  }
  for (const char* key : {"layer_replication", "alora_invocation_tokens", "arrow_config"}) {
    if (config.has(key)) return unsupported_key(config, key, "is set, which is not supported");
  }
  for (const char* key : {"lora_bias", "use_qalora"}) {
    VKF_ASSIGN(const bool set, config.get_bool_or(key, false));
    if (set) return unsupported_key(config, key, "is true, which is not supported");
  }
  AdapterSettings settings;
  VKF_ASSIGN(settings.alpha, config.get_double_or("lora_alpha", 8));
  VKF_ASSIGN(settings.rank_stabilized, config.get_bool_or("use_rslora", false));
  const JsonConfig pattern = config.object("alpha_pattern");
  VKF_CHECK(pattern.status());
  for (const std::string& key : pattern.keys()) {
    if (key.find_first_of("^$*+?()[]{}|\\") != std::string::npos) {
      return unsupported_key(config, "alpha_pattern",
                             "has " + bracketed(key) + ", a regular expression and not a name");
    }
    VKF_ASSIGN(settings.alphas[key], pattern.get_double(key));
  }
  return settings;
}

double alpha_of(const AdapterSettings& settings, const std::string& module) {
  for (const auto& [name, alpha] : settings.alphas) {
    if (module == name || module.ends_with("." + name)) return alpha;
  }
  return settings.alpha;
}

// The parts of one module, by what their names end with.
struct ModuleParts {
  const TensorView* down = nullptr;
  const TensorView* up = nullptr;
  const TensorView* magnitude = nullptr;
  bool embedding = false;
};

// Whether the tensor is a part of a module; then which one.
bool add_part(const std::string& name, const TensorView& view,
              std::map<std::string, ModuleParts>& modules) {
  struct Ending {
    const char* text;
    const TensorView* ModuleParts::*part;
    bool embedding;
  };
  constexpr Ending kEndings[] = {
      {".lora_A.weight", &ModuleParts::down, false},
      {".lora_B.weight", &ModuleParts::up, false},
      {".lora_embedding_A", &ModuleParts::down, true},
      {".lora_embedding_B", &ModuleParts::up, true},
      {".lora_magnitude_vector", &ModuleParts::magnitude, false},
      {".lora_magnitude_vector.weight", &ModuleParts::magnitude, false},
  };
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text)) continue;
    ModuleParts& parts = modules[name.substr(0, name.size() - std::string(ending.text).size())];
    parts.*ending.part = &view;
    parts.embedding = parts.embedding || ending.embedding;
    return true;
  }
  return false;
}

// Blocks are those of a GGUF file.
bool is_float(const TensorView& view) {
  return view.dtype == DType::kF32 || view.dtype == DType::kF16 || view.dtype == DType::kBF16 ||
         view.dtype == DType::kF64 || view.blocks != nullptr;
}

}  // namespace

Status check_adapter_module(const AdapterModule& module, const std::string& label) {
  const Shape& down = module.down.shape;
  const Shape& up = module.up.shape;
  const bool matrices = down.size() >= 2 && up.size() >= 2 && is_float(module.down) &&
                        is_float(module.up) && !module.down.bytes.empty() &&
                        !module.up.bytes.empty();
  if (matrices && element_count(up) == up[0] * up[1] && up[1] == down[0]) return {};
  return invalid_file(message({bracketed(module.module), " in ", label, " has A of shape ",
                               shape_text(down), " and B of shape ", shape_text(up),
                               ", but they must be floats (r, K) and (N, r) of the same r."}));
}

Result<AdapterFiles> open_adapter(const FileStore& files) {
  if (!files.has(kAdapterWeightsName)) {
    return not_found(message({"Directory [", files.label(), "] has no [", kAdapterWeightsName,
                              "]; give the directory of an adapter in PEFT's layout, whose weights "
                              "are safetensors, or a GGUF file of one."}));
  }
  VKF_ASSIGN(const JsonConfig config, JsonConfig::load_from(files, kAdapterConfigName));
  VKF_ASSIGN(const AdapterSettings settings, read_settings(config));
  VKF_ASSIGN(MappedFile bytes, files.open(kAdapterWeightsName));
  VKF_ASSIGN(SafetensorsFile opened, SafetensorsFile::parse(std::move(bytes)));
  AdapterFiles adapter{.label = files.label_of(kAdapterWeightsName)};
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  adapter.source = file;
  std::map<std::string, ModuleParts> modules;
  for (const auto& [full, view] : file->tensors()) {
    const std::string name = full.starts_with(kPrefix) ? full.substr(17) : full;
    if (name.find(".lora_") == std::string::npos) {
      adapter.replaced.push_back({name, view});
    } else if (!add_part(name, view, modules)) {
      return unsupported(message({bracketed(full), " in ", adapter.label,
                                  " is a part of an adapter that vkformer does not compute; "
                                  "merge the adapter into its model where it was trained."}));
    }
  }
  for (const auto& [module, parts] : modules) {
    const std::string where = bracketed(module) + " in " + adapter.label;
    if (parts.down == nullptr || parts.up == nullptr) {
      return invalid_file(message({where, " lacks its matrix ", parts.up == nullptr ? "B" : "A",
                                   "; the file is not whole."}));
    }
    AdapterModule made{.module = module, .down = *parts.down, .up = *parts.up};
    VKF_CHECK(check_adapter_module(made, adapter.label));
    if (parts.embedding && parts.magnitude != nullptr) {
      return unsupported(message({where,
                                  " is DoRA of an embedding, which is not supported; merge "
                                  "the adapter into its model where it was trained."}));
    }
    if (parts.magnitude != nullptr) made.magnitude = *parts.magnitude;
    const auto rank = static_cast<double>(parts.down->shape[0]);
    made.scale = alpha_of(settings, module) / (settings.rank_stabilized ? std::sqrt(rank) : rank);
    made.embedding = parts.embedding;
    if (parts.magnitude != nullptr &&
        (!is_float(*parts.magnitude) ||
         element_count(parts.magnitude->shape) != parts.up->shape[0])) {
      return invalid_file(
          message({where, " has magnitudes of shape ", shape_text(parts.magnitude->shape),
                   ", but B has ", parts.up->shape[0], " rows."}));
    }
    adapter.modules.push_back(std::move(made));
  }
  return adapter;
}

}  // namespace vkformer
