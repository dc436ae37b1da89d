// Pre-tokenizers: cutting a normalized text into the words a model sees one at a time.
// Needs: WordList, JsonRef.
#pragma once

#include <memory>

#include "json/json_access.h"
#include "text/word_list.h"

namespace vkformer {

// One splitting step. Immutable; threads may share it.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts every word of `words` further. A step may rewrite them too, as byte-level ones do.
  virtual Status apply(WordList& words) const = 0;
};

// Reads the file's "pre_tokenizer" by the list in pre_tokenizers.cpp.
Result<std::unique_ptr<PreTokenizer>> parse_pre_tokenizer(const JsonRef& json, int depth = 0);

}  // namespace vkformer
