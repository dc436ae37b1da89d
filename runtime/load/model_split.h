// A model whose layers lie on several devices: who has which places of it, and which weights.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vkformer/device_group.h"

namespace vkformer {

class LoadedModel;
class VulkanDevice;

// What a device takes for a step of a generation, measured or of a data sheet.
struct DeviceSpeed {
  double read_rate = 0;  // bytes a second of matrices that one row is multiplied with
  double flops = 0;      // operations a second of products with many rows; 0: no bound
  double launch = 0;     // seconds of one dispatch that hardly does anything
  double submit = 0;     // seconds of a submit and the wait for it, without its dispatches
};

// How long a message takes from one process to another.
struct LinkSpeed {
  double latency = 0;  // seconds
  double rate = 0;     // bytes a second; 0: within one process, by memory of the host
  double seconds(double bytes) const { return rate > 0 ? latency + bytes / rate : 0; }
};

// A device of a group, as all members know it.
struct GroupMember {
  std::shared_ptr<VulkanDevice> device;  // null: of another process
  std::string name;
  DeviceSpeed speed = {};
  DeviceSpeed together = {};       // while all members compute, where they share what computes
  double share = 0;                // of the work, where the caller says it; else 0
  LinkSpeed next = {};             // to the next member
  uint64_t memory = 0;             // bytes that are left
  uint64_t max_storage_range = 0;  // bytes
};

struct DeviceGroupState {
  std::vector<GroupMember> members;
  std::shared_ptr<DeviceLink> link;  // null: all members are of this process
  uint32_t lanes = 0;        // of a batch; 0, before a model is loaded: what suits its split
  uint32_t prompt_part = 0;  // tokens; 0: prompts are one pass
  GroupSplit split = GroupSplit::kLayers;
};

// A layer, or what stands before or after layers, by the label of its nodes: "decoder.3" of
// "decoder.3.self.qkv".
std::string place_of(const std::string& label);
// The member of a place where layers are divided: "part.1" is member 1's, and all else, which is
// not divided, the first's.
size_t member_of_part(const std::string& place);

struct ModelSplit {
  std::shared_ptr<const DeviceGroupState> group;
  std::map<std::string, size_t> member_of;  // by place
  std::vector<std::vector<bool>> held;      // by member and weight
  GroupPlan plan;
  // By member; null: it is of another process, or has no part in the model.
  std::vector<std::shared_ptr<LoadedModel>> parts;

  size_t members() const { return parts.size(); }
};

}  // namespace vkformer
