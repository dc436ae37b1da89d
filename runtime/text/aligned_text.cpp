#include "text/aligned_text.h"

#include <algorithm>
#include <utility>

namespace vkformer {

AlignedText::AlignedText(std::u32string chars) : chars_(std::move(chars)), spans_(chars_.size()) {
  for (size_t i = 0; i < spans_.size(); ++i) {
    spans_[i] = {static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1)};
  }
}

CharSpan AlignedText::original_range(size_t begin, size_t end) const {
  if (begin >= end) {
    const uint32_t at = begin < spans_.size() ? spans_[begin].begin
                        : spans_.empty()      ? origin_
                                              : spans_.back().end;
    return {at, at};
  }
  return {spans_[begin].begin, spans_[end - 1].end};
}

AlignedText AlignedText::slice(size_t begin, size_t end) const {
  AlignedText piece;
  piece.chars_ = chars_.substr(begin, end - begin);
  piece.spans_.assign(spans_.begin() + static_cast<ptrdiff_t>(begin),
                      spans_.begin() + static_cast<ptrdiff_t>(end));
  piece.origin_ = original_range(begin, end).begin;
  return piece;
}

void AlignedText::rewrite(std::span<const CharChange> changes, size_t dropped) {
  std::u32string chars;
  std::vector<CharSpan> spans;
  chars.reserve(changes.size());
  spans.reserve(changes.size());
  size_t at = dropped;  // the next old character
  for (const CharChange& change : changes) {
    CharSpan span{origin_, origin_};
    if (change.change > 0) {
      if (at > 0 && !spans_.empty()) span = spans_[std::min(at, spans_.size()) - 1];
    } else {
      if (!spans_.empty()) span = spans_[std::min(at, spans_.size() - 1)];
      at += 1 + static_cast<size_t>(-change.change);
    }
    chars.push_back(change.c);
    spans.push_back(span);
  }
  chars_ = std::move(chars);
  spans_ = std::move(spans);
}

void AlignedText::filter(const std::vector<uint8_t>& keep) {
  size_t kept = 0;
  for (size_t i = 0; i < chars_.size(); ++i) {
    if (keep[i] == 0) continue;
    chars_[kept] = chars_[i];
    spans_[kept] = spans_[i];
    ++kept;
  }
  chars_.resize(kept);
  spans_.resize(kept);
}

void AlignedText::replace_ranges(std::span<const CharSpan> ranges, std::u32string_view content) {
  std::u32string chars;
  std::vector<CharSpan> spans;
  size_t at = 0;
  const auto copy_until = [&](size_t end) {
    chars.append(chars_, at, end - at);
    spans.insert(spans.end(), spans_.begin() + static_cast<ptrdiff_t>(at),
                 spans_.begin() + static_cast<ptrdiff_t>(end));
  };
  for (const CharSpan& range : ranges) {
    copy_until(range.begin);
    const CharSpan span = range.end > 0 ? spans_[range.end - 1] : CharSpan{origin_, origin_};
    chars.append(content);
    spans.insert(spans.end(), content.size(), span);
    at = range.end;
  }
  copy_until(chars_.size());
  chars_ = std::move(chars);
  spans_ = std::move(spans);
}

void AlignedText::prepend(std::u32string_view content) {
  if (empty()) return;
  const CharSpan first = spans_.front();
  chars_.insert(0, content);
  spans_.insert(spans_.begin(), content.size(), first);
}

}  // namespace vkformer
