#include "unicode/unicode_tables.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace vkformer {
namespace {

namespace data {
#include "unicode/unicode_data.inc"
}  // namespace data

using Range = CharSet::Range;

constexpr size_t kPageBits = 7;
constexpr size_t kPage = size_t{1} << kPageBits;  // characters
// After it there are only tags, selectors and private use, which need no pages.
constexpr char32_t kPagesEnd = 0x32400;
constexpr size_t kPages = kPagesEnd >> kPageBits;
constexpr size_t kCategories = static_cast<size_t>(Category::kCn) + 1;
constexpr uint32_t kUpperLower = 30;
constexpr size_t kRuns = std::size(data::kCategoryRuns);

constexpr char32_t run_first(size_t run) {
  return data::kCategoryRuns[run] >> 5;
}
constexpr char32_t run_end(size_t run) {
  return run + 1 < kRuns ? run_first(run + 1) : CharSet::kLast + 1;
}
constexpr uint8_t category_in(size_t run, char32_t c) {
  const uint32_t code = data::kCategoryRuns[run] & 31;
  if (code < kUpperLower) return static_cast<uint8_t>(code);
  return static_cast<uint8_t>((c - run_first(run) + code - kUpperLower) & 1);
}
constexpr bool is_uniform(size_t run, char32_t page_end) {
  return run_end(run) >= page_end && (data::kCategoryRuns[run] & 31) < kUpperLower;
}

// How many pages have more than one category.
constexpr size_t count_mixed() {
  size_t mixed = 0;
  size_t run = 0;
  for (char32_t begin = 0; begin < kPagesEnd; begin += kPage) {
    while (run_end(run) <= begin) ++run;
    if (!is_uniform(run, begin + kPage)) ++mixed;
  }
  return mixed;
}

// The first pages are one a category, and the others those with several.
struct Pages {
  std::array<uint16_t, kPages> page{};
  std::array<std::array<uint8_t, kPage>, kCategories + count_mixed()> categories{};
};

// Makes the pages while compiling, so that the source is the small list of runs.
constexpr Pages make_pages() {
  Pages made;
  for (size_t i = 0; i < kCategories; ++i) {
    for (uint8_t& category : made.categories[i]) category = static_cast<uint8_t>(i);
  }
  size_t next = kCategories;
  size_t run = 0;
  for (char32_t begin = 0; begin < kPagesEnd; begin += kPage) {
    while (run_end(run) <= begin) ++run;
    uint16_t& page = made.page[begin >> kPageBits];
    if (is_uniform(run, begin + kPage)) {
      page = category_in(run, begin);
      continue;
    }
    page = static_cast<uint16_t>(next++);
    size_t at_run = run;
    for (char32_t i = 0; i < kPage; ++i) {
      while (run_end(at_run) <= begin + i) ++at_run;
      made.categories[page][i] = category_in(at_run, begin + i);
    }
  }
  return made;
}

constexpr Pages kMadePages = make_pages();

Range unpacked(uint32_t range) {
  return {range >> 11, (range >> 11) + (range & 0x7FF)};
}

CharSet set_of(std::span<const uint32_t> packed) {
  std::vector<Range> ranges;
  ranges.reserve(packed.size());
  for (const uint32_t range : packed) ranges.push_back(unpacked(range));
  return CharSet(std::move(ranges));
}

bool is_in(std::span<const uint32_t> packed, char32_t c) {
  const auto after = std::upper_bound(packed.begin(), packed.end(), (c << 11) | 0x7FF);
  return after != packed.begin() && c <= unpacked(*std::prev(after)).last;
}

// Categories by bits.
constexpr uint32_t bit(Category category) {
  return uint32_t{1} << static_cast<uint32_t>(category);
}
constexpr uint32_t bits(Category first, Category last) {
  return (bit(last) << 1) - bit(first);
}
using enum Category;
constexpr uint32_t kLetters = bits(kLu, kLo);
constexpr uint32_t kMarks = bits(kMn, kMe);
constexpr uint32_t kPunctuation = bits(kPc, kPo);
constexpr uint32_t kSymbols = bits(kSm, kSo);
constexpr uint32_t kSeparators = bits(kZs, kZp);

CharSet set_of_categories(uint32_t wanted) {
  std::vector<Range> ranges;
  for (size_t run = 0; run < kRuns; ++run) {
    const char32_t first = run_first(run);
    const char32_t end = run_end(run);
    const bool even = ((wanted >> category_in(run, first)) & 1) != 0;
    const bool odd = ((wanted >> category_in(run, first + 1)) & 1) != 0;
    if (even && odd) {
      ranges.push_back({first, end - 1});
    } else if (even || odd) {
      for (char32_t c = first + (even ? 0 : 1); c < end; c += 2) ranges.push_back({c, c});
    }
  }
  return CharSet(std::move(ranges));
}

CharSet white_space() {
  return set_of_categories(kSeparators).united(CharSet({{'\t', '\r'}, {0x85, 0x85}}));
}
CharSet alphabetic() {
  return set_of_categories(kLetters | bit(kNl)).united(set_of(data::kOtherAlphabetic));
}
CharSet graphic() {
  return set_of_categories(bit(kCc) | bit(kCs) | bit(kCn)).united(white_space()).inverted();
}

struct NamedCategories {
  std::string_view short_name;
  std::string_view name;
  uint32_t categories;
  std::string_view other_name = "";
};
constexpr auto kNamedCategories = std::to_array<NamedCategories>({
    {"lu", "uppercaseletter", bit(kLu)},
    {"ll", "lowercaseletter", bit(kLl)},
    {"lt", "titlecaseletter", bit(kLt)},
    {"lm", "modifierletter", bit(kLm)},
    {"lo", "otherletter", bit(kLo)},
    {"lc", "casedletter", bits(kLu, kLt)},
    {"l", "letter", kLetters},
    {"mn", "nonspacingmark", bit(kMn)},
    {"mc", "spacingmark", bit(kMc)},
    {"me", "enclosingmark", bit(kMe)},
    {"m", "mark", kMarks, "combiningmark"},
    {"nd", "decimalnumber", bit(kNd), "digit"},
    {"nl", "letternumber", bit(kNl)},
    {"no", "othernumber", bit(kNo)},
    {"n", "number", bits(kNd, kNo)},
    {"pc", "connectorpunctuation", bit(kPc)},
    {"pd", "dashpunctuation", bit(kPd)},
    {"ps", "openpunctuation", bit(kPs)},
    {"pe", "closepunctuation", bit(kPe)},
    {"pi", "initialpunctuation", bit(kPi)},
    {"pf", "finalpunctuation", bit(kPf)},
    {"po", "otherpunctuation", bit(kPo)},
    {"p", "punctuation", kPunctuation, "punct"},
    {"sm", "mathsymbol", bit(kSm)},
    {"sc", "currencysymbol", bit(kSc)},
    {"sk", "modifiersymbol", bit(kSk)},
    {"so", "othersymbol", bit(kSo)},
    {"s", "symbol", kSymbols},
    {"zs", "spaceseparator", bit(kZs)},
    {"zl", "lineseparator", bit(kZl)},
    {"zp", "paragraphseparator", bit(kZp)},
    {"z", "separator", kSeparators},
    {"cc", "control", bit(kCc), "cntrl"},
    {"cf", "format", bit(kCf)},
    {"cs", "surrogate", bit(kCs)},
    {"co", "privateuse", bit(kCo)},
    {"cn", "unassigned", bit(kCn)},
    {"c", "other", bits(kCc, kCn)},
    {"", "posixpunct", kPunctuation | kSymbols},
    {"", "any", bits(kLu, kCn)},
    {"", "assigned", bits(kLu, kCo)},
});

struct NamedSet {
  std::string_view short_name;
  std::string_view name;
  CharSet (*make)();
};
template <const auto& packed>
CharSet stored() {
  return set_of(packed);
}
constexpr auto kNamedSets = std::to_array<NamedSet>({
    {"alpha", "alphabetic", alphabetic},
    {"alnum", "alnum", [] { return alphabetic().united(set_of_categories(bit(kNd))); }},
    {"word", "word",
     [] { return alphabetic().united(set_of_categories(kMarks | bit(kNd) | bit(kPc))); }},
    {"space", "whitespace", white_space},
    {"blank", "blank",
     [] {
       return set_of_categories(bit(kZs)).united(CharSet({{'\t', '\t'}}));
     }},
    {"lower", "lowercase",
     [] { return set_of_categories(bit(kLl)).united(set_of(data::kOtherLowercase)); }},
    {"upper", "uppercase",
     [] { return set_of_categories(bit(kLu)).united(set_of(data::kOtherUppercase)); }},
    {"graph", "graph", graphic},
    {"print", "print", [] { return graphic().united(set_of_categories(bit(kZs))); }},
    {"xdigit", "asciihexdigit",
     [] {
       return CharSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
     }},
    {"ahex", "asciihexdigit",
     [] {
       return CharSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
     }},
    {"ascii", "ascii",
     [] {
       return CharSet({{0, 0x7F}});
     }},
    {"newline", "newline",
     [] {
       return CharSet({{'\n', '\n'}});
     }},
    {"ideo", "ideographic", stored<data::kIdeographic>},
    {"emoji", "emoji", stored<data::kEmoji>},
    {"epres", "emojipresentation", stored<data::kEmojiPresentation>},
    {"emod", "emojimodifier", stored<data::kEmojiModifier>},
    {"ebase", "emojimodifierbase", stored<data::kEmojiModifierBase>},
    {"ecomp", "emojicomponent", stored<data::kEmojiComponent>},
    {"extpict", "extendedpictographic", stored<data::kExtendedPictographic>},
});

// As Oniguruma compares names.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c;
  }
  return plain;
}

// The number of a script by one of its names, as plain_name() makes it.
std::optional<size_t> find_script(std::string_view plain) {
  size_t begin = 0;
  for (size_t i = 0; begin < data::kScriptNames.size(); ++i) {
    const size_t end = data::kScriptNames.find(' ', begin);
    if (plain == plain_name(data::kScriptNames.substr(begin, end - begin))) return i / 2;
    begin = end + 1;
  }
  return std::nullopt;
}

CharSet set_of_script(size_t script) {
  std::vector<Range> ranges;
  const std::span<const uint32_t> runs = data::kScriptRuns;
  for (size_t i = 0; i < runs.size(); ++i) {
    if ((runs[i] & 0xFF) != script) continue;
    const char32_t end = i + 1 < runs.size() ? runs[i + 1] >> 8 : CharSet::kLast + 1;
    ranges.push_back({runs[i] >> 8, end - 1});
  }
  return CharSet(std::move(ranges));
}

// Characters and what their case folds to.
std::vector<std::pair<char32_t, char32_t>> all_folds() {
  std::vector<std::pair<char32_t, char32_t>> folds;
  for (const auto& [first, last, step, distance] : data::kFoldRuns) {
    for (int32_t c = first; c <= last; c += step) {
      folds.emplace_back(static_cast<char32_t>(c), static_cast<char32_t>(c + distance));
    }
  }
  return folds;
}

}  // namespace

Category category_of(char32_t c) {
  if (c < kPagesEnd) {
    const size_t page = kMadePages.page[c >> kPageBits];
    return static_cast<Category>(kMadePages.categories[page][c & (kPage - 1)]);
  }
  const auto after = std::upper_bound(std::begin(data::kCategoryRuns),
                                      std::end(data::kCategoryRuns), (c << 5) | 31);
  return static_cast<Category>(*std::prev(after) & 31);
}

uint8_t script_of(char32_t c) {
  const auto after =
      std::upper_bound(std::begin(data::kScriptRuns), std::end(data::kScriptRuns), (c << 8) | 0xFF);
  return static_cast<uint8_t>(*std::prev(after) & 0xFF);
}

uint8_t script_in_9(char32_t c) {
  for (const uint32_t other : data::kOtherScriptsIn9) {
    if (other >> 8 == c) return static_cast<uint8_t>(other & 0xFF);
  }
  return is_in(data::kScriptsSince9, c) ? 0 : script_of(c);
}

uint8_t script_number(std::string_view name) {
  return static_cast<uint8_t>(find_script(plain_name(name)).value_or(0));
}

std::optional<CharSet> property_set(std::string_view name) {
  const std::string plain = plain_name(name);
  if (plain.empty()) return std::nullopt;
  for (const NamedCategories& row : kNamedCategories) {
    if (plain == row.short_name || plain == row.name || plain == row.other_name) {
      return set_of_categories(row.categories);
    }
  }
  for (const NamedSet& row : kNamedSets) {
    if (plain == row.short_name || plain == row.name) return row.make();
  }
  const auto script = find_script(plain);
  return script ? std::optional(set_of_script(*script)) : std::nullopt;
}

CharSet without_case(const CharSet& set) {
  const auto folds = all_folds();
  std::vector<char32_t> reached;  // what characters of the set fold to
  for (const auto& [c, folded] : folds) {
    if (set.contains(c) || set.contains(folded)) reached.push_back(folded);
  }
  std::sort(reached.begin(), reached.end());
  std::vector<Range> ranges(set.ranges().begin(), set.ranges().end());
  for (const auto& [c, folded] : folds) {
    if (!std::binary_search(reached.begin(), reached.end(), folded)) continue;
    ranges.push_back({c, c});
    ranges.push_back({folded, folded});
  }
  return CharSet(std::move(ranges));
}

}  // namespace vkformer
