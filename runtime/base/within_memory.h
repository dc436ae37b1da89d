// Exceptions for want of memory end where the library's own calls begin. Needs: Result.
#pragma once

#include <new>

#include "vkformer/result.h"

namespace vkformer {

// What `make` gives, or kOutOfMemory with this message where memory ran out on the way.
template <class Make>
auto within_memory(const char* message, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, message};
  }
}

}  // namespace vkformer
