#include "session/model_loading.h"

#include "base/check.h"
#include "base/handle_access.h"
#include "recording/arithmetic_proof.h"
#include "session/fitting.h"
#include "session/group_making.h"
#include "session/pipelines_ahead.h"

namespace vkformer {

namespace {

Result<std::shared_ptr<const LoadedModel>> load_split_model(
    std::shared_ptr<const DeviceGroupState> group, const FileStore& files,
    const ModelOptions& options) {
  for (const GroupMember& member : group->members) {
    if (!member.device || options.precision != Precision::kReproducible) continue;
    VKF_CHECK(prove_arithmetic(member.device));
  }
  VKF_ASSIGN(ModelWeights read, read_model_weights(group_caps(*group), files, options));
  VKF_CHECK(check_same_model(read, files, *group));
  VKF_ASSIGN(ModelSplit split, plan_split(read, std::move(group)));
  if (options.planned) options.planned(split.plan);
  VKF_ASSIGN(std::shared_ptr<LoadedModel> model, LoadedModel::create_split(std::move(split), read));
  VKF_CHECK(model->upload(read, options));
  return std::shared_ptr<const LoadedModel>(std::move(model));
}

}  // namespace

Result<std::shared_ptr<const LoadedModel>> load_model(std::shared_ptr<VulkanDevice> device,
                                                      const FileStore& files,
                                                      const ModelOptions& options) {
  if (options.group) {
    return load_split_model(HandleAccess::impl(*options.group), files, options);
  }
  if (options.precision == Precision::kReproducible) VKF_CHECK(prove_arithmetic(device));
  VKF_ASSIGN(ModelWeights read, read_model_weights(device->caps(), files, options));
  Result<std::shared_ptr<LoadedModel>> model = LoadedModel::create(device, read);
  if (!model) return load_error(model.error(), *device, files, options);
  PipelinesAhead ahead(**model, options.first_use);
  VKF_CHECK((*model)->upload(read, options));
  (*model)->keep_adapters(read);
  const uint64_t bytes = (*model)->weight_bytes();
  VKF_CHECK(ahead.finish([&](size_t made, size_t total) {
    return !options.progress || options.progress({bytes, bytes, made, total});
  }));
  return std::shared_ptr<const LoadedModel>(std::move(*model));
}

}  // namespace vkformer
