#include "grammar/schema_numbers.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "grammar/number_ranges.h"

namespace vkformer {
namespace {

// Digits of a number that every parser tells from its neighbors.
constexpr size_t kMostDigits = 15;

// The bound that two keywords give together, and whether it is omitted.
struct Bound {
  const JsonTree* value = nullptr;
  bool is_excluded = false;
};
Result<Bound> bound_of(const SchemaPlace& place, const char* included, const char* excluded,
                       bool is_least) {
  Bound bound = {place.schema->find(included), false};
  const JsonTree* strict = place.schema->find(excluded);
  for (const JsonTree* value : {bound.value, static_cast<const JsonTree*>(strict)}) {
    if (value != nullptr && !value->is_number()) {
      return place.malformed(value == strict ? excluded : included, "must be a number.");
    }
  }
  if (strict != nullptr && (bound.value == nullptr || strict->number == bound.value->number ||
                            (strict->number > bound.value->number) == is_least)) {
    bound = {strict, true};
  }
  return bound;
}

Result<uint32_t> integers_node(const SchemaPlace& place, const Bound& low, const Bound& high,
                               GrammarTree& tree) {
  const auto whole = [&](const Bound& bound, bool is_least) -> Result<int64_t> {
    if (std::abs(bound.value->number) > 9e15) {
      return place.not_supported(is_least ? "minimum" : "maximum",
                                 "is beyond 9e15, where numbers are no longer exact.");
    }
    const double number = bound.value->number;
    const double rounded = is_least ? std::ceil(number) : std::floor(number);
    const bool steps = bound.is_excluded && rounded == number;
    return static_cast<int64_t>(rounded) + (steps ? (is_least ? 1 : -1) : 0);
  };
  int64_t least = -JsonPieces::kMostInteger;
  int64_t most = JsonPieces::kMostInteger;
  if (low.value != nullptr) {
    VKF_ASSIGN(least, whole(low, true));
    most = std::max(most, least);
  }
  if (high.value != nullptr) {
    VKF_ASSIGN(most, whole(high, false));
    if (low.value == nullptr) least = std::min(least, most);
  }
  return least > most ? tree.choice({}) : integers_between(tree, least, most);
}

Result<DecimalBound> decimal(const SchemaPlace& place, const Bound& bound, const char* keyword) {
  std::string text;
  append_number(std::abs(bound.value->number), text);
  const size_t point = text.find('.');
  DecimalBound out;
  out.is_negative = bound.value->number < 0;
  out.is_excluded = bound.is_excluded;
  if (text.find('e') != text.npos || text.size() > kMostDigits + 1 || point == text.npos) {
    return place.not_supported(keyword, "is " + text + "; bounds of numbers may have at most " +
                                            std::to_string(kMostDigits) +
                                            " digits and no exponent.");
  }
  out.whole = std::stoll(text.substr(0, point));
  out.decimals = text.substr(point + 1);
  out.decimals.resize(out.decimals.find_last_not_of('0') + 1);
  return out;
}

Result<uint32_t> decimals_node(const SchemaPlace& place, const Bound& low, const Bound& high,
                               GrammarTree& tree) {
  DecimalBound least;
  DecimalBound most;
  if (low.value != nullptr) {
    VKF_ASSIGN(least, decimal(place, low, "minimum"));
  }
  if (high.value != nullptr) {
    VKF_ASSIGN(most, decimal(place, high, "maximum"));
  }
  // Where there is no bound: nine digits, or what is beyond the other bound.
  constexpr int64_t kFar = 999'999'999;
  if (low.value == nullptr) {
    least.is_negative = true;
    least.whole = std::max(kFar, most.whole + 1);
  }
  if (high.value == nullptr) most.whole = std::max(kFar, least.whole + 1);
  const auto size_of = [](const DecimalBound& bound) {
    return std::pair(std::to_string(bound.whole).size(), bound.decimals.size());
  };
  const size_t whole = std::max(size_of(least).first, size_of(most).first);
  const size_t places = std::max(size_of(least).second, size_of(most).second);
  if (whole + places > kMostDigits) {
    return place.not_supported("minimum", "and its opposite have more than " +
                                              std::to_string(kMostDigits) +
                                              " digits together before and after the point.");
  }
  const bool is_reversed =
      low.value != nullptr && high.value != nullptr && low.value->number > high.value->number;
  if (is_reversed) return tree.choice({});
  return decimals_between(tree, least, most, static_cast<uint32_t>(kMostDigits - whole));
}

}  // namespace

Result<uint32_t> schema_number(const SchemaPlace& place, JsonTypes types, GrammarTree& tree,
                               JsonPieces& pieces) {
  bool with_fractions = (types & kFractionType) != 0;
  if (const JsonTree* step = place.schema->find("multipleOf")) {
    if (!(step->is_number() && step->number == 1)) {
      return place.not_supported("multipleOf", "is supported for 1 only.");
    }
    with_fractions = false;
  }
  VKF_ASSIGN(const Bound low, bound_of(place, "minimum", "exclusiveMinimum", true));
  VKF_ASSIGN(const Bound high, bound_of(place, "maximum", "exclusiveMaximum", false));
  if (low.value == nullptr && high.value == nullptr) {
    return with_fractions ? pieces.number() : pieces.integer();
  }
  return with_fractions ? decimals_node(place, low, high, tree)
                        : integers_node(place, low, high, tree);
}

}  // namespace vkformer
