// Runs a decoding step's graph once, with a state made by hand: what the tests of step operators
// share.
#pragma once

#include <algorithm>

#include "params/decode_state.h"
#include "support/operator_check.h"
#include "vulkan/submission.h"

namespace vkformer::testing {

inline constexpr int64_t kStateWords = VKF_STATE_WORDS + 4 * VKF_SLOT_QUADS;

// State words: the live slots hold `rows`, the token is at `position`.
inline Tensor make_state(const std::vector<uint32_t>& rows, uint32_t position) {
  std::vector<uint32_t> words(static_cast<size_t>(kStateWords), 0u);
  words[1] = static_cast<uint32_t>(rows.size());  // live_slots
  words[2] = position;
  std::copy(rows.begin(), rows.end(), words.begin() + VKF_STATE_WORDS);
  return word_tensor(words, {kStateWords});
}

// Binds every external tensor, runs, and returns all of them. Those not given hold NaN before.
// Dispatches count as `longer` times what they are: too long ones are recorded at their capacity
// (plan/slicing.h, is_indirect).
inline TensorMap run_step(const TierDevice& on, const Graph& graph, const TensorMap& given,
                          uint32_t live_slots, double longer = 1) {
  VulkanDevice& device = *on.device;
  DeviceCaps caps = device.caps();
  if (on.wide) caps.device_class = DeviceClass::kDiscrete;
  Result<Plan> plan = make_plan(graph, caps, Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  for (Dispatch& d : plan->dispatches) d.flops *= longer;
  std::vector<Buffer> buffers(plan->buffers.size());
  RecordingInputs bound;
  bound.memory.resize(plan->buffers.size());
  const auto make = [&](uint64_t bytes, const std::string& name) {
    Result<Buffer> buffer = device.make_buffer(bytes, MemoryUse::kDevice, name);
    REQUIRE(buffer.ok());
    REQUIRE(device.fill(*buffer, 0, bytes, 0x7fc0dead).ok());
    return std::move(buffer).value();
  };
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorDesc& desc = graph.tensors()[i];
    if (desc.kind != TensorKind::kExternal) continue;
    buffers[i] = make(plan->buffers[i].bytes, desc.name);
    bound.memory[i] = {&buffers[i], 0, plan->buffers[i].bytes};
    const auto tensor = given.find(desc.name);
    if (tensor != given.end()) REQUIRE(device.upload(buffers[i], 0, tensor->second.bytes).ok());
  }
  std::vector<uint32_t> groups;
  for (const Dispatch& d : plan->dispatches) {
    if (d.live_axis < 0) continue;
    std::array<uint32_t, 3> counts = d.groups;
    counts[static_cast<size_t>(d.live_axis)] =
        (live_slots + d.slots_per_group - 1) / d.slots_per_group;
    groups.insert(groups.end(), counts.begin(), counts.end());
  }
  Buffer arguments = make(std::max<uint64_t>(4, groups.size() * 4), "indirect arguments");
  REQUIRE(device.upload(arguments, 0, std::as_bytes(std::span(groups))).ok());
  bound.indirect_args = {&arguments, 0, arguments.bytes()};
  const Result<Recording> recording = Recording::create(on.device, *plan, bound);
  REQUIRE_MESSAGE(recording.ok(), recording.error().message);
  const RecordingRange list[] = {{&*recording}};
  const Result<uint64_t> value = device.submit({.ranges = list});
  REQUIRE(value.ok());
  REQUIRE(device.wait(*value).ok());
  TensorMap all;
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorDesc& desc = graph.tensors()[i];
    if (desc.kind != TensorKind::kExternal) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    REQUIRE(device.download(buffers[i], 0, tensor.bytes).ok());
    all.emplace(desc.name, std::move(tensor));
  }
  return all;
}

}  // namespace vkformer::testing
