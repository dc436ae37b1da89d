#include "model/sentence_files.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

constexpr const char* kModules = "modules.json";
constexpr size_t kMostSteps = 16;  // after the pooling

struct Mode {
  const char* key;   // of older files, set to true
  const char* name;  // in "pooling_mode" of newer ones
  PoolKind kind;
};

// In the order in which sentence-transformers joins what they give.
constexpr Mode kModes[] = {
    {"pooling_mode_cls_token", "cls", PoolKind::kFirst},
    {"pooling_mode_max_tokens", "max", PoolKind::kMax},
    {"pooling_mode_mean_tokens", "mean", PoolKind::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", PoolKind::kMeanSqrtLength},
    {"pooling_mode_weightedmean_tokens", "weightedmean", PoolKind::kWeightedMean},
    {"pooling_mode_lasttoken", "lasttoken", PoolKind::kLast}};

std::string mode_names() {
  std::string names;
  for (const Mode& mode : kModes) names += std::string(names.empty() ? "" : ", ") + mode.name;
  return names;
}

Status read_pooling(const JsonConfig& pooling, SentenceFacts& facts) {
  VKF_ASSIGN(const std::vector<std::string> named, pooling.get_string_list_or("pooling_mode", {}));
  for (const std::string& name : named) {
    const bool known = std::any_of(std::begin(kModes), std::end(kModes),
                                   [&](const Mode& mode) { return name == mode.name; });
    if (!known) {
      return unsupported(message({"[pooling_mode] in ", pooling.where(), " is '", name,
                                  "', but must be one of ", mode_names(), "."}));
    }
  }
  for (const Mode& mode : kModes) {
    const bool in_list = std::find(named.begin(), named.end(), mode.name) != named.end();
    VKF_ASSIGN(const bool set, pooling.get_bool_or(mode.key, in_list));
    if (set) facts.pooling.push_back(mode.kind);
  }
  VKF_ASSIGN(const bool prompts, pooling.get_bool_or("include_prompt", true));
  facts.pools_prompt = prompts ? SentenceFacts::PoolsPrompt::kYes : SentenceFacts::PoolsPrompt::kNo;
  if (facts.pools()) return {};
  return unsupported(
      message({"[pooling] ", pooling.where(),
               " asks for none of the supported ways to pool: ", mode_names(), "."}));
}

// By the name of a class: "torch.nn.modules.activation.Tanh".
Result<ActivationKind> read_dense_activation(const JsonConfig& dense) {
  const std::string key = "activation_function";
  VKF_ASSIGN(const std::string given, dense.get_string_or(key, "torch.nn.modules.linear.Identity"));
  constexpr struct {
    const char* name;
    ActivationKind kind;
  } kKnown[] = {{"Tanh", ActivationKind::kTanh}, {"Identity", ActivationKind::kNone},
                {"ReLU", ActivationKind::kRelu}, {"GELU", ActivationKind::kGelu},
                {"SiLU", ActivationKind::kSilu}, {"Sigmoid", ActivationKind::kSigmoid}};
  const std::string name = given.substr(given.rfind('.') + 1);
  for (const auto& known : kKnown) {
    if (name == known.name) return known.kind;
  }
  return unsupported(
      message({"[", key, "] in ", dense.where(), " is '", given,
               "'; supported are Identity, Tanh, ReLU, GELU, SiLU and Sigmoid of torch.nn."}));
}

Result<SentenceFacts::Step> read_dense(const JsonConfig& config, const std::string& folder) {
  SentenceFacts::Step step{.kind = SentenceFacts::Step::Kind::kDense, .module = folder};
  VKF_ASSIGN(step.in, get_size(config, "in_features", kMostWidth));
  VKF_ASSIGN(step.out, get_size(config, "out_features", kMostWidth));
  VKF_ASSIGN(step.bias, config.get_bool_or("bias", true));
  VKF_ASSIGN(step.activation, read_dense_activation(config));
  return step;
}

Result<JsonConfig> module_config(const FileStore& files, const std::string& folder) {
  const std::string name = folder + "/config.json";
  VKF_CHECK(check_inner_name(name, files.label_of(kModules)));
  return JsonConfig::load_from(files, name);
}

}  // namespace

bool SentenceFacts::normalizes() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.kind == Step::Kind::kNormalize; });
}

// modules.json of sentence-transformers: a list of modules, of which the first is the model.
Result<SentenceFacts> read_sentence_files(const FileStore& files) {
  SentenceFacts facts;
  if (!files.has(kModules)) return facts;
  VKF_ASSIGN(std::vector<JsonConfig> modules, JsonConfig::load_list(files, kModules));
  for (const JsonConfig& module : modules) {
    VKF_ASSIGN(std::string type, module.get_string_or("type", ""));
    VKF_ASSIGN(std::string folder, module.get_string_or("path", ""));
    const std::string kind = type.substr(type.rfind('.') + 1);
    if (kind == "Pooling") {
      VKF_ASSIGN(const JsonConfig pooling, module_config(files, folder));
      VKF_CHECK(read_pooling(pooling, facts));
    } else if (kind == "Normalize") {
      facts.steps.push_back({});
    } else if (kind == "Dense") {
      VKF_ASSIGN(const JsonConfig dense, module_config(files, folder));
      VKF_ASSIGN(SentenceFacts::Step step, read_dense(dense, folder));
      facts.steps.push_back(std::move(step));
    } else if (kind != "LogitScore" && &module != &modules.front()) {  // reranking reads that one
      return unsupported(
          message({"[modules.json] in ", files.label(), " has a module of type '", type,
                   "'; supported after the model are Pooling, Dense, Normalize and LogitScore."}));
    }
    if (facts.steps.size() > kMostSteps || (!facts.pools() && !facts.steps.empty())) {
      return unsupported(message({"[modules.json] in ", files.label(),
                                  " has Dense or Normalize modules before the pooling, or more "
                                  "than ",
                                  kMostSteps, " of them after it."}));
    }
  }
  return facts;
}

Status add_sentence_tensors(const FileStore& files, const SentenceFacts& sentence,
                            Checkpoint& checkpoint) {
  for (const SentenceFacts::Step& step : sentence.steps) {
    if (step.kind != SentenceFacts::Step::Kind::kDense) continue;
    // GGUF files have them among the model's.
    if (checkpoint.find(step.module + "/linear.weight") != nullptr) continue;
    VKF_CHECK(checkpoint.add_module(files, step.module));
  }
  return {};
}

void add_sentence_rows(const SentenceFacts& sentence, WeightTable& table) {
  for (size_t i = 0; i < sentence.steps.size(); ++i) {
    const SentenceFacts::Step& step = sentence.steps[i];
    if (step.kind != SentenceFacts::Step::Kind::kDense) continue;
    const auto row = step.bias ? linear_row : plain_linear_row;
    table.rows.push_back(row(sentence_row(i), {step.module + "/linear"}, step.out, step.in));
  }
}

std::string sentence_row(size_t index) {
  return "sentence." + std::to_string(index);
}

}  // namespace vkformer
