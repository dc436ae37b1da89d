// Waiting for a session that prepares what was started.
#pragma once

#include <chrono>
#include <thread>

#include "vkformer/session.h"

namespace vkformer::testing {

// Whether it still does; leaves the core to it for a moment.
inline bool still_prepares(const Advance& advance) {
  if (advance.progress != Advance::Progress::kPreparing) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return true;
}

}  // namespace vkformer::testing
