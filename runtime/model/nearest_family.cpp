#include "model/nearest_family.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "base/message.h"

namespace vkformer {
namespace {

constexpr size_t kMostNames = 6;  // that a message lists of one kind
constexpr size_t kMostNameBytes = 64;

// "model.layers.3.mlp" -> "model.layers.*.mlp"
std::string without_numbers(const std::string& name) {
  std::string pattern;
  for (size_t i = 0; i < name.size();) {
    size_t end = std::min(name.find('.', i), name.size());
    const std::string part = name.substr(i, end - i);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    pattern += number ? "*" : part;
    if (end < name.size()) pattern += '.';
    i = end + 1;
  }
  return pattern;
}

std::set<std::string> patterns_of(const std::vector<std::string>& names) {
  std::set<std::string> patterns;
  for (const std::string& name : names) {
    if (!name.empty()) patterns.insert(without_numbers(name));
  }
  return patterns;
}

// Whether `name` is what `pattern` describes, in which '*' stands for any characters.
bool fits(const std::string& name, const std::string& pattern) {
  size_t at = 0, in_pattern = 0, star = std::string::npos, star_at = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      star_at = at;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[at]) {
      ++at, ++in_pattern;
    } else if (star != std::string::npos) {
      in_pattern = star + 1;
      at = ++star_at;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string::npos;
}

// Letters to change, add or remove to turn one name into the other.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t changed = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = std::exchange(row[k], std::min({changed, row[k] + 1, row[k - 1] + 1}));
    }
  }
  return row.back();
}

// The names, at most kMostNames of them, and how many more there are.
std::string shown_names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostNames) text += message({" and ", names.size() - kMostNames, " more"});
  return text;
}

struct Likeness {
  const FamilyTensors* family = nullptr;
  double shared = 0;  // of all tensors that either has, those that both have
  size_t edits = 0;
};

std::string nearest_by_name(const std::string& model_type,
                            const std::vector<FamilyTensors>& known) {
  const FamilyTensors* best = nullptr;
  size_t least = std::max<size_t>(1, model_type.size() / 3) + 1;
  for (const FamilyTensors& family : known) {
    const size_t distance = edits(model_type, family.family);
    if (distance < least) {
      least = distance;
      best = &family;
    }
  }
  if (best == nullptr) return "";
  return message({"The known family of the most similar name is ", best->family, "."});
}

}  // namespace

std::string nearest_family_text(const std::string& model_type,
                                const std::vector<FamilyTensors>& known,
                                const std::vector<std::string>& tensors) {
  const std::string type = model_type.substr(0, kMostNameBytes);
  const std::set<std::string> there = patterns_of(tensors);
  Likeness best;
  for (const FamilyTensors& family : known) {
    const std::set<std::string> wanted = patterns_of(family.names);
    size_t both = 0;
    for (const std::string& name : wanted) both += there.count(name);
    if (both == 0) continue;
    const double all = static_cast<double>(wanted.size() + there.size() - both);
    const Likeness one{&family, static_cast<double>(both) / all, edits(type, family.family)};
    const bool better = best.family == nullptr || one.shared > best.shared ||
                        (one.shared == best.shared && one.edits < best.edits);
    if (better) best = one;
  }
  if (best.family == nullptr) return nearest_by_name(type, known);
  const std::set<std::string> wanted = patterns_of(best.family->names);
  std::vector<std::string> unknown, absent;
  for (const std::string& name : there) {
    const auto ignores = [&](const std::string& pattern) { return fits(name, pattern); };
    const std::vector<std::string>& ignored = best.family->ignored;
    if (!wanted.contains(name) && std::none_of(ignored.begin(), ignored.end(), ignores)) {
      unknown.push_back(name);
    }
  }
  std::set_difference(wanted.begin(), wanted.end(), there.begin(), there.end(),
                      std::back_inserter(absent));
  std::string text = message({"The nearest known family is ", best.family->family});
  if (unknown.empty() && absent.empty()) return text + "; it has the same tensors.";
  if (!unknown.empty()) text += "; it does not have the tensors " + shown_names(unknown);
  if (!absent.empty()) text += "; the model lacks its tensors " + shown_names(absent);
  return text + ".";
}

}  // namespace vkformer
