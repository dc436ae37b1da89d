// Plans who of a group has which layers of a model, and estimates how fast the group is then.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "load/model_split.h"

namespace vkformer {

// What a plan of a split knows of a place.
struct SplitPlace {
  std::string name;
  std::vector<uint32_t> weights;  // that it reads, by index
  double work = 0;                // bytes of matrices that a pass reads there
  double multiplies = 0;          // of these matrices with one row
  double dispatches = 0;          // of a pass
  double visits = 0;              // how often a pass comes to it
  double handed = 0;              // bytes a token that it and later places read of earlier ones
  double cache = 0;               // bytes a token of a text that a generation keeps there
};

// Places [begin, end) of a member.
struct PlaceRange {
  size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

// What a group is to do.
struct SplitDemand {
  uint32_t lanes = 1;  // parts of a batch under way at once
  double rows = 1;     // texts of a lane, which a step computes together
  double tokens = 0;   // that are kept of each text
  double part = 0;     // tokens of the parts that a prompt is read in; 0: one pass
  // kAll: every member gets a part. kBest: a member with a slow link is omitted.
  enum class Members : uint8_t { kAll, kBest } members = Members::kBest;
};

// Of a generation: texts one after the other, and as many at once as there are lanes.
struct SplitEstimate {
  double step = 0;      // seconds from a token of a text to its next
  double tokens = 0;    // a second, of all texts together
  double bubbles = 0;   // share of the time in which a member that has a part waits, 0 to 1
  double link_use = 0;  // share of the time in which the busiest link carries something, 0 to 1
  // Of one prompt of SplitDemand::tokens tokens, alone on the members.
  double first_token = 0;     // seconds until the token after it
  double prompt_bubbles = 0;  // share of the prompt's time in which a member waits, 0 to 1
};

struct SplitPlan {
  std::vector<PlaceRange> ranges;  // by member
  SplitEstimate estimate;
};

// Members in their order take runs of places, so that the slowest takes as little time as can be.
// Of all choices of neighboring members that SplitDemand allows, the one is taken in which all
// lanes get their next token soonest. What a member holds fits into nine tenths of its memory; an
// error names what is missing.
Result<SplitPlan> plan_ranges(std::span<const SplitPlace> places,
                              std::span<const uint64_t> weight_bytes,
                              std::span<const GroupMember> members, const SplitDemand& demand);

// A plan of layers that are divided among all members: the member of each place, and what it
// estimates. An error names what a member has too little memory for.
struct DividedPlan {
  std::vector<size_t> member_of;   // by place
  std::vector<GroupStage> stages;  // by member
  double step = 0;                 // seconds from a token of a text to its next
};
Result<DividedPlan> plan_divided(std::span<const SplitPlace> places,
                                 std::span<const uint64_t> weight_bytes,
                                 std::span<const GroupMember> members);

// What a member does that has this range; nothing where the range is empty.
GroupStage stage_of(std::span<const SplitPlace> places, std::span<const uint64_t> weight_bytes,
                    const GroupMember& member, const PlaceRange& range);

}  // namespace vkformer
