// Links in a model directory. Needs: Result.
#pragma once

#include <string>

#include "vkformer/result.h"

namespace vkformer {

// A file of a directory is inside it also where it, or its folder, is a link. What the hub's cache
// of Hugging Face keeps as links (snapshots/REVISION to the blobs beside) counts as inside. An
// error names the file and where it leads; none for a file that does not exist.
Status check_inner_link(const std::string& directory, const std::string& path);

}  // namespace vkformer
