// A page for a browser that holds attention maps and shows them.
// Needs: vkformer/attention_view.h for the maps that callers hand in.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vkformer/attention_view.h"

namespace vkformer {

// `text` as the content of a JSON string, without quotes: ASCII alone, and no character that ends a
// script element or means something in markup. Bytes that are not UTF-8 become U+FFFD.
std::string page_json_text(std::string_view text);

// `text` as markup text.
std::string page_markup_text(std::string_view text);

// Bytes as text: RFC 4648, section 4.
std::string base64_text(std::span<const uint8_t> bytes);

// The whole page, or an error that names its size and the limit.
Result<std::string> write_attention_page(std::span<const AttentionMaps> maps,
                                         const AttentionPageOptions& options);

}  // namespace vkformer
