// WordList: a text under pre-tokenization, and the words cut out of it so far. Needs: AlignedText.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "text/kept_memory.h"
#include "unicode/aligned_text.h"

namespace vkformer {

// One buffer for all words: a word is a range of its characters, so that cutting copies nothing.
class WordList {
 public:
  // All of `text` as one word; no word for an empty text. Lists of words may use `memory`.
  explicit WordList(AlignedText text, std::vector<CharSpan> memory = {})
      : text_(std::move(text)), spare_(std::move(memory)) {
    if (!text_.empty()) words_.push_back({0, static_cast<uint32_t>(text_.size())});
  }

  const AlignedText& text() const { return text_; }
  std::u32string_view chars() const { return text_.chars(); }
  // The characters, for changes of one into one.
  std::span<char32_t> mutable_chars() { return text_.mutable_chars(); }
  // Ranges of chars(), in order and disjoint, none empty.
  std::span<const CharSpan> words() const { return words_; }
  // Where a word starts in the original text; 0 tells that it is the first one.
  uint32_t origin(CharSpan word) const {
    return is_cut_ ? text_.original_range(word.begin, word.end).begin : text_.origin();
  }

  // Puts `content` before the text, where all of it is still one word. False, and nothing
  // changes, where it is not.
  bool prepend_to_whole(std::u32string_view content) {
    if (is_cut_ || words_.size() != 1) return false;
    text_.prepend(content);
    words_[0].end = static_cast<uint32_t>(text_.size());
    return true;
  }

  // Calls `cut_word(std::u32string_view word, std::vector<CharSpan>& parts) -> Status` for every
  // word; it appends the word's parts, in order, as ranges of the word. Empty parts are dropped.
  template <class CutWord>
  Status cut(CutWord cut_word) {
    std::vector<CharSpan> next = std::move(spare_);
    next.clear();
    next.reserve(words_.size() > 1 ? words_.size() : chars().size() / 4 + 1);
    for (const CharSpan& word : words_) {
      const size_t first = next.size();
      VKF_CHECK(cut_word(chars().substr(word.begin, word.end - word.begin), next));
      size_t kept = first;
      for (size_t i = first; i < next.size(); ++i) {
        if (next[i].begin == next[i].end) continue;
        next[kept++] = {next[i].begin + word.begin, next[i].end + word.begin};
      }
      next.resize(kept);
    }
    spare_ = std::exchange(words_, std::move(next));
    is_cut_ = true;
    return {};
  }

  // The memory of the list, which is of no more use.
  TextMemory release() {
    if (words_.capacity() < spare_.capacity()) words_.swap(spare_);
    return {std::move(text_).release_chars(), std::move(words_)};
  }

  // Calls `rewrite_word(const AlignedText& text, CharSpan word, AlignedText& out) -> Status` for
  // every word; it appends what becomes of the characters `word` of `text`. Characters outside of
  // words are dropped, and so are words that become empty.
  template <class RewriteWord>
  Status rewrite_each(RewriteWord rewrite_word) {
    AlignedText out = text_.empty_copy();
    out.reserve(text_.size());
    size_t kept = 0;
    for (const CharSpan word : words_) {
      const auto begin = static_cast<uint32_t>(out.size());
      VKF_CHECK(rewrite_word(std::as_const(text_), word, out));
      const auto end = static_cast<uint32_t>(out.size());
      if (begin != end) words_[kept++] = {begin, end};
    }
    words_.resize(kept);
    text_ = std::move(out);
    return {};
  }

  // Calls `split_word(AlignedText word) -> Result<std::vector<AlignedText>>` for every word, which
  // may cut it and rewrite the pieces. Copies each word: for steps that can do no better.
  template <class SplitWord>
  Status split_each(SplitWord split_word) {
    AlignedText out = text_.empty_copy();
    std::vector<CharSpan> next;
    for (const CharSpan& word : words_) {
      VKF_ASSIGN(const std::vector<AlignedText> pieces,
                 split_word(is_cut_ ? text_.slice(word.begin, word.end) : text_));
      for (const AlignedText& piece : pieces) {
        if (piece.empty()) continue;
        const auto begin = static_cast<uint32_t>(out.size());
        out.append(piece, 0, piece.size());
        next.push_back({begin, static_cast<uint32_t>(out.size())});
      }
    }
    text_ = std::move(out);
    words_ = std::move(next);
    is_cut_ = true;
    return {};
  }

 private:
  AlignedText text_;
  std::vector<CharSpan> words_;
  std::vector<CharSpan> spare_;  // memory for the next words_
  bool is_cut_ = false;          // words_ may be something else than all of the text
};

}  // namespace vkformer
