// HandleAccess: the one way from a public handle to what it holds, and back. Every public class
// names it as its only friend and calls what it holds impl_; applications see its name and nothing
// else.
#pragma once

#include <utility>

namespace vkformer {

struct HandleAccess {
  // The pointer or parts that a handle holds; null of a handle that was moved away.
  template <class Handle>
  static const auto& impl(const Handle& handle) {
    return handle.impl_;
  }

  // A handle of what it is to hold.
  template <class Handle, class Impl>
  static Handle make(Impl&& impl) {
    return Handle(std::forward<Impl>(impl));
  }
};

}  // namespace vkformer
