#include "text/text_pattern.h"

#include <algorithm>

#include "base/check.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

struct Part {
  CharSpan range;
  bool is_match = false;
};

// The matches and what lies between them, covering the text.
std::vector<Part> cover(size_t size, std::span<const CharSpan> matches, SplitSide side) {
  std::vector<Part> parts;
  parts.reserve(2 * matches.size() + 1);
  const bool matched = side == SplitSide::kMatches;
  uint32_t at = 0;
  for (const CharSpan& match : matches) {
    if (at != match.begin) parts.push_back({{at, match.begin}, !matched});
    parts.push_back({match, matched});
    at = match.end;
  }
  if (at != size) parts.push_back({{at, static_cast<uint32_t>(size)}, !matched});
  return parts;
}

// Joins each part to the one before when `joins(part, previous is a match)` says so.
template <class Joins>
std::vector<Part> merge(const std::vector<Part>& parts, Joins joins) {
  std::vector<Part> merged;
  bool previous_match = false;
  for (const Part& part : parts) {
    if (!merged.empty() && joins(part.is_match, previous_match)) {
      CharSpan& range = merged.back().range;
      range = {std::min(range.begin, part.range.begin), std::max(range.end, part.range.end)};
    } else {
      merged.push_back(part);
    }
    previous_match = part.is_match;
  }
  return merged;
}

}  // namespace

Result<TextPattern> TextPattern::parse(const JsonRef& json) {
  TextPattern pattern;
  VKF_ASSIGN(const auto literal, json.optional_member("String"));
  VKF_ASSIGN(const auto regex, json.optional_member("Regex"));
  if (literal.has_value() == regex.has_value()) {
    return json.malformed("must have either [String] or [Regex].");
  }
  if (literal) {
    VKF_ASSIGN(pattern.literal_, literal->code_points());
    return pattern;
  }
  VKF_ASSIGN(const auto source, regex->text());
  VKF_ASSIGN(auto compiled, TextRegex::compile(source, regex->path()));
  pattern.regex_ = std::move(compiled);
  return pattern;
}

Result<std::vector<CharSpan>> TextPattern::find_all(std::u32string_view text) const {
  if (text.empty()) return std::vector<CharSpan>();
  if (regex_) return regex_->find_all(text);
  std::vector<CharSpan> found;
  if (literal_.empty()) return found;
  const auto length = static_cast<uint32_t>(literal_.size());
  for (size_t at = text.find(literal_); at != text.npos; at = text.find(literal_, at + length)) {
    found.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at) + length});
  }
  return found;
}

Result<SplitBehavior> parse_split_behavior(const JsonRef& json) {
  VKF_ASSIGN(const auto name, json.text());
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return json.not_supported("is [" + name +
                            "]; this build knows Removed, Isolated, MergedWithPrevious, "
                            "MergedWithNext and Contiguous.");
}

std::vector<CharSpan> split_parts(size_t size, std::span<const CharSpan> matches,
                                  SplitBehavior behavior, SplitSide side) {
  std::vector<Part> parts = cover(size, matches, side);
  const auto match_after_other = [](bool match, bool previous) { return match && !previous; };
  switch (behavior) {
    case SplitBehavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.is_match; });
      break;
    case SplitBehavior::kIsolated:
      break;
    case SplitBehavior::kContiguous:
      parts = merge(parts, [](bool match, bool previous) { return match == previous; });
      break;
    case SplitBehavior::kMergedWithPrevious:
      parts = merge(parts, match_after_other);
      break;
    case SplitBehavior::kMergedWithNext:
      std::reverse(parts.begin(), parts.end());
      parts = merge(parts, match_after_other);
      std::reverse(parts.begin(), parts.end());
      break;
  }
  std::vector<CharSpan> ranges;
  ranges.reserve(parts.size());
  for (const Part& part : parts) ranges.push_back(part.range);
  return ranges;
}

std::vector<CharSpan> find_characters(std::u32string_view text, bool (*accepts)(char32_t)) {
  std::vector<CharSpan> found;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!accepts(text[i])) continue;
    found.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1)});
  }
  return found;
}

}  // namespace vkformer
