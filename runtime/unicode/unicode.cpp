#include "unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "unicode/unicode_older.h"
#include "unicode/unicode_tables.h"

namespace vkformer {
namespace {

int combining_class(char32_t c) {
  const int known = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
  return known != 0 && is_mark_9(c) ? known : 0;
}

// Capitals of Unicode 16.0 and 17.0, which the library's tables may lack. Each of [first, last] in
// steps of `step` has its lower case `distance` further on.
struct CapitalRange {
  char32_t first = 0;
  char32_t last = 0;
  char32_t step = 1;
  int32_t distance = 1;
};
constexpr std::array<CapitalRange, 8> kNewCapitals = {{
    {0x1C89, 0x1C89},
    {0xA7CB, 0xA7CB, 1, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CE, 2},
    {0xA7D2, 0xA7D4, 2},
    {0xA7DA, 0xA7DA},
    {0xA7DC, 0xA7DC, 1, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 1, 0x20},
    {0x16EA0, 0x16EB8, 1, 0x1B},
}};

char32_t lower_of_new_capital(char32_t c) {
  for (const CapitalRange& range : kNewCapitals) {
    if (c < range.first || c > range.last || (c - range.first) % range.step != 0) continue;
    return static_cast<char32_t>(static_cast<int32_t>(c) + range.distance);
  }
  return c;
}

// The primary composite of two characters, or 0.
char32_t compose_pair(char32_t first, char32_t second) {
  // utf8proc composes in place and needs room for a terminator.
  std::array<utf8proc_int32_t, 3> pair = {static_cast<utf8proc_int32_t>(first),
                                          static_cast<utf8proc_int32_t>(second), 0};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto length = utf8proc_normalize_utf32(pair.data(), 2, options);
  const auto composite = static_cast<char32_t>(pair[0]);
  return length == 1 && !is_decomposed_since_9(composite) ? composite : 0;
}

// Decomposes and puts runs of combining marks into canonical order.
std::vector<CharChange> decompose(std::u32string_view text, bool compatibility) {
  std::vector<CharChange> out;
  out.reserve(text.size());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                                      (compatibility ? UTF8PROC_COMPAT : 0));
  // The longest decomposition of one character (U+FDFA) has 18.
  std::array<utf8proc_int32_t, 32> parts{};
  for (const char32_t c : text) {
    if (c < 0x80 || is_decomposed_since_9(c)) {
      out.push_back({c, 0});
      continue;
    }
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                               parts.size(), options, &boundary);
    if (count < 1 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
      out.push_back({c, 0});
      continue;
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      out.push_back({static_cast<char32_t>(parts[static_cast<size_t>(i)]), i == 0 ? 0 : 1});
    }
  }
  for (size_t begin = 0; begin < out.size(); ++begin) {
    if (out[begin].c < 0x300 || combining_class(out[begin].c) == 0) continue;
    size_t end = begin + 1;
    while (end < out.size() && combining_class(out[end].c) != 0) ++end;
    std::stable_sort(out.begin() + static_cast<ptrdiff_t>(begin),
                     out.begin() + static_cast<ptrdiff_t>(end),
                     [](const CharChange& a, const CharChange& b) {
                       return combining_class(a.c) < combining_class(b.c);
                     });
    begin = end;
  }
  return out;
}

// Canonical composition (UAX 15, D117): a mark joins the last starter unless a mark of the same or
// a higher class stands between. A composite keeps the starter's place and swallows the mark's.
std::vector<CharChange> recompose(const std::vector<CharChange>& in) {
  std::vector<CharChange> out;
  out.reserve(in.size());
  size_t starter = in.size();  // index into out; in.size() when there is none yet
  int last_class = -1;         // of the marks kept after the starter; -1 when there are none
  for (const CharChange& next : in) {
    const int next_class = combining_class(next.c);
    if (starter < out.size() && last_class < next_class) {
      const char32_t composite = compose_pair(out[starter].c, next.c);
      if (composite != 0) {
        out[starter] = {composite, out[starter].change + next.change - 1};
        continue;
      }
    }
    if (next_class == 0) {
      starter = out.size();
      last_class = -1;
    } else {
      last_class = next_class;
    }
    out.push_back(next);
  }
  return out;
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  if (c < 0x80) {
    const char32_t letter = c | 0x20;
    return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '_';
  }
  const Category category = category_of(c);
  if (is_letter_category(category) || is_mark_category(category) || category == Category::kNd ||
      category == Category::kNl || category == Category::kPc) {
    return true;
  }
  // Alphabetic beyond the categories above are only circled and squared letters.
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
         (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  return is_punctuation_8(c);
}

bool is_mark(char32_t c) {
  return is_mark_9(c);
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return is_number_category(category_of(c));
}

bool is_ascii(std::u32string_view text) {
  constexpr size_t kBlock = 4096;  // characters looked at before the first decision
  for (size_t begin = 0; begin < text.size(); begin += kBlock) {
    char32_t all = 0;
    for (const char32_t c : text.substr(begin, kBlock)) all |= c;
    if (all >= 0x80) return false;
  }
  return true;
}

char32_t to_lower(char32_t c) {
  const auto known = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  return known == c && c >= kNewCapitals[0].first ? lower_of_new_capital(c) : known;
}

void append_lower_case(char32_t c, std::vector<CharChange>& out) {
  if (c == 0x130) {  // the one character whose lower case is two: i and a dot above
    out.push_back({U'i', 0});
    out.push_back({0x307, 1});
    return;
  }
  out.push_back({to_lower(c), 0});
}

std::vector<CharChange> normalization_changes(std::u32string_view text, UnicodeForm form) {
  const bool compatibility = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
  auto changes = decompose(text, compatibility);
  const bool composed = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
  return composed ? recompose(changes) : changes;
}

}  // namespace vkformer
