// KeptMemory: the working memory of one call, kept for the next. Needs: AlignedText.
//
// Threading: any thread may take and give; two calls at once have memory of their own.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "unicode/aligned_text.h"

namespace vkformer {

// Memory that a text under way needs in proportion to its length; what is in it means nothing.
struct TextMemory {
  std::u32string chars;
  std::vector<CharSpan> words;

  size_t bytes() const {
    return chars.capacity() * sizeof(char32_t) + words.capacity() * sizeof(CharSpan);
  }
};

// Fresh memory costs more than encoding in it: the system hands out every page of it cleared, and
// takes it back after each call.
class KeptMemory {
 public:
  TextMemory take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(kept_, TextMemory());
  }
  void give(TextMemory memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (memory.bytes() <= kMostBytes && memory.bytes() > kept_.bytes()) kept_ = std::move(memory);
  }

 private:
  // What a text of about 1.3 MB needs; that of longer ones goes back at once.
  static constexpr size_t kMostBytes = 8u << 20;

  std::mutex mutex_;
  TextMemory kept_;
};

}  // namespace vkformer
