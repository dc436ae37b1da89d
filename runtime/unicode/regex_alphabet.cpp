#include "unicode/regex_alphabet.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr char32_t kEnd = CharSet::kLast + 1;
constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;

void append_hex(uint32_t value, std::string& out) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  out += "\\x{";
  for (int shift = 20; shift >= 0; shift -= 4) {
    if (shift < 8 || value >> shift != 0) out += kDigits[(value >> shift) & 15];
  }
  out += '}';
}

// A class of ranges below `end`, in as few words as there are.
std::string class_of(std::span<const CharSet::Range> ranges, char32_t end) {
  if (ranges.empty()) {  // matches nothing
    std::string all = "[^\\x{0}-";
    append_hex(end - 1, all);
    return all + "]";
  }
  const bool is_one = ranges.size() == 1 && ranges[0].first == ranges[0].last;
  std::string out;
  for (const auto& [first, last] : ranges) {
    append_hex(first, out);
    if (last == first) continue;
    out += '-';
    append_hex(last, out);
  }
  return is_one ? out : "[" + out + "]";
}

// Without surrogates, which no text has and PCRE2 does not take.
std::string class_of_characters(const CharSet& set) {
  const CharSet scalars = set.intersected(CharSet({{kFirstSurrogate, kLastSurrogate}}).inverted());
  return class_of(scalars.ranges(), kEnd);
}

}  // namespace

std::vector<RegexAlphabet::Stretch>::iterator RegexAlphabet::find(std::vector<Stretch>& stretches,
                                                                  char32_t first) {
  return std::lower_bound(stretches.begin(), stretches.end(), first,
                          [](const Stretch& stretch, char32_t c) { return stretch.first < c; });
}

// Splits the characters at every end of a range, then the kinds at every set.
std::vector<RegexAlphabet::Stretch> RegexAlphabet::stretches_of(std::span<const CharSet> sets) {
  std::vector<char32_t> firsts = {0, '\n', '\n' + 1};
  for (const CharSet& set : sets) {
    for (const auto& [first, last] : set.ranges()) {
      firsts.push_back(first);
      if (last + 1 < kEnd) firsts.push_back(last + 1);
    }
  }
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  std::vector<Stretch> stretches;
  stretches.reserve(firsts.size());
  for (const char32_t first : firsts) stretches.push_back({first, first == '\n' ? 1u : 0u});
  // By kind: the last set that a part of it is in, and the kind that this part became.
  struct Split {
    size_t set = SIZE_MAX;
    uint32_t kind = 0;
  };
  std::vector<Split> splits(2);
  for (size_t set = 0; set < sets.size(); ++set) {
    for (const auto& [first, last] : sets[set].ranges()) {
      for (auto at = find(stretches, first); at != stretches.end() && at->first <= last; ++at) {
        if (splits[at->kind].set != set) {
          splits[at->kind] = {set, static_cast<uint32_t>(splits.size())};
          splits.emplace_back();
        }
        at->kind = splits[at->kind].kind;
      }
    }
  }
  return stretches;
}

// Numbers the kinds from 0; a newline keeps its number, which "^" and "$" look for. False if there
// are more than a byte has.
bool RegexAlphabet::number_kinds(std::vector<Stretch>& stretches) {
  constexpr uint32_t kNone = UINT32_MAX;
  uint32_t most = 0;
  for (const Stretch& stretch : stretches) most = std::max(most, stretch.kind);
  std::vector<uint32_t> numbers(size_t{most} + 1, kNone);
  numbers[find(stretches, '\n')->kind] = '\n';
  uint32_t next = 0;
  for (Stretch& stretch : stretches) {
    uint32_t& number = numbers[stretch.kind];
    if (number == kNone) {
      number = next++;
      if (next == '\n') ++next;
    }
    if (number > 0xFF) return false;
    stretch.kind = number;
  }
  return true;
}

void RegexAlphabet::make_pages(std::span<const Stretch> stretches) {
  std::array<uint16_t, 256> uniform{};  // by kind: a page of nothing else, plus 1
  page_of_.reserve(kEnd / kPage);
  size_t at = 0;
  const auto end_of = [&](size_t i) {
    return i + 1 < stretches.size() ? stretches[i + 1].first : kEnd;
  };
  for (char32_t begin = 0; begin < kEnd; begin += kPage) {
    while (end_of(at) <= begin) ++at;
    const uint32_t kind = stretches[at].kind;
    const auto next = static_cast<uint16_t>(pages_.size() / kPage);
    if (end_of(at) >= begin + kPage) {
      if (uniform[kind] == 0) {
        pages_.resize(pages_.size() + kPage, static_cast<uint8_t>(kind));
        uniform[kind] = static_cast<uint16_t>(next + 1);
      }
      page_of_.push_back(static_cast<uint16_t>(uniform[kind] - 1));
      continue;
    }
    page_of_.push_back(next);
    size_t stretch = at;
    for (char32_t c = begin; c < begin + kPage; ++c) {
      while (end_of(stretch) <= c) ++stretch;
      pages_.push_back(static_cast<uint8_t>(stretches[stretch].kind));
    }
  }
}

RegexAlphabet::RegexAlphabet(std::span<const CharSet> sets, Symbols symbols) {
  words_.reserve(sets.size());
  auto stretches = symbols == Symbols::kKinds ? stretches_of(sets) : std::vector<Stretch>();
  if (stretches.empty() || !number_kinds(stretches)) {
    for (const CharSet& set : sets) words_.push_back(class_of_characters(set));
    return;
  }
  make_pages(stretches);
  for (const CharSet& set : sets) {
    std::vector<CharSet::Range> kinds;
    for (const auto& range : set.ranges()) {
      for (auto at = find(stretches, range.first); at != stretches.end() && at->first <= range.last;
           ++at) {
        if (kinds.empty() || kinds.back().first != at->kind) kinds.push_back({at->kind, at->kind});
      }
    }
    words_.push_back(class_of(CharSet(std::move(kinds)).ranges(), 0x100));
  }
}

std::string RegexAlphabet::symbols_of(std::u32string_view text) const {
  if (!is_bytes()) return encode_utf8(text);
  std::string symbols(text.size(), '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    symbols[i] = static_cast<char>(pages_[page_of_[text[i] >> 8] * kPage + (text[i] & 0xFF)]);
  }
  return symbols;
}

}  // namespace vkformer
