// AlignedText: code points under normalization, each carrying the range of the original text it
// came from. Needs: CharChange.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unicode/unicode.h"

namespace vkformer {

// A half-open range of code points of the original text.
struct CharSpan {
  uint32_t begin = 0;
  uint32_t end = 0;

  bool operator==(const CharSpan&) const = default;
};

// A (piece of a) text and where each of its characters came from. As long as characters correspond
// one to one to neighboring characters of the original, no ranges are stored. This is the common
// case. The same holds if some more characters were put before them.
class AlignedText {
 public:
  AlignedText() = default;
  // The text itself; `chars` has at most 2^32 - 1 code points.
  explicit AlignedText(std::u32string chars);

  std::u32string_view chars() const { return chars_; }
  size_t size() const { return chars_.size(); }
  bool empty() const { return chars_.empty(); }
  // Where this piece starts in the original text; 0 tells a pre-tokenizer that it is the first one.
  uint32_t origin() const { return origin_; }

  // The original range of one character. Precondition: index < size().
  CharSpan span(size_t index) const {
    if (!spans_.empty()) return spans_[index];
    const uint32_t at = counted(index);
    return {at, at + 1};
  }
  // The original range of characters [begin, end). Precondition: begin <= end <= size().
  CharSpan original_range(size_t begin, size_t end) const {
    if (begin < end) return {span(begin).begin, span(end - 1).end};
    return {place_between(begin), place_between(begin)};
  }
  // The characters [begin, end) as its own piece. Precondition: begin <= end <= size().
  AlignedText slice(size_t begin, size_t end) const;

  // The characters, for changes of one into one. They keep their ranges.
  std::span<char32_t> mutable_chars() { return chars_; }
  // Replaces the whole text by `changes`, after dropping the first `dropped` characters. An
  // inserted character shares the range of the old character before it.
  void rewrite(std::span<const CharChange> changes, size_t dropped);
  // Keeps the characters with keep[i] != 0. Precondition: keep.size() == size().
  void filter(const std::vector<uint8_t>& keep);
  // Replaces each range, in order and disjoint, by `content`, which takes the place of the range's
  // last character.
  void replace_ranges(std::span<const CharSpan> ranges, std::u32string_view content);
  // Puts `content` in front, sharing the range of the first character; nothing for an empty text.
  void prepend(std::u32string_view content);

  // The characters as a string of their own.
  std::u32string release_chars() && { return std::move(chars_); }

  // Building a text from pieces of others.
  void reserve(size_t size) { chars_.reserve(size); }
  // Appends a character that came from `span` of the original.
  void append(char32_t c, CharSpan span);
  // Appends the characters [begin, end) of `from`. Precondition: begin <= end <= from.size().
  void append(const AlignedText& from, size_t begin, size_t end);
  // An empty text that starts where this one does in the original.
  AlignedText empty_copy() const;

 private:
  // Where character `index` came from while no ranges are stored.
  uint32_t counted(size_t index) const {
    return static_cast<uint32_t>(base_ + (index > lead_ ? index - lead_ : 0));
  }
  // Where in the original the place before character `index` is.
  uint32_t place_between(size_t index) const;
  // Counts on for a next character that came from `begin`, where that needs no stored range.
  bool count_on(uint32_t begin);
  // Stores the ranges one by one from here on.
  void store_spans();

  std::u32string chars_;
  // One per character; or none: the first lead_ + 1 characters came from base_, those after them
  // from the places after it.
  std::vector<CharSpan> spans_;
  uint32_t base_ = 0;
  uint32_t lead_ = 0;
  uint32_t origin_ = 0;
};

}  // namespace vkformer
