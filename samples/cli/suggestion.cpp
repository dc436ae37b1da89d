#include "suggestion.h"

#include <algorithm>

namespace vkformer::cli {

namespace {

// Longer names are not typed by hand, and the work grows with the square.
constexpr size_t kMostBytes = 128;

// Distance of Damerau and Levenshtein, in bytes, without edits inside a swapped pair.
size_t typing_errors(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> errors(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        errors[i][j] = i + j;
        continue;
      }
      const size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
      size_t least =
          std::min({errors[i - 1][j] + 1, errors[i][j - 1] + 1, errors[i - 1][j - 1] + wrong});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) least = std::min(least, errors[i - 2][j - 2] + 1);
      errors[i][j] = least;
    }
  }
  return errors[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  constexpr size_t kLettersPerError = 3;
  std::string nearest;
  size_t least = std::max<size_t>(1, name.size() / kLettersPerError) + 1;
  if (name.empty() || name.size() > kMostBytes) return nearest;
  for (const std::string& candidate : known) {
    if (candidate.size() > kMostBytes) continue;
    const size_t errors = candidate.starts_with(name) ? 1 : typing_errors(name, candidate);
    if (errors >= least) continue;
    least = errors;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace vkformer::cli
