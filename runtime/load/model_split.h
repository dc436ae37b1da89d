// A model whose layers lie on several devices: who has which places of it, and which weights.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkformer/device_group.h"

namespace vkformer {

class LoadedModel;
class VulkanDevice;

// A device of a group, as all members know it.
struct GroupMember {
  std::shared_ptr<VulkanDevice> device;  // null: of another process
  std::string name;
  double speed = 0;                // by which work is shared out
  uint64_t memory = 0;             // bytes that are left
  uint64_t max_storage_range = 0;  // bytes
};

struct DeviceGroupState {
  std::vector<GroupMember> members;
  std::shared_ptr<DeviceLink> link;  // null: all members are of this process
  uint32_t lanes = 1;
};

// A layer, or what stands before or behind layers, by the label of its nodes: "decoder.3" of
// "decoder.3.self.qkv".
std::string place_of(const std::string& label);

// What a plan of a split knows of a place.
struct SplitPlace {
  std::string name;
  std::vector<uint32_t> weights;  // that it reads, by index
  double work = 0;                // bytes of matrices that a pass reads there
};

// Members take the places in order, each at least one: `first` of each member. The slowest member
// takes as little time as can be, and what a member holds fits into its memory. An error names what
// is missing.
Result<std::vector<size_t>> share_places(std::span<const SplitPlace> places,
                                         std::span<const uint64_t> weight_bytes,
                                         std::span<const GroupMember> members);

struct ModelSplit {
  std::shared_ptr<const DeviceGroupState> group;
  std::map<std::string, size_t> member_of;          // by place
  std::vector<std::vector<bool>> held;              // by member and weight
  std::vector<GroupStage> stages;                   // by member
  std::vector<std::shared_ptr<LoadedModel>> parts;  // by member; null: of another process

  size_t members() const { return parts.size(); }
};

}  // namespace vkformer
