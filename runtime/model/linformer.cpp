// Linformer (Wang et al., "Linformer: Self-Attention with Linear Complexity", 2020): keys and
// values projected to a fixed number along the sequence, then softmax attention.
#include "base/message.h"
#include "model/blocks/linear_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

using Sharing = LinearMixing::Sharing;

struct SharingName {
  const char* name;
  Sharing sharing;
};

constexpr SharingName kSharings[] = {{"none", Sharing::kNone},
                                     {"headwise", Sharing::kHeadwise},
                                     {"key-value", Sharing::kKeyValue},
                                     {"layerwise", Sharing::kLayerwise}};

Result<Sharing> read_sharing(const JsonConfig& config) {
  VKF_ASSIGN(std::string name, config.get_string_or("sharing", "none"));
  for (const SharingName& known : kSharings) {
    if (name == known.name) return known.sharing;
  }
  return unsupported(
      message({"[sharing] in ", config.where(), " is '", name,
               "'; a Linformer shares its projections by none, headwise, key-value or layerwise"}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_linformer(const ModelFiles& files) {
  VKF_ASSIGN(LinearModelRead read, read_linear_model(files, "linformer"));
  LinearMixing& mixing = read.block.mixing;
  mixing.kind = LinearMixing::Kind::kProjected;
  VKF_ASSIGN(mixing.projected, get_size(files.config, "projection_dim", 1 << 16));
  VKF_ASSIGN(mixing.sharing, read_sharing(files.config));
  if (read.facts.kind == ModelKind::kDecoder) {
    return unsupported(
        message({"[causal] is true in ", files.config.where(),
                 ", but a Linformer mixes all tokens before it attends and cannot be causal"}));
  }
  return make_linear_model(std::move(read));
}

}  // namespace vkformer
