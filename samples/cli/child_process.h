// Runs this very program again, for measurements that need a fresh process.
#pragma once

#include <string>
#include <vector>

#include "vkformer/result.h"

namespace vkformer::cli {

// What the child wrote to stdout; its stderr goes to ours. An error if it did not exit with 0.
Result<std::string> run_self(const std::vector<std::string>& arguments);

// Milliseconds since this process was started.
double process_age_ms();

}  // namespace vkformer::cli
