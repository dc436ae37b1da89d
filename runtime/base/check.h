// Short forms for passing errors up. Needs: Result.
#pragma once

#include <string>
#include <utility>

#include "vkformer/result.h"

// Returns the error of `expression` (a Result of any type) from the calling function, if it has
// one.
#define VKF_CHECK(expression)                          \
  do {                                                 \
    auto vkf_result_ = (expression);                   \
    if (!vkf_result_.ok()) return vkf_result_.error(); \
  } while (false)

#define VKF_CONCAT_INNER(a, b) a##b
#define VKF_CONCAT(a, b) VKF_CONCAT_INNER(a, b)

// `VKF_ASSIGN(auto x, f());` declares x from f()'s value, or returns f()'s error.
#define VKF_ASSIGN(declaration, expression) \
  VKF_ASSIGN_INNER(VKF_CONCAT(vkf_result_, __LINE__), declaration, expression)
#define VKF_ASSIGN_INNER(name, declaration, expression) \
  auto name = (expression);                             \
  if (!name.ok()) return name.error();                  \
  declaration = std::move(name).value()

namespace vkformer {

inline Error invalid_argument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}
inline Error invalid_file(std::string message) {
  return {ErrorCode::kInvalidFile, std::move(message)};
}
inline Error not_found(std::string message) {
  return {ErrorCode::kNotFound, std::move(message)};
}
inline Error unsupported(std::string message) {
  return {ErrorCode::kUnsupported, std::move(message)};
}
inline Error cancelled(std::string message) {
  return {ErrorCode::kCancelled, std::move(message)};
}
inline Error internal_error(std::string message) {
  return {ErrorCode::kInternal, std::move(message)};
}

}  // namespace vkformer
