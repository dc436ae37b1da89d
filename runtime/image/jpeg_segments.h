// The segments of a JPEG file, checked and freed of what decoding does not need. The decoder that
// follows trusts Huffman tables; here they are checked first. Needs: Result.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// The same picture as a file of checked tables, frame and scans alone, without comments, thumbnails
// and profiles. `name` stands for the path in messages. Precondition: starts with FF D8.
Result<std::vector<std::byte>> checked_jpeg(std::span<const std::byte> file,
                                            const std::string& name);

}  // namespace vkformer
