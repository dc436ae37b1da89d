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

// Characters that a text may have after a step that made it longer. Steps multiply, and 40 that
// double it would make 2^40 of one. A longer text that a step does not lengthen is fine.
inline constexpr size_t kMostNormalized = size_t{1} << 25;
// An error where a step would make more than that, of a text of `before` characters.
Status check_growth(size_t before, size_t after);

// Puts a text into lower case, character by character.
void lower_case(AlignedText& text);

// Reads the file's "normalizer" by the list in normalizers.cpp.
Result<std::unique_ptr<TextNormalizer>> parse_normalizer(const JsonRef& json, int depth = 0);

}  // namespace vkformer
