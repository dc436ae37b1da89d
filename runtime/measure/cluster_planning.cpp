#include "measure/cluster_planning.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/message.h"
#include "params/decode_state.h"
#include "session/split_places.h"

namespace vkformer {
namespace {

constexpr int64_t kMostDevices = 1 << 16;
constexpr int64_t kMostNodes = 1 << 16;
constexpr int64_t kMostTexts = 1 << 16;
constexpr int64_t kMostTokens = int64_t{1} << 32;
constexpr int64_t kMostDepth = 256;

Status check_number(const char* what, double value, double least) {
  if (std::isfinite(value) && value >= least) return {};
  return invalid_argument(
      message({"[cluster] ", what, " is ", value, ", but must be at least ", least}));
}

Status check_count(const char* what, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return {};
  return invalid_argument(
      message({"[cluster] ", what, " is ", value, ", but must lie between 1 and ", most}));
}

Status check_options(const ClusterOptions& options) {
  VKF_CHECK(check_count("nodes", options.nodes, kMostNodes));
  VKF_CHECK(check_count("texts", options.texts, kMostTexts));
  VKF_CHECK(check_count("tokens", options.tokens, kMostTokens));
  if (options.prompt_part != 0) {
    VKF_CHECK(check_count("the tokens of a prompt's part", options.prompt_part, VKF_MAX_SLOTS));
  }
  if (options.devices.empty()) {
    return invalid_argument("[cluster] a node has no device; describe one at least");
  }
  int64_t devices = 0;
  for (const ClusterDevice& device : options.devices) {
    VKF_CHECK(check_count("a device's count", device.count, kMostDevices));
    VKF_CHECK(check_number("a device's memory", static_cast<double>(device.memory_bytes), 1));
    VKF_CHECK(check_number("a device's read rate", device.read_rate, 1));
    VKF_CHECK(check_number("a device's operations a second", device.flops, 0));
    VKF_CHECK(check_number("a device's launch", device.launch, 0));
    VKF_CHECK(check_number("a device's submit", device.submit, 0));
    devices += device.count;
  }
  VKF_CHECK(check_count("the number of devices", devices * options.nodes, kMostDevices));
  VKF_CHECK(check_number("the latency in a node", options.in_node.latency, 0));
  if (devices > 1) VKF_CHECK(check_number("the link's rate in a node", options.in_node.rate, 1));
  VKF_CHECK(check_number("the latency between nodes", options.between_nodes.latency, 0));
  if (options.nodes == 1) return {};
  return check_number("the link's rate between nodes", options.between_nodes.rate, 1);
}

// Devices in their order, node after node.
std::vector<GroupMember> members_of(const ClusterOptions& options) {
  std::vector<GroupMember> members;
  for (int64_t node = 0; node < options.nodes; ++node) {
    for (const ClusterDevice& device : options.devices) {
      GroupMember member{.device = nullptr, .name = device.name, .memory = device.memory_bytes};
      member.speed = {.read_rate = device.read_rate,
                      .flops = device.flops,
                      .launch = device.launch,
                      .submit = device.submit};
      member.next = {.latency = options.in_node.latency, .rate = options.in_node.rate};
      members.insert(members.end(), static_cast<size_t>(device.count), member);
    }
    members.back().next = {.latency = options.between_nodes.latency,
                           .rate = options.between_nodes.rate};
  }
  return members;
}

struct PlannedModel {
  std::vector<SplitPlace> places;
  std::vector<uint64_t> weight_bytes;
};

Result<PlannedModel> planned_model(const FileStore& files, const ClusterOptions& options) {
  VKF_ASSIGN(const std::unique_ptr<ModelFamily> family, load_family(files));
  const Checkpoint none = Checkpoint::none();
  VKF_CHECK(family->prepare(none));
  VKF_ASSIGN(const WeightTable table, family->weight_table(none));
  const std::vector<PackedWeight> weights = planned_weights(table, options.weights);
  PlannedModel model;
  VKF_ASSIGN(model.places, split_places(*family, weights));
  for (const PackedWeight& weight : weights) model.weight_bytes.push_back(weight.bytes);
  return model;
}

std::vector<ClusterStage> stages_of(const PlannedModel& model, std::span<const GroupMember> members,
                                    const SplitPlan& plan, const SplitDemand& demand) {
  std::vector<ClusterStage> stages;
  for (size_t m = 0; m < members.size(); ++m) {
    const PlaceRange& range = plan.ranges[m];
    ClusterStage own{.stage = stage_of(model.places, model.weight_bytes, members[m], range)};
    double cache = 0;
    for (size_t i = range.begin; i < range.end; ++i) {
      cache += model.places[i].cache * demand.tokens * demand.rows * demand.lanes;
    }
    own.cache_bytes = static_cast<uint64_t>(cache);
    own.memory_use = (static_cast<double>(own.stage.weight_bytes) + cache) /
                     static_cast<double>(members[m].memory);
    stages.push_back(std::move(own));
  }
  return stages;
}

// A pipeline of these members; two of alike members are planned once.
class Pipelines {
 public:
  Pipelines(const PlannedModel& model, const SplitDemand& demand)
      : model_(model), demand_(demand) {}

  const Result<SplitPlan>& plan(std::span<const GroupMember> members) {
    std::string key;
    for (const GroupMember& member : members) {
      key += member.name + message({"|", member.memory, "|", member.next.latency, "|",
                                    member.next.rate, "|", member.speed.read_rate, ";"});
    }
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    return plans_.emplace(key, plan_ranges(model_.places, model_.weight_bytes, members, demand_))
        .first->second;
  }

 private:
  const PlannedModel& model_;
  const SplitDemand& demand_;
  std::map<std::string, Result<SplitPlan>> plans_;
};

Result<ClusterSplit> split_of_depth(const PlannedModel& model, std::span<const GroupMember> members,
                                    size_t depth, const ClusterOptions& options) {
  const SplitDemand demand{.lanes = static_cast<uint32_t>(depth),
                           .rows = static_cast<double>(options.texts),
                           .tokens = static_cast<double>(options.tokens),
                           .part = static_cast<double>(options.prompt_part),
                           .members = SplitDemand::Members::kAll};
  ClusterSplit split{.depth = static_cast<int64_t>(depth)};
  Pipelines pipelines(model, demand);
  for (size_t first = 0; first + depth <= members.size(); first += depth) {
    const auto own = members.subspan(first, depth);
    const Result<SplitPlan>& plan = pipelines.plan(own);
    if (!plan) {
      if (first + 2 * depth > members.size() && split.pipelines == 0) return plan.error();
      continue;
    }
    if (split.pipelines++ == 0) split.stages = stages_of(model, own, *plan, demand);
    split.step_seconds = std::max(split.step_seconds, plan->estimate.step);
    split.tokens_per_second += plan->estimate.tokens;
    split.bubbles = std::max(split.bubbles, plan->estimate.bubbles);
    split.link_use = std::max(split.link_use, plan->estimate.link_use);
    split.first_token_seconds = std::max(split.first_token_seconds, plan->estimate.first_token);
    split.prompt_bubbles = std::max(split.prompt_bubbles, plan->estimate.prompt_bubbles);
  }
  split.idle = static_cast<int64_t>(members.size()) - split.pipelines * split.depth;
  return split;
}

}  // namespace

Result<ClusterPlan> plan_cluster_of(const FileStore& files, const ClusterOptions& options) {
  VKF_CHECK(check_options(options));
  VKF_ASSIGN(const PlannedModel model, planned_model(files, options));
  const std::vector<GroupMember> members = members_of(options);
  const size_t most = std::min({members.size(), model.places.size(), size_t{kMostDepth}});
  ClusterPlan plan;
  std::optional<Error> refused;
  for (size_t depth = 1; depth <= most; ++depth) {
    Result<ClusterSplit> split = split_of_depth(model, members, depth, options);
    if (!split) {
      refused = split.error();
      continue;
    }
    plan.splits.push_back(std::move(*split));
    if (plan.splits.back().tokens_per_second > plan.splits[plan.best].tokens_per_second) {
      plan.best = plan.splits.size() - 1;
    }
  }
  if (plan.splits.empty()) return *refused;
  return plan;
}

}  // namespace vkformer
