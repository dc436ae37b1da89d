// The normalizers of SentencePiece: Precompiled, a map of characters that the file carries, and
// Nmt, a fixed one. Needs: TextNormalizer.
#pragma once

#include "text/normalizers.h"

namespace vkformer {

// {"type": "Precompiled", "precompiled_charsmap": base64 text}
Result<std::unique_ptr<TextNormalizer>> parse_precompiled_normalizer(const JsonRef& json,
                                                                     int depth);
// {"type": "Nmt"}: drops control characters and turns special spaces into plain ones.
Result<std::unique_ptr<TextNormalizer>> parse_nmt_normalizer(const JsonRef& json, int depth);

}  // namespace vkformer
