// Performer (Choromanski et al., "Rethinking Attention with Performers", 2021): softmax attention
// estimated by positive random features.
#include "model/blocks/linear_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

constexpr int64_t kMostFeatures = 4096;

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_performer(const ModelFiles& files) {
  VKF_ASSIGN(LinearModelRead read, read_linear_model(files, "performer"));
  LinearMixing& mixing = read.block.mixing;
  mixing.features.map = LinearFeatureAttrs::Map::kFavor;
  VKF_ASSIGN(mixing.omega_rows, get_size(files.config, "num_features", kMostFeatures));
  VKF_ASSIGN(mixing.features.kernel_eps, get_epsilon(files.config, "kernel_eps", 1e-4));
  return make_linear_model(std::move(read));
}

}  // namespace vkformer
