// Faults of templates. Inside this room a failure is thrown, because an interpreter passes failures
// through every line of it. The two functions that other rooms call turn it into an Error.
// Needs: Result.
#pragma once

#include <string>

#include "vkformer/result.h"

namespace vkformer::chat {

struct Fault {
  Error error;
};

// "[chat template] line N: <complaint>"; without a line for 0.
[[noreturn]] void fail(const std::string& complaint, int line = 0);

}  // namespace vkformer::chat
