#include "unicode/regex_alphabet.h"

#include <algorithm>
#include <map>
#include <unordered_map>

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
  uint32_t kinds = 2;
  std::unordered_map<uint32_t, uint32_t> split;
  for (const CharSet& set : sets) {
    split.clear();
    for (const auto& [first, last] : set.ranges()) {
      auto at = std::lower_bound(stretches.begin(), stretches.end(), first,
                                 [](const Stretch& s, char32_t c) { return s.first < c; });
      for (; at != stretches.end() && at->first <= last; ++at) {
        const auto [kind, is_new] = split.try_emplace(at->kind, kinds);
        if (is_new) ++kinds;
        at->kind = kind->second;
      }
    }
  }
  return stretches;
}

// Numbers the kinds from 0; a newline keeps its number, which "^" and "$" look for. False if there
// are more than a byte has.
bool RegexAlphabet::number_kinds(std::vector<Stretch>& stretches) {
  std::unordered_map<uint32_t, uint32_t> numbers;
  for (const Stretch& stretch : stretches) {
    if (stretch.first == '\n') numbers.emplace(stretch.kind, uint32_t{'\n'});
  }
  uint32_t next = 0;
  for (Stretch& stretch : stretches) {
    const auto [number, is_new] = numbers.try_emplace(stretch.kind, next);
    if (is_new) next += next + 1 == '\n' ? 2 : 1;
    if (number->second > 0xFF) return false;
    stretch.kind = number->second;
  }
  return true;
}

void RegexAlphabet::make_pages(std::span<const Stretch> stretches) {
  std::map<uint32_t, uint16_t> uniform;  // pages of one kind
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
      const auto [page, is_new] = uniform.try_emplace(kind, next);
      if (is_new) pages_.resize(pages_.size() + kPage, static_cast<uint8_t>(kind));
      page_of_.push_back(page->second);
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
      auto at = std::lower_bound(stretches.begin(), stretches.end(), range.first,
                                 [](const Stretch& s, char32_t c) { return s.first < c; });
      for (; at != stretches.end() && at->first <= range.last; ++at) {
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
