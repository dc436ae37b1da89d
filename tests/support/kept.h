// What tests share: made at the first use, let go of before main returns. When our globals are
// destroyed, those of a validation layer may be gone.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace vkformer::testing {

// Lets go of what is kept; filled as things are made.
inline std::vector<std::function<void()>>& kept_things() {
  static std::vector<std::function<void()>> things;
  return things;
}

// For test_main.cpp. The latest goes first.
inline void let_go_of_kept() {
  while (!kept_things().empty()) {
    const std::function<void()> let_go = kept_things().back();
    kept_things().pop_back();
    let_go();
  }
}

template <class T>
class Kept {
 public:
  template <class Make>
  T& get(const Make& make) {
    if (!value_) {
      value_.emplace(make());
      kept_things().push_back([this] { value_.reset(); });
    }
    return *value_;
  }

 private:
  std::optional<T> value_;
};

}  // namespace vkformer::testing
