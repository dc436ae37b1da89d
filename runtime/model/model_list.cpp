// The explicit list of model families: one row each.
#include <filesystem>

#include "base/check.h"
#include "model/marian.h"
#include "model/transformer.h"

namespace vkformer {
namespace {

struct FamilyRow {
  const char* model_type;  // as config.json spells it
  Result<std::unique_ptr<ModelFamily>> (*load)(const JsonConfig& config,
                                               const JsonConfig& generation);
};

constexpr FamilyRow kFamilies[] = {
    {"marian", load_marian},
    {"transformer", load_transformer},
};

}  // namespace

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const FamilyRow& row : kFamilies) names.emplace_back(row.model_type);
  return names;
}

Result<std::unique_ptr<ModelFamily>> load_family(const std::string& model_dir) {
  VKF_ASSIGN(JsonConfig config, JsonConfig::load(model_dir + "/config.json"));
  JsonConfig generation;
  const std::string generation_path = model_dir + "/generation_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(generation_path, ignored)) {
    VKF_ASSIGN(generation, JsonConfig::load(generation_path));
  }
  VKF_ASSIGN(std::string type, config.get_string("model_type"));
  for (const FamilyRow& row : kFamilies) {
    if (type == row.model_type) return row.load(config, generation);
  }
  std::string known;
  for (const std::string& name : family_names()) known += (known.empty() ? "" : ", ") + name;
  return unsupported("[model_type] '" + type + "' of " + config.where() +
                     " is not supported yet; supported are " + known);
}

}  // namespace vkformer
