#include "text/aligned_text.h"

#include <algorithm>
#include <utility>

namespace vkformer {

AlignedText::AlignedText(std::u32string chars) : chars_(std::move(chars)) {}

CharSpan AlignedText::original_range(size_t begin, size_t end) const {
  if (begin < end) return {span(begin).begin, span(end - 1).end};
  const uint32_t at = begin < size() ? span(begin).begin : empty() ? origin_ : span(size() - 1).end;
  return {at, at};
}

AlignedText AlignedText::slice(size_t begin, size_t end) const {
  AlignedText piece;
  piece.chars_ = chars_.substr(begin, end - begin);
  if (spans_.empty()) {
    piece.base_ = static_cast<uint32_t>(base_ + begin);
  } else {
    piece.spans_.assign(spans_.begin() + static_cast<ptrdiff_t>(begin),
                        spans_.begin() + static_cast<ptrdiff_t>(end));
  }
  piece.origin_ = original_range(begin, end).begin;
  return piece;
}

void AlignedText::store_spans() {
  if (!spans_.empty()) return;
  spans_.reserve(chars_.capacity());
  for (size_t i = 0; i < chars_.size(); ++i) {
    const auto at = static_cast<uint32_t>(base_ + i);
    spans_.push_back({at, at + 1});
  }
}

void AlignedText::rewrite(std::span<const CharChange> changes, size_t dropped) {
  AlignedText out = empty_copy();
  out.reserve(changes.size());
  size_t at = dropped;  // the next old character
  for (const CharChange& change : changes) {
    CharSpan old{origin_, origin_};
    if (change.change > 0) {
      if (at > 0 && !empty()) old = span(std::min(at, size()) - 1);
    } else {
      if (!empty()) old = span(std::min(at, size() - 1));
      at += 1 + static_cast<size_t>(-change.change);
    }
    out.append(change.c, old);
  }
  *this = std::move(out);
}

void AlignedText::filter(const std::vector<uint8_t>& keep) {
  const auto dropped = std::find(keep.begin(), keep.end(), uint8_t{0});
  if (dropped == keep.end()) return;
  store_spans();
  auto kept = static_cast<size_t>(dropped - keep.begin());
  for (size_t i = kept; i < chars_.size(); ++i) {
    if (keep[i] == 0) continue;
    chars_[kept] = chars_[i];
    spans_[kept] = spans_[i];
    ++kept;
  }
  chars_.resize(kept);
  spans_.resize(kept);
}

void AlignedText::replace_ranges(std::span<const CharSpan> ranges, std::u32string_view content) {
  AlignedText out = empty_copy();
  out.reserve(size());
  size_t at = 0;
  for (const CharSpan& range : ranges) {
    out.append(*this, at, range.begin);
    const CharSpan last = range.end > 0 ? span(range.end - 1) : CharSpan{origin_, origin_};
    for (const char32_t c : content) out.append(c, last);
    at = range.end;
  }
  out.append(*this, at, size());
  *this = std::move(out);
}

void AlignedText::prepend(std::u32string_view content) {
  if (empty() || content.empty()) return;
  const CharSpan first = span(0);
  store_spans();
  chars_.insert(0, content);
  spans_.insert(spans_.begin(), content.size(), first);
}

void AlignedText::append(char32_t c, CharSpan span) {
  if (spans_.empty()) {
    if (chars_.empty()) base_ = span.begin;
    const auto next = static_cast<uint32_t>(base_ + chars_.size());
    if (span == CharSpan{next, next + 1}) {
      chars_.push_back(c);
      return;
    }
    store_spans();
  }
  chars_.push_back(c);
  spans_.push_back(span);
}

void AlignedText::append(const AlignedText& from, size_t begin, size_t end) {
  if (begin >= end) return;
  if (spans_.empty() && from.spans_.empty()) {
    const auto first = static_cast<uint32_t>(from.base_ + begin);
    if (chars_.empty()) base_ = first;
    if (first == base_ + chars_.size()) {
      chars_.append(from.chars_, begin, end - begin);
      return;
    }
  }
  store_spans();
  chars_.append(from.chars_, begin, end - begin);
  for (size_t i = begin; i < end; ++i) spans_.push_back(from.span(i));
}

AlignedText AlignedText::empty_copy() const {
  AlignedText copy;
  copy.origin_ = origin_;
  copy.base_ = origin_;
  return copy;
}

}  // namespace vkformer
