// Which known name a mistyped one was meant to be. Used for commands, options and model folders.
#pragma once

#include <string>
#include <vector>

namespace vkformer::cli {

// The known name that takes the fewest typing errors to become `name`: insertions, deletions,
// replacements and swaps of neighbors. Empty where none is near: up to a third of the letters may
// be wrong. A name that goes on where `name` ends (at a letter or more) counts as one error.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

}  // namespace vkformer::cli
