// Normalizers: what happens to a text before it is split. Needs: AlignedText, JsonRef.
#pragma once

#include <memory>

#include "json/json_access.h"
#include "unicode/aligned_text.h"

namespace vkformer {

// One normalization step. Immutable; threads may share it.
class TextNormalizer {
 public:
  virtual ~TextNormalizer() = default;
  // Rewrites `text` in place, keeping its alignment.
  virtual Status apply(AlignedText& text) const = 0;
};

// Puts a text into lower case, character by character.
void lower_case(AlignedText& text);

// Reads the file's "normalizer" by the list in normalizers.cpp.
Result<std::unique_ptr<TextNormalizer>> parse_normalizer(const JsonRef& json, int depth = 0);

}  // namespace vkformer
