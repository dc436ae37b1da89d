#include "conformance/step_cases.h"

#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "params/decode_state.h"

namespace vkformer::conformance {

Tensor state_of(uint32_t position, const std::vector<uint32_t>& entries) {
  std::vector<uint32_t> list(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
  list[0] = list[1] = u32(static_cast<int64_t>(entries.size()));
  list[2] = position;
  std::copy(entries.begin(), entries.end(), list.begin() + VKF_STATE_WORDS);
  return words(list);
}

CheckCase step_case() {
  CheckCase made;
  made.op.graph.set_step(u32(kSlots));
  made.live_slots = u32(static_cast<int64_t>(kLiveRows.size()));
  return made;
}

Tensor stored(const Array& cache, CacheFormat format) {
  return format == CacheFormat::kF32 ? floats(cache) : packed_cache(floats(cache), format);
}

Result<Expected> expected_cache(const Array& cache, CacheFormat format) {
  VKF_ASSIGN(Array words, reference::from_tensor(stored(cache, format)));
  return Expected{std::move(words)};
}

}  // namespace vkformer::conformance
