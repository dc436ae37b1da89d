// StopStrings: ends a text where the first of several strings is complete, while it still arrives
// in pieces. What may be the beginning of one is held back. For who decodes tokens without a task,
// such as those of a GenerationBatch.
//
// Threading: one thread at a time. Lifetime: a plain value that owns what it needs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vkformer/export.h"

namespace vkformer {

class VKFORMER_API StopStrings {
 public:
  // Empty strings end nothing.
  explicit StopStrings(std::vector<std::string> stops);

  // The text that is certain with this piece; nothing once a string was found.
  std::string push(std::string_view piece);
  // What was held back, where no string came.
  std::string finish();
  // Whether one of the strings came. The text ends before it.
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace vkformer
