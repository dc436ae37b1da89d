// Metaspace: spaces as a visible character of the vocabulary ("▁the"), both ways.
#pragma once

#include "text/decoders.h"
#include "text/pre_tokenizers.h"

namespace vkformer {

// {"type": "Metaspace", "replacement": one character, "prepend_scheme": "always" | "first" |
// "never", "split": bool}; older files have "add_prefix_space" in place of the scheme.
Result<std::unique_ptr<PreTokenizer>> parse_metaspace_pre_tokenizer(const JsonRef& json, int depth);
Result<std::unique_ptr<TokenDecoder>> parse_metaspace_decoder(const JsonRef& json, int depth);

}  // namespace vkformer
