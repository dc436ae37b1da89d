#include "base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace vkformer {
namespace {

// Bytes of a name that are compared: names come from files, and the work grows with the square.
constexpr size_t kMostBytes = 256;

// Levenshtein's distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string> known) {
  std::string_view nearest;
  size_t least = SIZE_MAX;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name.substr(0, kMostBytes),
                                          std::string_view(candidate).substr(0, kMostBytes));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace vkformer
