// guarded(): no exception leaves the library. Every public call that returns a Result runs in one,
// and so does every thread of ours.
#pragma once

#include "vkformer/result.h"

namespace vkformer {

// What a call says where memory ran out and it knows nothing better.
inline constexpr const char* kNoHostMemory =
    "The [host] has too little memory for this call; free some or ask for less.";

// The error that the exception being handled amounts to. Where memory or another resource of the
// system ran out, it is kOutOfMemory with the message `no_memory`. For any other, such as one of a
// callback of the application, it is kInternal with the exception's text. Call it in a catch block.
Error caught_error(const char* no_memory = kNoHostMemory) noexcept;

// The error of every call of a part that this build omits, such as "TASKS"
// (cmake/parts.cmake).
Error absent_part(const char* part) noexcept;

#ifdef VKFORMER_ABSENT_PART

// A file of a part that this build omits. Its bodies are checked and never compiled to code, so
// that nothing of the part is linked.
template <class Body>
auto guarded(const char*, const Body& body) noexcept -> decltype(body()) {
  return absent_part(VKFORMER_ABSENT_PART);
}
// What `body` gives where its part is in the build, else nothing. It is for calls without a Result,
// which no object of an absent part is there for.
template <class Body>
auto if_present(const Body& body) -> decltype(body()) {
  return {};
}

#else

// What `body`, which returns a Result or a Status, gives; an error where it throws.
template <class Body>
auto guarded(const char* no_memory, const Body& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return caught_error(no_memory);
  }
}

template <class Body>
auto if_present(const Body& body) -> decltype(body()) {
  return body();
}

#endif

template <class Body>
auto guarded(const Body& body) noexcept -> decltype(body()) {
  return guarded(kNoHostMemory, body);
}

}  // namespace vkformer
