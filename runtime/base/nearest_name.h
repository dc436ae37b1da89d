// Which known name a wrong one was meant to be. Needs: nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vkformer {

// The known name with the fewest insertions, deletions and replacements of bytes from `name`, the
// first of equal ones; "" if there are no known names.
std::string_view nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace vkformer
