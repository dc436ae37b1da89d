#include "model/expert_reading.h"

#include <algorithm>

#include "base/message.h"
#include "model/config_reading.h"
#include "params/experts.h"

namespace vkformer {

Status read_expert_counts(const JsonConfig& config, const ExpertDefaults& defaults,
                          ExpertSetup& experts) {
  std::string key = defaults.key;
  for (const char* other : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    if (!config.has(key) && config.has(other)) key = other;
  }
  VKF_ASSIGN(const int64_t count, get_size_or(config, key, defaults.experts, kMostExperts));
  VKF_ASSIGN(const int64_t choices,
             get_size_or(config, "num_experts_per_tok", defaults.choices, kMostChoices));
  if (choices > count) {
    return invalid_file(message({"[num_experts_per_tok] in ", config.where(), " is ", choices,
                                 ", but there are only ", count, " experts (", key, ")"}));
  }
  experts.route.experts = static_cast<uint32_t>(count);
  experts.route.choices = static_cast<uint32_t>(choices);
  return {};
}

Status read_normalize(const JsonConfig& config, bool fallback, ExpertSetup& experts) {
  VKF_ASSIGN(experts.route.normalize, config.get_bool_or("norm_topk_prob", fallback));
  return {};
}

Status read_sparse_layers(const JsonConfig& config, int64_t layers, ExpertSetup& experts) {
  VKF_ASSIGN(const int64_t step, get_size_or(config, "decoder_sparse_step", 1, kMostLayers));
  VKF_ASSIGN(const std::vector<int64_t> dense, config.get_int_list_or("mlp_only_layers", {}));
  experts.layers.clear();
  for (int64_t i = 0; i < layers; ++i) {
    const bool kept = std::find(dense.begin(), dense.end(), i) != dense.end();
    experts.layers.push_back(!kept && (i + 1) % step == 0 ? 1 : 0);
  }
  return {};
}

}  // namespace vkformer
