// Writing a file whole or not at all: a temporary file beside it, then a rename.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// Writes `pieces` one after the other as the file `path`. Readers see the old content or the new;
// after a failure the old content stands and no temporary file is left. Windows does not replace a
// file that somebody has mapped.
Status replace_file(const std::string& path, const std::vector<std::span<const std::byte>>& pieces);

}  // namespace vkformer
