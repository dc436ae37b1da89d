#include "grammar/number_ranges.h"

#include <algorithm>
#include <optional>

namespace vkformer {
namespace {

uint32_t digits(GrammarTree& tree, char first, char last) {
  return tree.chars({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

uint32_t any_digits(GrammarTree& tree, size_t least, size_t most) {
  return tree.repeat(digits(tree, '0', '9'), static_cast<uint32_t>(least),
                     static_cast<uint32_t>(most));
}

// Digit strings of one length from `low` to `high`.
uint32_t same_length(GrammarTree& tree, const std::string& low, const std::string& high) {
  const size_t rest = low.size() - 1;
  if (low.empty()) return tree.sequence({});
  const bool low_is_least = low.find_first_not_of('0') == low.npos;
  const bool high_is_most = high.find_first_not_of('9') == high.npos;
  if (low_is_least && high_is_most) return any_digits(tree, low.size(), low.size());
  const auto led_by = [&](char digit, const std::string& from, const std::string& to) {
    return tree.sequence({digits(tree, digit, digit), same_length(tree, from, to)});
  };
  if (low[0] == high[0]) return led_by(low[0], low.substr(1), high.substr(1));
  std::vector<uint32_t> parts = {led_by(low[0], low.substr(1), std::string(rest, '9'))};
  if (low[0] + 1 < high[0]) {
    parts.push_back(
        tree.sequence({digits(tree, static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)),
                       any_digits(tree, rest, rest)}));
  }
  parts.push_back(led_by(high[0], std::string(rest, '0'), high.substr(1)));
  return tree.choice(std::move(parts));
}

uint32_t naturals_between(GrammarTree& tree, uint64_t low, uint64_t high) {
  std::vector<uint32_t> parts;
  std::string from = std::to_string(low);
  const std::string to = std::to_string(high);
  for (; from.size() < to.size(); from = "1" + std::string(from.size(), '0')) {
    parts.push_back(same_length(tree, from, std::string(from.size(), '9')));
  }
  parts.push_back(same_length(tree, from, to));
  return tree.choice(std::move(parts));
}

// Digits after a decimal point, or some of them, and the bounds of what is left: absent where any
// digits will do. A bound is the value 0.<digits>.
struct DecimalLimits {
  std::optional<std::string> low;
  std::optional<std::string> high;
  bool low_is_excluded = false;
  bool high_is_excluded = false;

  bool allow_end() const {
    if (low && !(low->empty() && !low_is_excluded)) return false;
    return !(high && high->empty() && high_is_excluded);
  }
};

std::string tail_of(const std::string& text) {
  return text.empty() ? text : text.substr(1);
}

// At most `room` digits within the limits; `at_least_one` forbids none at all.
uint32_t limited_digits(GrammarTree& tree, DecimalLimits limits, uint32_t room, bool at_least_one) {
  if (limits.low && limits.low->empty() && !limits.low_is_excluded) limits.low.reset();
  if (!limits.low && !limits.high) return any_digits(tree, at_least_one ? 1 : 0, room);
  std::vector<uint32_t> parts;
  if (!at_least_one && limits.allow_end()) parts.push_back(tree.sequence({}));
  if (room == 0) return tree.choice(std::move(parts));
  const char least = limits.low && !limits.low->empty() ? limits.low->front() : '0';
  const char most = !limits.high ? '9' : limits.high->empty() ? '0' : limits.high->front();
  for (char digit = least; digit <= most; ++digit) {
    DecimalLimits rest = limits;
    rest.low.reset();
    rest.high.reset();
    if (limits.low && digit == least) rest.low = tail_of(*limits.low);
    if (limits.high && digit == most) rest.high = tail_of(*limits.high);
    char last = digit;
    if (!rest.low && !rest.high) {
      last = static_cast<char>(limits.high ? most - 1 : most);
    }
    parts.push_back(
        tree.sequence({digits(tree, digit, last), limited_digits(tree, rest, room - 1, false)}));
    digit = last;
  }
  return tree.choice(std::move(parts));
}

uint32_t with_decimals(GrammarTree& tree, uint32_t whole, const DecimalLimits& limits,
                       uint32_t places) {
  std::vector<uint32_t> parts;
  if (limits.allow_end()) parts.push_back(tree.sequence({}));
  if (places > 0) {
    parts.push_back(tree.sequence({tree.literal("."), limited_digits(tree, limits, places, true)}));
  }
  return tree.sequence({whole, tree.choice(std::move(parts))});
}

// Of bounds that are 0 or more.
uint32_t magnitudes_between(GrammarTree& tree, const DecimalBound& low, const DecimalBound& high,
                            uint32_t places) {
  if (low.whole > high.whole) return tree.choice({});
  const auto natural = [&](int64_t value) { return tree.literal(std::to_string(value)); };
  DecimalLimits limits;
  limits.low = low.decimals;
  limits.low_is_excluded = low.is_excluded;
  DecimalLimits upper;
  upper.high = high.decimals;
  upper.high_is_excluded = high.is_excluded;
  if (low.whole == high.whole) {
    limits.high = upper.high;
    limits.high_is_excluded = upper.high_is_excluded;
    return with_decimals(tree, natural(low.whole), limits, places);
  }
  std::vector<uint32_t> parts = {with_decimals(tree, natural(low.whole), limits, places),
                                 with_decimals(tree, natural(high.whole), upper, places)};
  if (low.whole + 1 < high.whole) {
    const uint32_t between = naturals_between(tree, static_cast<uint64_t>(low.whole) + 1,
                                              static_cast<uint64_t>(high.whole) - 1);
    parts.push_back(with_decimals(tree, between, {}, places));
  }
  return tree.choice(std::move(parts));
}

}  // namespace

uint32_t integers_between(GrammarTree& tree, int64_t low, int64_t high) {
  std::vector<uint32_t> parts;
  const auto size_of = [](int64_t value) { return uint64_t{0} - static_cast<uint64_t>(value); };
  if (low < 0) {
    const uint64_t least = high < 0 ? size_of(high) : 1;
    parts.push_back(
        tree.sequence({tree.literal("-"), naturals_between(tree, least, size_of(low))}));
  }
  if (high >= 0) {
    parts.push_back(naturals_between(tree, static_cast<uint64_t>(std::max<int64_t>(low, 0)),
                                     static_cast<uint64_t>(high)));
  }
  return tree.choice(std::move(parts));
}

uint32_t decimals_between(GrammarTree& tree, const DecimalBound& low, const DecimalBound& high,
                          uint32_t places) {
  std::vector<uint32_t> parts;
  if (low.is_negative) {
    DecimalBound least;
    least.is_excluded = true;  // zero is written without a sign
    if (high.is_negative) least = high;
    parts.push_back(
        tree.sequence({tree.literal("-"), magnitudes_between(tree, least, low, places)}));
  }
  if (!high.is_negative) {
    parts.push_back(magnitudes_between(tree, low.is_negative ? DecimalBound() : low, high, places));
  }
  return tree.choice(std::move(parts));
}

}  // namespace vkformer
