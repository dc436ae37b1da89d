#include "session/group_making.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <type_traits>

#include "base/fnv.h"
#include "base/message.h"
#include "load/split_plan.h"
#include "params/decode_state.h"
#include "recording/device_speed.h"
#include "session/split_places.h"
#include "vkformer/c/values.h"
#include "vulkan/memory_left.h"

namespace vkformer {
namespace {

constexpr size_t kMostMembers = 64;
constexpr int kMostLanes = 64;
constexpr int kMostPart = VKF_MAX_SLOTS;

Status check_options(size_t members, const DeviceGroupOptions& options) {
  if (members < 2 || members > kMostMembers) {
    return invalid_argument(message({"[group] has ", members, " devices, but must have 2 to ",
                                     kMostMembers, "; one device alone needs no group"}));
  }
  if (options.lanes < 0 || options.lanes > kMostLanes) {
    return invalid_argument(
        message({"[group] lanes is ", options.lanes, ", but must lie between 0 and ", kMostLanes}));
  }
  if (options.prompt_part < 0 || options.prompt_part > kMostPart) {
    return invalid_argument(message({"[group] prompt_part is ", options.prompt_part,
                                     " tokens, but must lie between 0 and ", kMostPart,
                                     "; 0 reads every prompt in one pass."}));
  }
  if (!options.shares.empty() && options.shares.size() != members) {
    return invalid_argument(message({"[group] got ", options.shares.size(), " shares for ", members,
                                     " devices; give one for each, or none"}));
  }
  if (options.split != GroupSplit::kLayers && !options.shares.empty()) {
    return invalid_argument(message(
        {"[group] shares are given, but the split is '", choice_name(options.split),
         "', and one by tensors divides every layer evenly; omit the shares, or split by layers"}));
  }
  for (const double share : options.shares) {
    if (std::isfinite(share) && share > 0) continue;
    return invalid_argument(
        message({"[group] a share is ", share, ", but must be a positive number"}));
  }
  return {};
}

GroupMember member_of_device(const std::shared_ptr<VulkanDevice>& device, size_t index,
                             const DeviceGroupOptions& options) {
  GroupMember member{.device = device, .name = device->info().name};
  member.memory = memory_left(*device);
  member.max_storage_range = device->caps().limits.max_storage_range;
  if (!options.shares.empty()) member.share = options.shares[index];
  return member;
}

// The members of one process at the same time, each on its own thread.
Status measure_together(std::vector<GroupMember>& members) {
  std::vector<Result<DeviceSpeed>> speeds(members.size(), DeviceSpeed());
  JobThreads threads(members.size() - 1);
  const Helpers helpers{[&](std::function<void()> job) { threads.run(std::move(job)); },
                        members.size() - 1};
  share_work(helpers, members.size(),
             [&](size_t m) { speeds[m] = measure_speed(members[m].device); });
  for (size_t m = 0; m < members.size(); ++m) {
    VKF_ASSIGN(members[m].together, std::move(speeds[m]));
  }
  return {};
}

// Every member computes what is between the parts of a layer: the roundings of another driver would
// give other values there.
Status check_alike(const DeviceGroupState& group) {
  if (group.split != GroupSplit::kTensors) return {};
  for (const GroupMember& member : group.members) {
    if (member.name == group.members[0].name) continue;
    return unsupported(message({"[group] a split by tensors is for devices alike, but one is ",
                                group.members[0].name, " and another ", member.name,
                                "; split by layers (DeviceGroupOptions::split, --split layers)"}));
  }
  return {};
}

// What a process tells the others of its device. All have the same machine's byte order.
struct MemberFacts {
  DeviceSpeed speed;
  double share = 0;
  uint64_t memory = 0, max_storage_range = 0;
  std::array<char, 128> name{};
};

template <class Value>
Status broadcast(DeviceLink& link, size_t from, Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return link.broadcast(from, 0, std::as_writable_bytes(std::span(&value, 1)));
}

// What each member has, at all of them.
template <class Value>
Result<std::vector<Value>> gather(DeviceLink& link, const Value& own) {
  std::vector<Value> values(link.members(), own);
  for (size_t m = 0; m < values.size(); ++m) VKF_CHECK(broadcast(link, m, values[m]));
  return values;
}

// First of all, since versions may say other things to each other.
Status check_same_version(DeviceLink& link) {
  std::array<char, 32> own{};
  std::string_view(vkf_version_text()).copy(own.data(), own.size() - 1);
  VKF_ASSIGN(std::vector<decltype(own)> versions, gather(link, own));
  for (size_t m = 0; m < versions.size(); ++m) {
    versions[m].back() = '\0';
    if (versions[m] == own) continue;
    return unsupported(
        message({"[group] process ", m, " runs vkformer ", versions[m].data(), ", process ",
                 link.own(), " runs ", own.data(), "; install one version on all machines"}));
  }
  return {};
}

// Of messages from one member to the next and back, of no size and of a large one.
Result<LinkSpeed> measure_link(DeviceLink& link, size_t from) {
  constexpr size_t kLarge = size_t{1} << 20;
  constexpr int kTries = 5;
  const size_t to = from + 1;
  std::vector<std::byte> bytes(kLarge);
  LinkSpeed speed;
  for (const size_t size : {sizeof(uint32_t), kLarge}) {
    const std::span<std::byte> message = std::span(bytes).first(size);
    double best = 0;
    for (int i = 0; i < kTries; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      if (link.own() == from) {
        VKF_CHECK(link.send(to, 0, message));
        VKF_CHECK(link.receive(to, 0, message));
      } else if (link.own() == to) {
        VKF_CHECK(link.receive(from, 0, message));
        VKF_CHECK(link.send(from, 0, message));
      }
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      // The first message may have to open the connection.
      if (i == 1 || (i > 1 && taken.count() < best)) best = taken.count();
    }
    if (size < kLarge) {
      speed.latency = best / 2;
    } else {
      speed.rate = kLarge / std::max(best / 2 - speed.latency, 1e-9);
    }
  }
  VKF_CHECK(broadcast(link, from, speed));
  return speed;
}

}  // namespace

Result<std::shared_ptr<const DeviceGroupState>> make_group(
    std::span<const std::shared_ptr<VulkanDevice>> devices, const DeviceGroupOptions& options) {
  VKF_CHECK(check_options(devices.size(), options));
  auto group = std::make_shared<DeviceGroupState>();
  for (size_t i = 0; i < devices.size(); ++i) {
    GroupMember member = member_of_device(devices[i], i, options);
    if (options.shares.empty() && options.split != GroupSplit::kTensors) {
      VKF_ASSIGN(member.speed, measure_speed(devices[i]));
    }
    group->members.push_back(std::move(member));
  }
  group->lanes = static_cast<uint32_t>(options.lanes);
  group->prompt_part = static_cast<uint32_t>(options.prompt_part);
  group->split = options.split;
  VKF_CHECK(check_alike(*group));
  if (options.split != GroupSplit::kLayers) VKF_CHECK(measure_together(group->members));
  return std::shared_ptr<const DeviceGroupState>(std::move(group));
}

Result<std::shared_ptr<const DeviceGroupState>> make_linked_group(
    std::shared_ptr<VulkanDevice> own, std::shared_ptr<DeviceLink> link,
    const DeviceGroupOptions& options) {
  const size_t count = link->members();
  VKF_CHECK(check_options(count, options));
  VKF_CHECK(check_same_version(*link));
  auto group = std::make_shared<DeviceGroupState>();
  GroupMember mine = member_of_device(own, link->own(), options);
  if (options.shares.empty()) {
    VKF_ASSIGN(mine.speed, measure_speed(own));
  }
  MemberFacts own_facts{.speed = mine.speed,
                        .share = mine.share,
                        .memory = mine.memory,
                        .max_storage_range = mine.max_storage_range};
  mine.name.copy(own_facts.name.data(), own_facts.name.size() - 1);
  // All hear of all before anything is compared: who gave up before would leave others waiting.
  VKF_ASSIGN(const std::vector<MemberFacts> all, gather(*link, own_facts));
  for (size_t m = 0; m < count; ++m) {
    const MemberFacts& facts = all[m];
    group->members.push_back(
        {.device = m == link->own() ? own : nullptr,
         .name = facts.name.data(),
         .speed = facts.speed,
         .together = facts.speed,  // all measure after one exchange of versions
         .share = facts.share,
         .memory = facts.memory,
         .max_storage_range = facts.max_storage_range});
  }
  for (size_t m = 0; m + 1 < count; ++m) {
    VKF_ASSIGN(group->members[m].next, measure_link(*link, m));
  }
  group->link = std::move(link);
  group->lanes = static_cast<uint32_t>(options.lanes);
  group->prompt_part = static_cast<uint32_t>(options.prompt_part);
  group->split = options.split;
  VKF_CHECK(check_alike(*group));
  return std::shared_ptr<const DeviceGroupState>(std::move(group));
}

Result<std::shared_ptr<const DeviceGroupState>> group_split_by(const DeviceGroupState& group,
                                                               GroupSplit split) {
  auto made = std::make_shared<DeviceGroupState>(group);
  made->split = split;
  if (made->lanes == 0 && split == GroupSplit::kLayers) {
    made->lanes = static_cast<uint32_t>(group.members.size());
  }
  made->lanes = std::max(made->lanes, 1u);
  VKF_CHECK(check_alike(*made));
  return std::shared_ptr<const DeviceGroupState>(std::move(made));
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

// Sizes and names of all tensors, and of each a few of its bytes: files that differ do so there.
uint64_t model_digest(const ModelWeights& read, const FileStore& files) {
  constexpr size_t kSample = 256;  // bytes from the beginning, and from the end
  uint64_t digest = kFnvStart;
  const auto add = [&](const void* data, size_t bytes) { digest = fnv1a(data, bytes, digest); };
  if (const auto config = files.open(config_name(files))) {
    add(config->bytes().data(), config->bytes().size());
  }
  for (const std::string& name : read.checkpoint->names()) {
    const TensorView& view = *read.checkpoint->find(name);
    const size_t size = view.bytes.size(), part = std::min(size, kSample);
    add(name.data(), name.size());
    add(&size, sizeof size);
    add(view.bytes.data(), part);
    add(view.bytes.data() + size - part, part);
  }
  for (const PackedWeight& weight : read.weights) {
    add(&weight.format, sizeof weight.format);
    add(&weight.bytes, sizeof weight.bytes);
  }
  add(&read.precision, sizeof read.precision);
  return digest;
}

Status check_same_model(const ModelWeights& read, const FileStore& files,
                        const DeviceGroupState& group) {
  if (!group.link) return {};
  const uint64_t own = model_digest(read, files);
  VKF_ASSIGN(const std::vector<uint64_t> digests, gather(*group.link, own));
  for (size_t m = 0; m < digests.size(); ++m) {
    if (digests[m] == own) continue;
    return invalid_argument(
        message({"[group] process ", m, " has another model than process ", group.link->own(),
                 ", or loads it with other options; give all of them the same files (",
                 files.label(), ") and the same options"}));
  }
  return {};
}

namespace {

Result<ModelSplit> plan_tensor_split(const std::vector<SplitPlace>& places,
                                     std::span<const uint64_t> bytes,
                                     std::shared_ptr<const DeviceGroupState> group) {
  VKF_ASSIGN(DividedPlan plan, plan_divided(places, bytes, group->members));
  ModelSplit split;
  split.plan.split = GroupSplit::kTensors;
  split.plan.stages = std::move(plan.stages);
  split.plan.step_seconds = plan.step;
  split.plan.tokens_per_second = plan.step > 0 ? 1 / plan.step : 0;
  split.held.assign(group->members.size(), std::vector<bool>(bytes.size()));
  for (size_t i = 0; i < places.size(); ++i) {
    split.member_of.emplace(places[i].name, plan.member_of[i]);
    for (const uint32_t weight : places[i].weights) split.held[plan.member_of[i]][weight] = true;
  }
  split.group = std::move(group);
  return split;
}

}  // namespace

Result<ModelSplit> plan_split(const ModelWeights& read,
                              std::shared_ptr<const DeviceGroupState> group) {
  VKF_ASSIGN(const std::vector<SplitPlace> places, split_places(*read.family, read.weights));
  std::vector<uint64_t> bytes;
  for (const PackedWeight& weight : read.weights) bytes.push_back(weight.bytes);
  if (group->split == GroupSplit::kTensors) {
    return plan_tensor_split(places, bytes, std::move(group));
  }
  const std::vector<GroupMember>& members = group->members;
  // Devices of one process were named one by one, and shares are for each: all have a part then.
  SplitDemand demand{.lanes = group->lanes};
  if (!group->link || members[0].share > 0) demand.members = SplitDemand::Members::kAll;
  VKF_ASSIGN(const SplitPlan plan, plan_ranges(places, bytes, members, demand));
  ModelSplit split;
  if (members[0].share == 0) {
    split.plan.step_seconds = plan.estimate.step;
    split.plan.tokens_per_second = plan.estimate.tokens;
  }
  for (size_t m = 0; m < members.size(); ++m) {
    const PlaceRange& range = plan.ranges[m];
    std::vector<bool> held(read.weights.size());
    for (size_t i = range.begin; i < range.end; ++i) {
      split.member_of.emplace(places[i].name, m);
      for (const uint32_t weight : places[i].weights) held[weight] = true;
    }
    split.held.push_back(std::move(held));
    split.plan.stages.push_back(stage_of(places, bytes, members[m], range));
  }
  split.group = std::move(group);
  return split;
}

}  // namespace vkformer
