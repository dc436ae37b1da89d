#include "base/guarded.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/message.h"

namespace vkformer {
namespace {

Error named_error() {
  try {
    throw;
  } catch (const std::system_error& error) {
    // A thread that cannot be started, a mutex that cannot be made.
    const bool resources = error.code() == std::errc::resource_unavailable_try_again ||
                           error.code() == std::errc::not_enough_memory;
    return {resources ? ErrorCode::kOutOfMemory : ErrorCode::kInternal,
            message({"The [system] refused a thread or a lock: ", error.what(),
                     resources ? ". End other threads, or raise the process's limit."
                               : ". Please report it as a bug."})};
  } catch (const std::exception& error) {
    return {ErrorCode::kInternal,
            message({"An exception reached [vkformer]: ", error.what(),
                     ". If no callback of yours threw it, report it as a bug."})};
  } catch (...) {
    return {ErrorCode::kInternal,
            "An exception of an unknown type reached [vkformer]. If no callback of yours threw it, "
            "report it as a bug."};
  }
}

}  // namespace

Error absent_part(const char* part) noexcept {
  try {
    std::string name(part);
    for (char& letter : name) letter = static_cast<char>(letter - 'A' + 'a');
    return {ErrorCode::kUnsupported,
            message({"[", name, "] This build omits ", name, "; build vkformer with VKFORMER_WITH_",
                     part, "=ON."})};
  } catch (...) {
    return caught_error();
  }
}

Error caught_error(const char* no_memory) noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return {ErrorCode::kOutOfMemory, no_memory};
    } catch (const std::length_error&) {
      return {ErrorCode::kOutOfMemory, no_memory};
    } catch (...) {
      return named_error();
    }
  } catch (...) {
    // Not even the message could be allocated; this one is short enough to lie in the string.
    return {ErrorCode::kOutOfMemory, "[memory] is out"};
  }
}

}  // namespace vkformer
