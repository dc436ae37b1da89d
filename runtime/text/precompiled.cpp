#include "text/precompiled.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/message.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

using NormalizerPtr = std::unique_ptr<TextNormalizer>;

// Where the extended grapheme cluster that starts at `begin` ends (UAX 29).
size_t grapheme_end(std::u32string_view chars, size_t begin) {
  utf8proc_int32_t state = 0;
  size_t end = begin + 1;
  while (end < chars.size() &&
         !utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(chars[end - 1]),
                                           static_cast<utf8proc_int32_t>(chars[end]), &state)) {
    ++end;
  }
  return end;
}

// The value of a base64 digit (RFC 4648), or -1.
int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// The bytes of a padded base64 text, or nothing if it is none.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t digits = text.size();
  while (digits > 0 && text.size() - digits < 2 && text[digits - 1] == '=') --digits;
  std::string bytes;
  bytes.reserve(digits / 4 * 3 + 2);
  uint32_t bits = 0;
  int held = 0;  // bits that are not in `bytes` yet
  for (const char c : text.substr(0, digits)) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xFFFFFF;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFF);
  }
  return bytes;
}

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// A character map in SentencePiece's layout: the size of a trie in bytes, the trie, and
// NUL-terminated replacements. The trie is a double array of 32-bit units as darts-clone writes it;
// its values are offsets into the replacements. All numbers are little-endian. The content is as
// hostile as the file: lookups check every step.
class CharacterMap {
 public:
  static Result<CharacterMap> parse(const JsonRef& json) {
    VKF_ASSIGN(const auto text, json.text());
    const auto bytes = decode_base64(text);
    if (!bytes) return json.malformed("must be a base64 text with padding.");
    if (bytes->size() < 4) {
      return json.malformed("has " + std::to_string(bytes->size()) +
                            " bytes, which leaves no room for the size of its trie (4 bytes).");
    }
    const size_t units = little_endian(*bytes, 0) / 4;
    if (units > (bytes->size() - 4) / 4) {
      return json.malformed("claims a trie of " + std::to_string(units) + " units, but has only " +
                            std::to_string((bytes->size() - 4) / 4) + ".");
    }
    CharacterMap map;
    map.where_ = json.path();
    for (size_t i = 0; i < units; ++i) map.units_.push_back(little_endian(*bytes, 4 + 4 * i));
    map.replacements_ = bytes->substr(4 + 4 * units);
    const auto readable = decode_utf8(map.replacements_, "replacements");
    if (!readable) return json.malformed("is damaged: " + readable.error().message);
    return map;
  }

  // The replacement for the shortest mapped string that `key` starts with, or nothing.
  Result<std::optional<std::u32string>> find(std::string_view key) const {
    using Found = std::optional<std::u32string>;
    if (units_.empty()) return Found();
    size_t node = offset(units_[0]);
    for (const char c : key) {
      if (c == '\0') break;
      node ^= static_cast<unsigned char>(c);
      if (node >= units_.size()) return leads_outside("trie", node, units_.size());
      const uint32_t unit = units_[node];
      if (label(unit) != static_cast<unsigned char>(c)) break;
      node ^= offset(unit);
      if (!has_leaf(unit)) continue;
      if (node >= units_.size()) return leads_outside("trie", node, units_.size());
      VKF_ASSIGN(auto replacement, replacement_at(units_[node] & 0x7FFFFFFF));
      return Found(std::move(replacement));
    }
    return Found();
  }

 private:
  // The fields of a unit.
  static size_t offset(uint32_t unit) { return size_t{unit >> 10} << ((unit & 0x200) >> 6); }
  static uint32_t label(uint32_t unit) { return unit & 0x800000FF; }
  static bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }

  Result<std::u32string> replacement_at(size_t at) const {
    if (at > replacements_.size()) {
      return leads_outside("list of replacements", at, replacements_.size());
    }
    const size_t end = std::min(replacements_.find('\0', at), replacements_.size());
    auto chars = decode_utf8(std::string_view(replacements_).substr(at, end - at), "replacement");
    if (!chars) return chars.error().with_context(message({"[", where_, "]"}));
    return chars;
  }

  Error leads_outside(const std::string& what, size_t at, size_t size) const {
    return invalid_file(message({"[", where_, "] leads to place ", at, " of a ", what, " of size ",
                                 size, "; the file is damaged, fetch it again."}));
  }

  std::string where_;
  std::vector<uint32_t> units_;
  std::string replacements_;
};

class PrecompiledNormalizer final : public TextNormalizer {
 public:
  static Result<NormalizerPtr> parse(const JsonRef& json, int) {
    auto made = std::make_unique<PrecompiledNormalizer>();
    VKF_ASSIGN(const auto map, json.member("precompiled_charsmap"));
    VKF_ASSIGN(made->map_, CharacterMap::parse(map));
    for (size_t c = 0; c < made->plain_.size(); ++c) {
      // A map that fails here says so when the character is met.
      const auto found = made->map_.find(std::string(1, static_cast<char>(c)));
      made->plain_[c] = found.ok() && !found->has_value();
    }
    return NormalizerPtr(std::move(made));
  }

  // By grapheme cluster where one has fewer than 6 bytes and a replacement, else by character: what
  // SentencePiece's own normalizer comes to on real maps.
  Status apply(AlignedText& text) const override {
    const auto chars = text.chars();
    size_t at = 0;
    while (at < chars.size() && stands_alone(chars, at) && plain_[chars[at]]) ++at;
    if (at == chars.size()) return {};
    std::vector<CharChange> changes;
    changes.reserve(chars.size());
    bool modified = false;
    for (size_t i = 0; i < at; ++i) changes.push_back({chars[i], 0});
    while (at < chars.size()) {
      if (stands_alone(chars, at) && plain_[chars[at]]) {
        changes.push_back({chars[at++], 0});
        continue;
      }
      const size_t end = grapheme_end(chars, at);
      VKF_ASSIGN(const bool whole, replace(chars.substr(at, end - at), changes));
      modified = modified || whole;
      VKF_CHECK(check_growth(chars.size(), changes.size()));
      for (size_t i = at; i < end && !whole; ++i) {
        bool replaced = false;
        if (end - at > 1) {
          VKF_ASSIGN(replaced, replace(chars.substr(i, 1), changes));
        }
        if (!replaced) changes.push_back({chars[i], 0});
        modified = modified || replaced;
      }
      at = end;
    }
    if (modified) text.rewrite(changes, 0);
    return {};
  }

 private:
  // Longer clusters go by their characters.
  static constexpr size_t kMostClusterBytes = 5;

  // Whether a cluster surely is this one ASCII character.
  static bool stands_alone(std::u32string_view chars, size_t at) {
    if (chars[at] >= 0x80) return false;
    if (at + 1 == chars.size()) return true;
    return chars[at + 1] < 0x80 && !(chars[at] == '\r' && chars[at + 1] == '\n');
  }

  // Appends the replacement of `part`, if there is one.
  Result<bool> replace(std::u32string_view part, std::vector<CharChange>& changes) const {
    // A cluster may have any number of characters, but is of no use beyond this many bytes.
    if (part.size() > kMostClusterBytes) return false;
    const std::string bytes = encode_utf8(part);
    if (part.size() > 1 && bytes.size() > kMostClusterBytes) return false;
    VKF_ASSIGN(const auto found, map_.find(bytes));
    if (!found) return false;
    for (const char32_t c : *found) changes.push_back({c, 0});
    if (found->size() >= part.size()) {
      // The last ones are new.
      const size_t added = found->size() - part.size();
      for (size_t i = 0; i < added; ++i) changes[changes.size() - 1 - i].change = 1;
    } else if (!changes.empty()) {
      // The last one stands for those that are gone as well.
      changes.back().change -= static_cast<int32_t>(part.size() - found->size());
    }
    return true;
  }

  CharacterMap map_;
  std::array<bool, 0x80> plain_{};  // ASCII characters without a replacement of their own
};

class NmtNormalizer final : public TextNormalizer {
 public:
  Status apply(AlignedText& text) const override {
    std::vector<uint8_t> keep;
    std::vector<CharChange> changes;
    keep.reserve(text.size());
    changes.reserve(text.size());
    bool drops = false;
    bool changed = false;
    for (const char32_t c : text.chars()) {
      keep.push_back(is_dropped(c) ? 0 : 1);
      drops = drops || keep.back() == 0;
      if (keep.back() == 0) continue;
      changes.push_back({is_space(c) ? U' ' : c, 0});
      changed = changed || changes.back().c != c;
    }
    if (drops) text.filter(keep);
    if (changed) text.rewrite(changes, 0);
    return {};
  }

 private:
  // Control characters without a meaning in text.
  static bool is_dropped(char32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
           c == 0x8F || c == 0x9F;
  }
  // Spaces, line ends and characters without a width.
  static bool is_space(char32_t c) {
    return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
  }
};

}  // namespace

Result<NormalizerPtr> parse_precompiled_normalizer(const JsonRef& json, int depth) {
  return PrecompiledNormalizer::parse(json, depth);
}

Result<NormalizerPtr> parse_nmt_normalizer(const JsonRef&, int) {
  return NormalizerPtr(std::make_unique<NmtNormalizer>());
}

}  // namespace vkformer
