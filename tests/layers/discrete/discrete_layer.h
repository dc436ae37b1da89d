// What the test layer hands to a test in the same process. A test opens the layer's library with
// dlopen and RTLD_NOLOAD and looks the functions up by name; support/layer_counts.h does so.
//
// Threading: every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vkformer::testing {

// Vulkan calls of the whole process since the last restart.
struct LayerCounts {
  uint64_t submits = 0;          // vkQueueSubmit, vkQueueSubmit2
  uint64_t command_buffers = 0;  // in these submits
  uint64_t waits = 0;            // waits for semaphores, fences, a queue or a device
  uint64_t waits_reached = 0;    // of these: the GPU had already finished
  uint64_t foreign_waits = 0;    // of these: for work that another thread submitted
  uint64_t polls = 0;            // vkGetSemaphoreCounterValue, vkGetFenceStatus, waits of no time
  uint64_t maps = 0;             // vkMapMemory
  uint64_t refused_maps = 0;     // of these: of memory that the host cannot map
  uint64_t copies = 0;           // vkCmdCopyBuffer, vkCmdUpdateBuffer: recorded, not executed
};

// One wait. Threads are numbered from 1 in the order in which the layer first sees them.
struct LayerWait {
  enum class Kind : uint32_t { kSemaphore, kFence, kQueue, kDevice } kind = Kind::kSemaphore;
  uint32_t thread = 0;     // that waited
  uint32_t submitter = 0;  // thread that submitted what was waited for; 0: unknown, or several
  uint32_t reached = 0;    // 1: the GPU had finished before the call
  uint64_t value = 0;      // of a timeline semaphore; 0: of none
};

extern "C" {
// Names: vkformer_layer_counts, vkformer_layer_waits, vkformer_layer_thread and
// vkformer_layer_restart.
using LayerCountsFunction = void(LayerCounts* counts);
// Copies up to `capacity` waits since the last restart, oldest first; returns how many there are.
// The layer keeps the first 65,536.
using LayerWaitsFunction = size_t(LayerWait* waits, size_t capacity);
// The number of the calling thread.
using LayerThreadFunction = uint32_t();
// Sets every count to zero and forgets the waits.
using LayerRestartFunction = void();
}

}  // namespace vkformer::testing
