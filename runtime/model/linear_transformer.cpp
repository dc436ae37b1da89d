// The linear Transformer (Katharopoulos et al., "Transformers are RNNs", 2020): attention by the
// features elu(x) + 1.
#include "model/blocks/linear_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_linear_transformer(const ModelFiles& files) {
  VKF_ASSIGN(LinearModelRead read, read_linear_model(files, "linear_transformer"));
  VKF_ASSIGN(read.block.mixing.features.epsilon,
             get_epsilon(files.config, "denominator_eps", 1e-6));
  return make_linear_model(std::move(read));
}

}  // namespace vkformer
