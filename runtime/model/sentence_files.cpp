#include "model/sentence_files.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

Result<SentenceFacts::Pooling> read_pooling(const JsonConfig& pooling) {
  constexpr const char* kOthers[] = {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                                     "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"};
  for (const char* key : kOthers) {
    VKF_ASSIGN(bool set, pooling.get_bool_or(key, false));
    if (set) {
      return unsupported(
          message({"[", key, "] is set in ", pooling.where(),
                   "; supported are pooling_mode_mean_tokens and pooling_mode_cls_token"}));
    }
  }
  VKF_ASSIGN(std::string mode, pooling.get_string_or("pooling_mode", ""));
  VKF_ASSIGN(bool first, pooling.get_bool_or("pooling_mode_cls_token", mode == "cls"));
  VKF_ASSIGN(bool mean, pooling.get_bool_or("pooling_mode_mean_tokens", mode == "mean"));
  if (first != mean) {
    return first ? SentenceFacts::Pooling::kFirst : SentenceFacts::Pooling::kMean;
  }
  return unsupported(
      message({"[pooling] ", pooling.where(),
               " asks for neither or both of mean and cls pooling; one is supported"}));
}

}  // namespace

// modules.json of sentence-transformers: a list of modules, of which Pooling and Normalize matter.
Result<SentenceFacts> read_sentence_files(const FileStore& files) {
  constexpr const char* kModules = "modules.json";
  SentenceFacts facts;
  if (!files.has(kModules)) return facts;
  VKF_ASSIGN(std::vector<JsonConfig> modules, JsonConfig::load_list(files, kModules));
  for (const JsonConfig& module : modules) {
    VKF_ASSIGN(std::string type, module.get_string_or("type", ""));
    VKF_ASSIGN(std::string folder, module.get_string_or("path", ""));
    if (type.ends_with(".Normalize")) facts.normalize = SentenceFacts::Normalize::kYes;
    if (type.ends_with(".Dense")) {
      return unsupported(
          message({"[modules.json] in ", files.label(),
                   " adds a dense layer after the pooling, which is not supported"}));
    }
    if (!type.ends_with(".Pooling")) continue;
    const std::string name = folder + "/config.json";
    VKF_CHECK(check_inner_name(name, files.label_of(kModules)));
    VKF_ASSIGN(JsonConfig pooling, JsonConfig::load_from(files, name));
    VKF_ASSIGN(facts.pooling, read_pooling(pooling));
  }
  return facts;
}

}  // namespace vkformer
