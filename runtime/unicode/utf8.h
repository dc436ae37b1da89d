// UTF-8 bytes to Unicode code points and back. Needs: Result.
#pragma once

#include <string>
#include <string_view>

#include "vkformer/result.h"

namespace vkformer {

// The code points of `bytes`. Malformed, overlong, surrogate and out-of-range sequences are an
// error that names the byte offset; `what` names the text in the message. The result may lie in
// `memory`, whose content is lost.
Result<std::u32string> decode_utf8(std::string_view bytes, std::string_view what,
                                   std::u32string memory = {});

// Appends one code point. Precondition: a Unicode scalar value.
void append_utf8(std::string& bytes, char32_t code_point);

// The UTF-8 bytes of `code_points`. Precondition: Unicode scalar values.
std::string encode_utf8(std::u32string_view code_points);

}  // namespace vkformer
