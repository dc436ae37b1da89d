#include "load/split_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Of a device's memory what weights may take: the rest is for keys, values and activations.
constexpr double kMostOfMemory = 0.9;
// What goes from a member to the next beside the values of layers: positions, tokens, masks.
constexpr double kStateBytes = 256;

Error too_little_memory(std::span<const uint64_t> weight_bytes,
                        std::span<const GroupMember> members) {
  uint64_t wanted = 0;
  for (const uint64_t bytes : weight_bytes) wanted += bytes;
  std::string left;
  for (const GroupMember& member : members) {
    left += message({left.empty() ? "" : ", ", member.name, " has ", member.memory});
  }
  return {ErrorCode::kOutOfMemory,
          message({"[group] the model's weights take ", wanted,
                   " bytes, and no cut between layers leaves every device less than nine tenths "
                   "of its memory: ",
                   left, " bytes left; add a device, or use a smaller format of the weights"})};
}

// Sums over ranges of places, so that they are added up once.
class RangeSums {
 public:
  RangeSums(std::span<const SplitPlace> places, std::span<const uint64_t> weight_bytes,
            const SplitDemand& demand)
      : count_(places.size()), bytes_(count_ * count_) {
    work_.push_back(0);
    multiplies_.push_back(0);
    dispatches_.push_back(0);
    for (const SplitPlace& place : places) {
      work_.push_back(work_.back() + place.work);
      multiplies_.push_back(multiplies_.back() + place.multiplies);
      dispatches_.push_back(dispatches_.back() + place.dispatches);
      handed_.push_back(place.handed);
      if (place.cache > 0) keys_end_ = handed_.size();
    }
    for (size_t begin = 0; begin < count_; ++begin) {
      std::set<uint32_t> held;
      double bytes = 0;
      for (size_t i = begin; i < count_; ++i) {
        for (const uint32_t weight : places[i].weights) {
          if (held.insert(weight).second) bytes += static_cast<double>(weight_bytes[weight]);
        }
        bytes += places[i].cache * demand.tokens * demand.rows * demand.lanes;
        bytes_[begin * count_ + i] = bytes;
      }
    }
  }

  size_t count() const { return count_; }
  double bytes(const PlaceRange& range) const {
    return bytes_[range.begin * count_ + range.end - 1];
  }
  // What of a range a prompt's pass comes to: nothing after the last keys and values.
  PlaceRange of_prompt(const PlaceRange& range) const {
    return {std::min(range.begin, keys_end_), std::min(range.end, keys_end_)};
  }
  // Seconds of a pass of `rows` tokens at a member.
  double seconds(const PlaceRange& range, const GroupMember& member, double rows) const {
    const double work = work_[range.end] - work_[range.begin];
    if (member.share > 0) return work / member.share;
    const DeviceSpeed& speed = member.speed;
    const double operations = 2 * rows * (multiplies_[range.end] - multiplies_[range.begin]);
    const double reading = speed.read_rate > 0 ? work / speed.read_rate : 0;
    const double computing = speed.flops > 0 ? operations / speed.flops : 0;
    return speed.submit + (dispatches_[range.end] - dispatches_[range.begin]) * speed.launch +
           std::max(reading, computing);
  }
  // Bytes of such a pass that the member before this range hands to it.
  double handed(const PlaceRange& range, double rows) const {
    return rows * handed_[range.begin] + kStateBytes;
  }

 private:
  size_t count_;
  size_t keys_end_ = 0;        // after the last place with keys and values
  std::vector<double> bytes_;  // by first and last place
  std::vector<double> work_, multiplies_, dispatches_;
  std::vector<double> handed_;
};

// The ranges of neighboring members whose slowest takes as little time as can be; nothing where
// memory does not allow any.
std::optional<std::vector<PlaceRange>> even_ranges(const RangeSums& sums,
                                                   std::span<const GroupMember> members,
                                                   double rows) {
  const size_t count = sums.count();
  if (members.size() > count) return std::nullopt;
  // best[m][i]: the time of the slowest of the first m members, which have the first i places.
  std::vector<std::vector<double>> best(members.size() + 1, std::vector<double>(count + 1, kNever));
  std::vector<std::vector<size_t>> from(members.size() + 1, std::vector<size_t>(count + 1, 0));
  best[0][0] = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    const double most = kMostOfMemory * static_cast<double>(members[m].memory);
    for (size_t begin = m; begin < count; ++begin) {
      if (best[m][begin] == kNever) continue;
      for (size_t end = begin + 1; end <= count; ++end) {
        if (sums.bytes({begin, end}) > most) break;
        const double slowest =
            std::max(best[m][begin], sums.seconds({begin, end}, members[m], rows));
        if (slowest >= best[m + 1][end]) continue;
        best[m + 1][end] = slowest;
        from[m + 1][end] = begin;
      }
    }
  }
  if (best[members.size()][count] == kNever) return std::nullopt;
  std::vector<PlaceRange> ranges(members.size());
  for (size_t m = members.size(), end = count; m > 0; --m) {
    ranges[m - 1] = {from[m][end], end};
    end = from[m][end];
  }
  return ranges;
}

// Parts of a prompt follow each other through the members, a round of the slowest apart. The token
// after them is a step's.
void estimate_prompt(const RangeSums& sums, std::span<const GroupMember> members,
                     std::span<const PlaceRange> ranges, const SplitDemand& demand,
                     SplitEstimate& estimate) {
  estimate.first_token = estimate.step;
  const double tokens = demand.tokens - 1;
  if (tokens < 1) return;
  const double part = demand.part > 0 ? std::min(demand.part, tokens) : tokens;
  const double parts = std::ceil(tokens / part);
  double through = 0, slowest = 0, busy = 0, users = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    const PlaceRange own = sums.of_prompt(ranges[m]);
    if (own.empty()) continue;
    const double computes = sums.seconds(own, members[m], part);
    const bool hands = m + 1 < members.size() && !sums.of_prompt(ranges[m + 1]).empty();
    const double carried = hands ? members[m].next.seconds(sums.handed(ranges[m + 1], part)) : 0;
    through += computes + carried;
    slowest = std::max(slowest, computes + carried);
    busy += parts * computes;
    ++users;
  }
  const double all = through + (parts - 1) * slowest;
  estimate.first_token += all;
  if (all > 0) estimate.prompt_bubbles = 1 - busy / (users * all);
}

// Lanes follow each other through the members. A step takes what one lane takes through all of
// them, or what the slowest member takes for all lanes.
SplitEstimate estimate_of(const RangeSums& sums, std::span<const GroupMember> members,
                          std::span<const PlaceRange> ranges, const SplitDemand& demand) {
  const double lanes = demand.lanes;
  double step = 0, slowest = 0, busy = 0, link = 0, users = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    const double own = sums.seconds(ranges[m], members[m], demand.rows);
    step += own;
    busy += own;
    slowest = std::max(slowest, own);
    ++users;
    if (m + 1 == members.size()) break;
    const double carried = members[m].next.seconds(sums.handed(ranges[m + 1], demand.rows));
    // The token that the last member chooses goes to all, at most by all links.
    step += carried + members[m].next.seconds(kStateBytes);
    link = std::max(link, carried);
  }
  const double period = std::max(step, lanes * slowest);
  SplitEstimate estimate{.step = step};
  estimate_prompt(sums, members, ranges, demand, estimate);
  if (period <= 0) return estimate;
  estimate.tokens = lanes * demand.rows / period;
  estimate.bubbles = 1 - lanes * busy / (users * period);
  estimate.link_use = std::min(1.0, lanes * link / period);
  return estimate;
}

}  // namespace

GroupStage stage_of(std::span<const SplitPlace> places, std::span<const uint64_t> weight_bytes,
                    const GroupMember& member, const PlaceRange& range) {
  GroupStage stage{.device = member.name,
                   .read_rate = member.share > 0 ? member.share : member.speed.read_rate,
                   .link_latency = member.next.latency,
                   .link_rate = member.next.rate};
  if (range.empty()) return stage;
  stage.first = places[range.begin].name;
  stage.last = places[range.end - 1].name;
  double all = 0;
  for (const SplitPlace& place : places) all += place.work;
  std::set<uint32_t> held;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (all > 0) stage.work += places[i].work / all;
    for (const uint32_t weight : places[i].weights) {
      if (held.insert(weight).second) stage.weight_bytes += weight_bytes[weight];
    }
  }
  return stage;
}

// A step takes what the slowest member takes. Before each of its pieces of work a member hands its
// sums to all others and gets theirs.
Result<DividedPlan> plan_divided(std::span<const SplitPlace> places,
                                 std::span<const uint64_t> weight_bytes,
                                 std::span<const GroupMember> members) {
  DividedPlan plan;
  double all = 0, exchange = 0;
  for (const SplitPlace& place : places) {
    plan.member_of.push_back(member_of_part(place.name));
    all += place.work;
  }
  for (size_t m = 0; m < members.size(); ++m) {
    const GroupMember& member = members[m];
    GroupStage stage{.device = member.name,
                     .read_rate = member.together.read_rate,
                     .link_latency = member.next.latency,
                     .link_rate = member.next.rate};
    std::set<uint32_t> held;
    double work = 0, dispatches = 0, visits = 0, handed = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      if (plan.member_of[i] != m) continue;
      const SplitPlace& place = places[i];
      if (stage.first.empty()) stage.first = place.name;
      stage.last = place.name;
      held.insert(place.weights.begin(), place.weights.end());
      work += place.work;
      dispatches += place.dispatches;
      visits += place.visits;
      handed = std::max(handed, place.handed);
    }
    for (const uint32_t weight : held) stage.weight_bytes += weight_bytes[weight];
    if (static_cast<double>(stage.weight_bytes) >
        kMostOfMemory * static_cast<double>(member.memory)) {
      return Error{ErrorCode::kOutOfMemory,
                   message({"[group] ", member.name, " has ", member.memory,
                            " bytes left, of which weights may take nine tenths, but its part of "
                            "every layer takes ",
                            stage.weight_bytes,
                            " bytes; add a device, or use a smaller format of the weights"})};
    }
    if (all > 0) stage.work = work / all;
    const DeviceSpeed& speed = member.together;
    const double reading = speed.read_rate > 0 ? work / speed.read_rate : 0;
    plan.step = std::max(plan.step, visits * speed.submit + dispatches * speed.launch + reading);
    const double others = static_cast<double>(members.size() - 1);
    if (visits > 0 && m + 1 < members.size()) {
      const double message = member.next.seconds(handed / visits);
      exchange = std::max(exchange, 2 * others * visits * message);
    }
    plan.stages.push_back(std::move(stage));
  }
  plan.step += exchange;
  return plan;
}

Result<SplitPlan> plan_ranges(std::span<const SplitPlace> places,
                              std::span<const uint64_t> weight_bytes,
                              std::span<const GroupMember> members, const SplitDemand& demand) {
  const bool all = demand.members == SplitDemand::Members::kAll;
  if (all && places.size() < members.size()) {
    return unsupported(message({"[group] this model has ", places.size(),
                                " places to cut between, fewer than the ", members.size(),
                                " devices of the group; use fewer devices"}));
  }
  const RangeSums sums(places, weight_bytes, demand);
  std::optional<SplitPlan> plan;
  for (size_t users = all ? members.size() : 1; users <= members.size(); ++users) {
    for (size_t first = 0; first + users <= members.size(); ++first) {
      const auto chosen = members.subspan(first, users);
      const auto ranges = even_ranges(sums, chosen, demand.rows);
      if (!ranges) continue;
      const SplitEstimate estimate = estimate_of(sums, chosen, *ranges, demand);
      if (plan && estimate.tokens <= plan->estimate.tokens) continue;
      plan = SplitPlan{std::vector<PlaceRange>(members.size()), estimate};
      std::copy(ranges->begin(), ranges->end(),
                plan->ranges.begin() + static_cast<ptrdiff_t>(first));
    }
  }
  if (!plan) return too_little_memory(weight_bytes, members);
  return *plan;
}

}  // namespace vkformer
