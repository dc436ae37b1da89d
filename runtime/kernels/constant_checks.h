// What the build asserts of a kernel's specialization constants (cmake/constant_checks.cmake): its
// list has each constant of its SPIR-V. For generated files only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "kernel_constants.inc"

namespace vkformer {

struct ListedConstant {
  uint64_t id;
  std::string_view name;
  uint64_t otherwise;  // the default
};
#define VKF_CONSTANT_ROW(id, name, field, otherwise) {id, #name, otherwise},

inline constexpr uint64_t kAnyDefault = ~uint64_t{0};

// Whether a list has a constant of that id, name ("": any) and default.
consteval bool lists(std::initializer_list<ListedConstant> list, uint64_t id, std::string_view name,
                     uint64_t otherwise) {
  for (const ListedConstant& c : list) {
    if (c.id != id) continue;
    return (name.empty() || c.name == name) &&
           (otherwise == kAnyDefault || c.otherwise == otherwise);
  }
  return false;
}

}  // namespace vkformer
