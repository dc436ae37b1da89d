// Names as a text of an error. Needs: nothing.
#pragma once

#include <string>

namespace vkformer {

// "a, b, c"; "" without names.
template <class Names>
std::string name_list(const Names& names) {
  std::string list;
  for (const auto& name : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

}  // namespace vkformer
