#include "session/model_loading.h"

#include <algorithm>

#include "base/check.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "ops/matmul_dots.h"
#include "recording/arithmetic_proof.h"
#include "recording/dot_proof.h"
#include "session/fitting.h"
#include "session/group_making.h"
#include "session/pipelines_ahead.h"

namespace vkformer {

namespace {

// What the device must show before it computes in that precision.
Status prove_precision(const std::shared_ptr<VulkanDevice>& device, Precision precision) {
  if (precision == Precision::kReproducible) return prove_arithmetic(device);
  if (precision == Precision::kInt8) return prove_dots(device);
  return {};
}

// Precision int8 of a model without a matrix that it concerns would be f32 and not say so.
Status check_precision(const ModelWeights& read) {
  if (read.precision != Precision::kInt8) return {};
  const auto counts = [](const PackedWeight& weight) {
    return weight.row.layout == WeightLayout::kLinear && weight.row.experts == 0 &&
           has_integer_products(weight.format);
  };
  if (std::any_of(read.weights.begin(), read.weights.end(), counts)) return {};
  return unsupported(
      "[precision] 'int8' multiplies quantized matrices, and this model has none as it is loaded. "
      "Load it with quantized weights (ModelOptions::weights, --weights q8), or choose the "
      "precision 'f32'.");
}

// Layers that are divided add up in another order than whole ones.
Status check_divided_precision(Precision precision) {
  if (precision == Precision::kF32 || precision == Precision::kF16) return {};
  const char* reason =
      precision == Precision::kReproducible
          ? "' has the same bits everywhere, but the order of sums of a split by tensors depends "
            "on the number of devices"
          : "' is not computed by divided layers";
  return unsupported(message({"[precision] '", choice_name(precision), reason,
                              "; split by layers (DeviceGroupOptions::split, --split layers), or "
                              "choose the precision 'f32'"}));
}

// A model's weights as files have them, and who of a group gets which.
struct SplitWeights {
  ModelWeights read;
  ModelSplit split;
};

Result<SplitWeights> read_split(const DeviceGroupState& members, GroupSplit wanted,
                                const FileStore& files, const ModelOptions& options) {
  VKF_ASSIGN(std::shared_ptr<const DeviceGroupState> group, group_split_by(members, wanted));
  const bool divided = wanted == GroupSplit::kTensors;
  if (divided) VKF_CHECK(check_divided_precision(options.precision));
  const auto parts = static_cast<int64_t>(divided ? group->members.size() : 1);
  VKF_ASSIGN(ModelWeights read, read_model_weights(group_caps(*group), files, options, parts));
  VKF_CHECK(check_precision(read));
  VKF_CHECK(check_same_model(read, files, *group));
  VKF_ASSIGN(ModelSplit split, plan_split(read, std::move(group)));
  return SplitWeights{std::move(read), std::move(split)};
}

// Processes come to the same choice: a plan depends on what all of them know of all members.
Result<SplitWeights> read_fastest(const DeviceGroupState& group, const FileStore& files,
                                  const ModelOptions& options) {
  Result<SplitWeights> layers = read_split(group, GroupSplit::kLayers, files, options);
  Result<SplitWeights> tensors = read_split(group, GroupSplit::kTensors, files, options);
  if (!layers && !tensors) return layers;
  const auto step = [](const SplitWeights& one) { return one.split.plan.step_seconds; };
  const bool divided = !layers || (tensors && step(*tensors) < step(*layers));
  Result<SplitWeights>& best = divided ? tensors : layers;
  const Result<SplitWeights>& other = divided ? layers : tensors;
  GroupPlan& plan = best->split.plan;
  if (other) {
    plan.other_step_seconds = step(*other);
  } else {
    plan.other_refused = other.error().message;
  }
  return std::move(best);
}

Result<std::shared_ptr<const LoadedModel>> load_split_model(const DeviceGroupState& group,
                                                            const FileStore& files,
                                                            const ModelOptions& options) {
  for (const GroupMember& member : group.members) {
    if (member.device) VKF_CHECK(prove_precision(member.device, options.precision));
  }
  VKF_ASSIGN(SplitWeights found, group.split == GroupSplit::kFastest
                                     ? read_fastest(group, files, options)
                                     : read_split(group, group.split, files, options));
  if (options.planned) options.planned(found.split.plan);
  VKF_ASSIGN(std::shared_ptr<LoadedModel> model,
             LoadedModel::create_split(std::move(found.split), found.read));
  VKF_CHECK(model->upload(found.read, options));
  return std::shared_ptr<const LoadedModel>(std::move(model));
}

}  // namespace

Result<std::shared_ptr<const LoadedModel>> load_model(std::shared_ptr<VulkanDevice> device,
                                                      const FileStore& files,
                                                      const ModelOptions& options) {
  if (options.group) {
    return load_split_model(*HandleAccess::impl(*options.group), files, options);
  }
  VKF_CHECK(prove_precision(device, options.precision));
  VKF_ASSIGN(ModelWeights read, read_model_weights(device->caps(), files, options));
  VKF_CHECK(check_precision(read));
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
