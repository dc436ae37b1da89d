// Files inside a text, as data URLs (RFC 2397) in Base64 (RFC 4648, section 4).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "vkformer/result.h"

namespace vkformer::cli {

// The bytes of "data:image/...;base64,...", an image of at most `most` bytes; that is checked
// before they are decoded. kInvalidArgument: the text is another URL or a path, which are never
// opened, or no Base64. `where` names it in messages.
Result<std::vector<std::byte>> read_image_url(std::string_view url, size_t most,
                                              const std::string& where);

}  // namespace vkformer::cli
