// What one submit runs.
#pragma once

#include <span>

#include "vulkan/buffer_copy.h"
#include "vulkan/recording.h"

namespace vkformer {

// A recording, or one of the two parts of one that was cut.
struct RecordingRange {
  const Recording* recording = nullptr;
  RecordingPart part = RecordingPart::kAll;
};

// Copies between host memory and buffers surround the recordings, so that neither an input nor a
// result needs its own submit.
struct Submission {
  std::span<const BufferCopy> before = {};
  std::span<const RecordingRange> ranges = {};  // in order; a recording may be named several times
  std::span<const BufferCopy> after = {};
};

}  // namespace vkformer
