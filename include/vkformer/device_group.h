// DeviceGroup: several devices that hold one model together, each some of its layers.
//
// A model that is loaded with a group (ModelOptions::group) is cut between layers. Every member has
// the weights of its layers. The keys and values of a generation stay where their layers are. What
// one layer hands to the next goes through host memory where the members change. A pass gives what
// it gives on one device. Or every layer is divided (GroupSplit::kTensors): a pass gives the same
// within the rounding of sums in another order.
//
// Threading: a group may be used from several threads at once; a DeviceLink as its class says.
// Lifetime: a DeviceGroup is a shared handle: copies are the same group, which its models keep
// alive, as it does its devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/result.h"

namespace vkformer {

struct DeviceGroupState;

// Hands bytes from process to process, where the members of a group are not all in one. All
// processes call the same functions in the same order, as far as one lane goes; lanes go on beside
// each other, from several threads.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;
  virtual size_t members() const = 0;  // one for each process
  virtual size_t own() const = 0;      // the member of this process
  virtual Status send(size_t to, uint32_t lane, std::span<const std::byte> bytes) = 0;
  virtual Status receive(size_t from, uint32_t lane, std::span<std::byte> bytes) = 0;
  // What `from` has is what all have afterwards.
  virtual Status broadcast(size_t from, uint32_t lane, std::span<std::byte> bytes) = 0;
};

struct DeviceGroupOptions {
  // How the work is shared out, a positive number for each member: 3 and 1 are three quarters and
  // one. Empty: by what a step of a generation takes on each device, measured when the group is
  // made. A member of another process is omitted then where the link to it takes longer than its
  // help saves.
  std::vector<double> shares;
  // Parts of a batch that are under way at once, so that members work at the same time, at most 64.
  // 0 means as many as members. It means one where layers are divided, for all members work on it.
  int lanes = 0;
  // Tokens of the parts that Session::generate reads a longer prompt of a decoder in, at most 4080.
  // While a member has a part at its layers, the one before it has the next part. 0: a prompt is
  // one pass. A prompt is one pass, too, where layers are divided.
  int prompt_part = 64;
  // kTensors: devices alike divide the heads and feed-forward columns of every layer evenly, and
  // add up twice a layer what each computed, in their order. Decoders without experts, recurrent
  // states, biases by distance and adapters of requests, in precision f32 and f16. What cannot be
  // divided is refused when the model is loaded. kFastest: when a model is loaded, its step is
  // estimated for both, and the shorter one decides. Where layers cannot be divided they are split.
  GroupSplit split = GroupSplit::kLayers;
};

// What a member does of a model.
struct GroupStage {
  std::string device;  // its name
  // Places in the model: "embed", "decoder.11"; of divided layers, "part.1". Empty: it has no part.
  std::string first, last;
  uint64_t weight_bytes = 0;  // that it holds
  double work = 0;            // share of the weights that a pass reads, 0 to 1
  double read_rate = 0;       // bytes of weights a second, or the share that was asked for
  double link_latency = 0;    // seconds of a message to the next member
  double link_rate = 0;       // bytes a second to it; 0: it is in the same process
};

// How a model lies on its group. Estimates are those of a generation, by what was measured when the
// group was made; 0 where the caller gave shares.
struct GroupPlan {
  GroupSplit split = GroupSplit::kLayers;  // never kFastest
  std::vector<GroupStage> stages;          // by member
  double step_seconds = 0;                 // from a token of a text to its next
  double tokens_per_second = 0;            // of as many texts at once as the group has lanes
  // Of a group that may choose (kFastest): step_seconds of the other split, or why it cannot be.
  double other_step_seconds = 0;
  std::string other_refused;
};

// The plan in words: a line for each member, and the estimate if there is one. Ends with a newline;
// empty without stages.
VKFORMER_API std::string group_plan_text(const GroupPlan& plan);

class VKFORMER_API DeviceGroup {
 public:
  // Of devices of this process, in the order of the layers: at least two, at most 64, which may be
  // one device opened twice.
  static Result<DeviceGroup> create(const std::vector<Device>& devices,
                                    const DeviceGroupOptions& options = {});
  // Of one device in each of several processes. All of them call it, with the same options.
  static Result<DeviceGroup> create_linked(const Device& own, std::shared_ptr<DeviceLink> link,
                                           const DeviceGroupOptions& options = {});

  // Members.
  size_t size() const;

 private:
  friend struct HandleAccess;
  explicit DeviceGroup(std::shared_ptr<const DeviceGroupState> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const DeviceGroupState> impl_;
};

}  // namespace vkformer
