#include "load/model_split.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Of a device's memory what weights may take: the rest is for keys, values and activations.
constexpr double kMostOfMemory = 0.9;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

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

}  // namespace

std::string place_of(const std::string& label) {
  size_t end = label.size();
  for (size_t begin = 0; begin < label.size();) {
    const size_t dot = std::min(label.find('.', begin), label.size());
    if (is_number(label.substr(begin, dot - begin))) {
      end = dot;
      break;
    }
    begin = dot + 1;
  }
  return label.substr(0, end);
}

Result<std::vector<size_t>> share_places(std::span<const SplitPlace> places,
                                         std::span<const uint64_t> weight_bytes,
                                         std::span<const GroupMember> members) {
  const size_t count = places.size();
  if (count < members.size()) {
    return unsupported(
        message({"[group] this model has ", count, " places to cut between, fewer than the ",
                 members.size(), " devices of the group; use fewer devices"}));
  }
  // best[m][i]: the time of the slowest of the first m members, which have the first i places.
  std::vector<std::vector<double>> best(members.size() + 1, std::vector<double>(count + 1, kNever));
  std::vector<std::vector<size_t>> from(members.size() + 1, std::vector<size_t>(count + 1, 0));
  best[0][0] = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    const double most = kMostOfMemory * static_cast<double>(members[m].memory);
    for (size_t begin = m; begin < count; ++begin) {
      if (best[m][begin] == kNever) continue;
      std::set<uint32_t> held;
      double bytes = 0, work = 0;
      for (size_t end = begin + 1; end <= count; ++end) {
        const SplitPlace& place = places[end - 1];
        for (const uint32_t weight : place.weights) {
          if (held.insert(weight).second) bytes += static_cast<double>(weight_bytes[weight]);
        }
        if (bytes > most) break;
        work += place.work;
        const double slowest = std::max(best[m][begin], work / members[m].speed);
        if (slowest >= best[m + 1][end]) continue;
        best[m + 1][end] = slowest;
        from[m + 1][end] = begin;
      }
    }
  }
  if (best[members.size()][count] == kNever) return too_little_memory(weight_bytes, members);
  std::vector<size_t> first(members.size());
  for (size_t m = members.size(), end = count; m > 0; --m) {
    end = from[m][end];
    first[m - 1] = end;
  }
  return first;
}

}  // namespace vkformer
