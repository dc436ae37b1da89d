// Result<T>: a value or an Error, the way every fallible call of vkformer reports failure.
//
// Threading: plain values; share them as you would share an int.
// Lifetime: owns what it holds. A call that returns a Result or a Status never throws, whatever
// fails in it. kOutOfMemory says that memory ran out. kInternal comes with the text of any other
// exception, such as one of a callback. A call that returns a plain copy (a text, a list) can only
// run out of memory: std::bad_alloc. Bad input never aborts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace vkformer {

// What went wrong, coarse enough to switch on. The message carries the particulars.
enum class ErrorCode : uint8_t {
  kInvalidArgument,  // the caller's value is outside what the call accepts
  kNotFound,         // a file, device, tensor or name does not exist
  kInvalidFile,      // a file's content is malformed, truncated or hostile
  kUnsupported,      // well-formed, but this build, model family or device cannot do it
  kOutOfMemory,      // host or device memory, or a configured budget, is exhausted
  kDeviceLost,       // the Vulkan device was lost; make a new Device
  kDriver,           // a Vulkan call failed in another way
  kCancelled,        // the caller asked to stop
  kInternal,         // a bug in vkformer; please report it
  kQueueFull,        // a queue holds its maximum; try again after some of its work has ended
};

// A failure: a code, and one full sentence with the value, the limit and what to do.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // The same error with `context` put in front: "context: message".
  Error with_context(const std::string& context) const { return {code, context + ": " + message}; }
};

// A T or an Error. Test it before use: `if (!r) return r.error();`.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  // Precondition: !ok().
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value, or an Error. `return {};` is success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  // Precondition: !ok().
  const Error& error() const { return error_; }

 private:
  bool failed_ = false;
  Error error_;
};

using Status = Result<void>;

}  // namespace vkformer
