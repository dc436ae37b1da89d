#include "vkformer/model.h"

#include "session/loaded_model.h"
#include "session/plan_text.h"

namespace vkformer {

Result<ModelInfo> inspect_model(const std::string& directory) {
  return read_model_info(directory);
}

std::vector<std::string> model_families() {
  return family_names();
}

Result<Model> Model::load(const Device& device, const std::string& directory,
                          const ModelOptions& options) {
  VKF_ASSIGN(std::shared_ptr<const LoadedModel> model,
             LoadedModel::load(device.impl(), directory, options));
  return Model(std::move(model));
}

const ModelInfo& Model::info() const {
  return impl_->info();
}

uint64_t Model::weight_bytes() const {
  return impl_->weight_bytes();
}

Result<std::string> Model::plan_text(const PlanOptions& options) const {
  return vkformer::plan_text(*impl_, options);
}

}  // namespace vkformer
