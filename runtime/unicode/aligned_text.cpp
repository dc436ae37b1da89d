#include "unicode/aligned_text.h"

#include <algorithm>
#include <utility>

namespace vkformer {

AlignedText::AlignedText(std::u32string chars) : chars_(std::move(chars)) {}

uint32_t AlignedText::place_between(size_t index) const {
  return index < size() ? span(index).begin : empty() ? origin_ : span(size() - 1).end;
}

bool AlignedText::count_on(uint32_t begin) {
  if (!spans_.empty()) return false;
  if (chars_.empty()) {
    base_ = begin;
    lead_ = 0;
  }
  if (begin == counted(chars_.size())) return true;
  if (begin != base_ || chars_.size() != size_t{lead_} + 1) return false;
  ++lead_;
  return true;
}

AlignedText AlignedText::slice(size_t begin, size_t end) const {
  AlignedText piece;
  piece.chars_ = chars_.substr(begin, end - begin);
  if (spans_.empty()) {
    piece.base_ = counted(begin);
    piece.lead_ = begin < lead_ ? static_cast<uint32_t>(lead_ - begin) : 0;
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
    const uint32_t at = counted(i);
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
  const auto is_character = [](CharSpan range) { return range.end - range.begin == 1; };
  if (content.size() == 1 && std::all_of(ranges.begin(), ranges.end(), is_character)) {
    for (const CharSpan& range : ranges) chars_[range.begin] = content[0];
    return;
  }
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
  chars_.insert(0, content);
  if (spans_.empty()) {
    lead_ += static_cast<uint32_t>(content.size());
  } else {
    spans_.insert(spans_.begin(), content.size(), first);
  }
}

void AlignedText::append(char32_t c, CharSpan span) {
  if (span.end != span.begin + 1 || !count_on(span.begin)) {
    store_spans();
    spans_.push_back(span);
  }
  chars_.push_back(c);
}

void AlignedText::append(const AlignedText& from, size_t begin, size_t end) {
  if (from.spans_.empty()) {
    for (; begin < end && begin < from.lead_; ++begin) {
      append(from.chars_[begin], from.span(begin));
    }
  }
  if (begin >= end) return;
  if (from.spans_.empty() && count_on(from.counted(begin))) {
    chars_.append(from.chars_, begin, end - begin);
    return;
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
