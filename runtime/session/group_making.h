// Makes groups of devices, and plans who of a group has which layers of a model.
#pragma once

#include <span>

#include "load/loaded_model.h"

namespace vkformer {

Result<std::shared_ptr<const DeviceGroupState>> make_group(
    std::span<const std::shared_ptr<VulkanDevice>> devices, const DeviceGroupOptions& options);
// `own` is the device of this process.
Result<std::shared_ptr<const DeviceGroupState>> make_linked_group(
    std::shared_ptr<VulkanDevice> own, std::shared_ptr<DeviceLink> link,
    const DeviceGroupOptions& options);

// The same members with this split, which is not kFastest; an error where they cannot have it.
Result<std::shared_ptr<const DeviceGroupState>> group_split_by(const DeviceGroupState& group,
                                                               GroupSplit split);

// What one device of the group can bind least of: by it the weights are sliced.
DeviceCaps group_caps(const DeviceGroupState& group);

// Of a group of several processes: an error where one of them has another model, or other options.
Status check_same_model(const ModelWeights& read, const FileStore& files,
                        const DeviceGroupState& group);

// By the graphs of the model's passes, before any weight is read.
Result<ModelSplit> plan_split(const ModelWeights& read,
                              std::shared_ptr<const DeviceGroupState> group);

}  // namespace vkformer
