// Truncation and padding of encodings, and their settings in the file. Needs: Encoding, JsonRef.
#pragma once

#include <vector>

#include "json/json_access.h"
#include "vkformer/tokenizer.h"

namespace vkformer {

// Reads the file's "truncation" and "padding"; the mode is kOff where it has none.
Result<TruncationOptions> parse_truncation(const JsonRef& root);
Result<PaddingOptions> parse_padding(const JsonRef& root);

// Cuts one encoding, or two that belong together, so that they and `added` special tokens fit.
Status truncate_encodings(std::vector<Encoding>& parts, const TruncationOptions& options,
                          size_t added);

// Brings `rows` to the length the options ask for, with `pad_id` and its `pad_token`.
Status pad_encodings(std::vector<Encoding>& rows, const PaddingOptions& options, TokenId pad_id,
                     const std::string& pad_token);

}  // namespace vkformer
