#include "session/group_making.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/message.h"
#include "recording/device_speed.h"
#include "recording/node_places.h"
#include "session/sized_graphs.h"
#include "vulkan/memory_left.h"

namespace vkformer {
namespace {

constexpr size_t kMostMembers = 64;
constexpr int kMostLanes = 64;

Status check_options(size_t members, const DeviceGroupOptions& options) {
  if (members < 2 || members > kMostMembers) {
    return invalid_argument(message({"[group] has ", members, " devices, but must have 2 to ",
                                     kMostMembers, "; one device alone needs no group"}));
  }
  if (options.lanes < 0 || options.lanes > kMostLanes) {
    return invalid_argument(
        message({"[group] lanes is ", options.lanes, ", but must lie between 0 and ", kMostLanes}));
  }
  if (!options.shares.empty() && options.shares.size() != members) {
    return invalid_argument(message({"[group] got ", options.shares.size(), " shares for ", members,
                                     " devices; give one for each, or none"}));
  }
  for (const double share : options.shares) {
    if (std::isfinite(share) && share > 0) continue;
    return invalid_argument(
        message({"[group] a share is ", share, ", but must be a positive number"}));
  }
  return {};
}

Result<GroupMember> member_of_device(const std::shared_ptr<VulkanDevice>& device, size_t index,
                                     const DeviceGroupOptions& options) {
  GroupMember member{.device = device, .name = device->info().name};
  member.memory = memory_left(*device);
  member.max_storage_range = device->caps().limits.max_storage_range;
  if (!options.shares.empty()) {
    member.speed = options.shares[index];
  } else {
    VKF_ASSIGN(member.speed, product_speed(device));
  }
  return member;
}

uint32_t lanes_of(size_t members, const DeviceGroupOptions& options) {
  return static_cast<uint32_t>(options.lanes > 0 ? static_cast<size_t>(options.lanes) : members);
}

// What a process tells the others of its device.
struct MemberFacts {
  double speed = 0;
  uint64_t memory = 0, max_storage_range = 0;
  std::array<char, 128> name{};
};

// Places in the order in which a pass comes to them.
class Places {
 public:
  explicit Places(const std::vector<PackedWeight>& weights) : weights_(weights) {}

  enum class Work : uint8_t { kCounts, kDoesNotCount };
  void add(const Graph& graph, Work work) {
    size_t at = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      const std::string name = place_of_node(graph, i);
      const auto found = index_.find(name);
      if (found != index_.end()) {
        at = found->second;
      } else if (work == Work::kCounts) {
        at = places_.size();
        index_.emplace(name, at);
        places_.push_back({.name = name, .weights = {}});
      }
      for (const TensorId id : node.inputs) {
        if (id == kNoTensor || graph.tensor(id).kind != TensorKind::kConstant) continue;
        const uint32_t weight = graph.tensor(id).constant;
        places_[at].weights.push_back(weight);
        const bool looked_up = std::string_view(node.op_name).starts_with("embedding");
        if (work == Work::kDoesNotCount || looked_up ||
            weights_[weight].row.layout != WeightLayout::kLinear) {
          continue;
        }
        places_[at].work += static_cast<double>(weights_[weight].bytes);
      }
    }
  }

  // Weights that none of these passes reads (towers of pictures) are the first place's.
  std::vector<SplitPlace> take() {
    std::vector<bool> read(weights_.size());
    for (const SplitPlace& place : places_) {
      for (const uint32_t weight : place.weights) read[weight] = true;
    }
    for (uint32_t i = 0; i < read.size() && !places_.empty(); ++i) {
      if (!read[i]) places_[0].weights.push_back(i);
    }
    return std::move(places_);
  }

 private:
  const std::vector<PackedWeight>& weights_;
  std::vector<SplitPlace> places_;
  std::map<std::string, size_t> index_;
};

Result<std::vector<SplitPlace>> places_of(const ModelWeights& read) {
  const ModelFacts& facts = read.family->facts();
  Places places(read.weights);
  const int64_t tokens = facts.max_source > 0 ? std::min<int64_t>(facts.max_source, 8) : 8;
  const auto forward = sized_graphs(*read.family, read.weights, {.batch = 1, .tokens = tokens});
  if (!forward) return forward.error().with_context("[group] no pass of this model can be planned");
  places.add((*forward)[0].graph, Places::Work::kCounts);
  if (facts.head != HeadKind::kLanguage) return places.take();
  // What does not generate in steps has no such graphs.
  const auto steps =
      sized_graphs(*read.family, read.weights,
                   {.batch = 1, .tokens = std::max<int64_t>(1, tokens / 2), .new_tokens = 2});
  if (!steps) return places.take();
  for (const SizedGraph& graph : *steps) places.add(graph.graph, Places::Work::kDoesNotCount);
  return places.take();
}

}  // namespace

Result<std::shared_ptr<const DeviceGroupState>> make_group(
    std::span<const std::shared_ptr<VulkanDevice>> devices, const DeviceGroupOptions& options) {
  VKF_CHECK(check_options(devices.size(), options));
  auto group = std::make_shared<DeviceGroupState>();
  for (size_t i = 0; i < devices.size(); ++i) {
    VKF_ASSIGN(GroupMember member, member_of_device(devices[i], i, options));
    group->members.push_back(std::move(member));
  }
  group->lanes = lanes_of(devices.size(), options);
  return std::shared_ptr<const DeviceGroupState>(std::move(group));
}

Result<std::shared_ptr<const DeviceGroupState>> make_linked_group(
    std::shared_ptr<VulkanDevice> own, std::shared_ptr<DeviceLink> link,
    const DeviceGroupOptions& options) {
  const size_t count = link->members();
  VKF_CHECK(check_options(count, options));
  auto group = std::make_shared<DeviceGroupState>();
  VKF_ASSIGN(GroupMember mine, member_of_device(own, link->own(), options));
  for (size_t m = 0; m < count; ++m) {
    MemberFacts facts{mine.speed, mine.memory, mine.max_storage_range, {}};
    mine.name.copy(facts.name.data(), facts.name.size() - 1);
    VKF_CHECK(link->broadcast(m, 0, std::as_writable_bytes(std::span(&facts, 1))));
    facts.name.back() = '\0';
    group->members.push_back({.device = m == link->own() ? own : nullptr,
                              .name = facts.name.data(),
                              .speed = facts.speed,
                              .memory = facts.memory,
                              .max_storage_range = facts.max_storage_range});
  }
  group->link = std::move(link);
  group->lanes = lanes_of(count, options);
  return std::shared_ptr<const DeviceGroupState>(std::move(group));
}

DeviceCaps group_caps(const DeviceGroupState& group) {
  std::optional<DeviceCaps> caps;
  uint64_t range = UINT64_MAX;
  for (const GroupMember& member : group.members) {
    range = std::min(range, member.max_storage_range);
    if (!caps && member.device) caps = member.device->caps();
  }
  caps->limits.max_storage_range = static_cast<decltype(caps->limits.max_storage_range)>(range);
  return *caps;
}

Result<ModelSplit> plan_split(const ModelWeights& read,
                              std::shared_ptr<const DeviceGroupState> group) {
  VKF_ASSIGN(const std::vector<SplitPlace> places, places_of(read));
  std::vector<uint64_t> bytes;
  for (const PackedWeight& weight : read.weights) bytes.push_back(weight.bytes);
  const std::vector<GroupMember>& members = group->members;
  VKF_ASSIGN(const std::vector<size_t> first, share_places(places, bytes, members));
  double all = 0;
  for (const SplitPlace& place : places) all += place.work;
  ModelSplit split;
  for (size_t m = 0; m < members.size(); ++m) {
    const size_t end = m + 1 < members.size() ? first[m + 1] : places.size();
    GroupStage stage{.device = members[m].name, .speed = members[m].speed};
    stage.first = places[first[m]].name;
    stage.last = places[end - 1].name;
    std::vector<bool> held(read.weights.size());
    for (size_t i = first[m]; i < end; ++i) {
      split.member_of.emplace(places[i].name, m);
      if (all > 0) stage.work += places[i].work / all;
      for (const uint32_t weight : places[i].weights) {
        if (!held[weight]) stage.weight_bytes += bytes[weight];
        held[weight] = true;
      }
    }
    split.held.push_back(std::move(held));
    split.stages.push_back(std::move(stage));
  }
  split.group = std::move(group);
  return split;
}

}  // namespace vkformer
