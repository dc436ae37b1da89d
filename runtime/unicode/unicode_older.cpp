#include "unicode/unicode_older.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "unicode/unicode_tables.h"

namespace vkformer {
namespace {

// Both ends belong to the range.
struct CharRange {
  char32_t first = 0;
  char32_t last = 0;
};

// Characters that got a property after Unicode 8.0 or 9.0, and up to 16.0. The ranges run on over
// neighbors that never had it.
constexpr CharRange kMarksSince8[] = {
    {0x7FD, 0x7FD},     {0x897, 0x8E1},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xD00, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x180F, 0x1886},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFB},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},
    {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10F85}, {0x11070, 0x11074},
    {0x110C2, 0x110C2}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x11241},
    {0x1133B, 0x1133B}, {0x113BB, 0x1145E}, {0x1182F, 0x1612F}, {0x16F4F, 0x16F4F},
    {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E5EF}, {0x1E944, 0x1E94A}};
constexpr CharRange kPunctuationSince8[] = {
    {0x61D, 0x61D},     {0x9FD, 0xA76},     {0xC77, 0xC84},     {0x1B4E, 0x1B4F},
    {0x1B7D, 0x1B7F},   {0x2E43, 0x2E5D},   {0x10D6E, 0x10F89}, {0x113D4, 0x1145D},
    {0x11660, 0x116B9}, {0x1183B, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16D6D, 0x16FE2},
    {0x1E5FF, 0x1E95F}};
constexpr CharRange kOtherSince8[] = {{0x890, 0x8E2}, {0x110CD, 0x1343F}};
constexpr CharRange kMarksSince9[] = {
    {0x7FD, 0x7FD},     {0x897, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xCF3, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},
    {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},   {0x10D24, 0x10F85}, {0x11070, 0x11074},
    {0x110C2, 0x110C2}, {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF},
    {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x113B8, 0x113E2}, {0x1145E, 0x1145E},
    {0x1182C, 0x11A99}, {0x11D31, 0x1612F}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87},
    {0x16FE4, 0x16FF1}, {0x1CF00, 0x1CF46}, {0x1E08F, 0x1E5EF}};
constexpr CharRange kDecomposedSince9[] = {
    {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},
    {0x105C9, 0x107BA}, {0x11383, 0x113C8}, {0x11938, 0x1CCF9},
    {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

bool is_in(std::span<const CharRange> ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t x, const CharRange& r) { return x < r.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

}  // namespace

bool is_nonspacing_mark_8(char32_t c) {
  if (c < 0x300) return false;
  // Two vowel signs that were Mn and became Mc in Unicode 14.
  if (c == 0x1734 || c == 0x1171E) return true;
  return category_of(c) == Category::kMn && !is_in(kMarksSince8, c);
}

bool is_punctuation_8(char32_t c) {
  // Two that were Po: a symbol since Unicode 12, a mark since Unicode 11.
  if (c == 0x166D || c == 0x111C9) return true;
  return is_punctuation_category(category_of(c)) && !is_in(kPunctuationSince8, c);
}

bool is_other_8(char32_t c) {
  const Category category = category_of(c);
  return (category == Category::kCc || category == Category::kCf || category == Category::kCo) &&
         !is_in(kOtherSince8, c);
}

bool is_mark_9(char32_t c) {
  if (c < 0x300) return false;
  // Two Vedic signs that were Mc and became Lo in Unicode 12.
  if (c == 0x1CF2 || c == 0x1CF3) return true;
  return is_mark_category(category_of(c)) && !is_in(kMarksSince9, c);
}

bool is_decomposed_since_9(char32_t c) {
  return c >= kDecomposedSince9[0].first && is_in(kDecomposedSince9, c);
}

}  // namespace vkformer
