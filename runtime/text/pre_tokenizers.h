// Pre-tokenizers: cutting a normalized text into the words a model sees one at a time.
// Needs: AlignedText, JsonRef.
#pragma once

#include <memory>
#include <vector>

#include "text/aligned_text.h"
#include "text/json_access.h"

namespace vkformer {

// One splitting step. Immutable; threads may share it.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // The pieces of `text`, none of them empty. A step may rewrite the pieces too, as byte-level ones
  // do.
  virtual Result<std::vector<AlignedText>> split(AlignedText text) const = 0;
};

// Reads the file's "pre_tokenizer" by the list in pre_tokenizers.cpp.
Result<std::unique_ptr<PreTokenizer>> parse_pre_tokenizer(const JsonRef& json, int depth = 0);

}  // namespace vkformer
