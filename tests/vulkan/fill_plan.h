// Small plans of the fill kernels, for the tests of the vulkan room.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "params/constants.h"
#include "params/fill.h"
#include "plan/plan.h"
#include "vulkan/submission.h"

namespace vkformer::fill_plan {

inline constexpr uint32_t kGroup = 64;

inline uint32_t add_buffer(Plan& plan, const std::string& name, uint64_t words,
                           BufferSource source = BufferSource::kExternal) {
  PlanBuffer buffer;
  buffer.name = name;
  buffer.source = source;
  buffer.bytes = words * 4;
  plan.buffers.push_back(buffer);
  return static_cast<uint32_t>(plan.buffers.size() - 1);
}

inline Dispatch fill(uint32_t buffer, uint32_t count, uint32_t value) {
  Dispatch d;
  d.kernel = KernelId::fill_words__u32;
  d.label = "fill";
  d.bindings = {{buffer, Access::kWrite}};
  d.set_push(FillParams{count, value});
  d.set_constants(WorkgroupConstants{kGroup});
  d.groups = {(count + kGroup - 1) / kGroup, 1, 1};
  return d;
}

// words[i] += addend + value
inline Dispatch add(uint32_t words, uint32_t addend, uint32_t count, uint32_t value) {
  Dispatch d = fill(words, count, value);
  d.kernel = KernelId::fill_add__u32;
  d.label = "add";
  d.bindings = {{words, Access::kReadWrite}, {addend, Access::kRead}};
  return d;
}

inline std::vector<uint32_t> read_words(VulkanDevice& device, const Buffer& buffer, size_t count,
                                        uint64_t offset = 0) {
  std::vector<uint32_t> words(count);
  const Status status = device.download(buffer, offset, std::as_writable_bytes(std::span(words)));
  if (!status) FAIL(status.error().message);
  return words;
}

inline void write_words(VulkanDevice& device, Buffer& buffer, std::span<const uint32_t> words) {
  const Status status = device.upload(buffer, 0, std::as_bytes(words));
  if (!status) FAIL(status.error().message);
}

inline Buffer make_words(VulkanDevice& device, uint64_t words, const std::string& name,
                         MemoryUse use = MemoryUse::kDevice) {
  auto made = device.make_buffer(words * 4, use, name);
  if (!made) FAIL(made.error().message);
  return std::move(made).value();
}

inline Recording record(const std::shared_ptr<VulkanDevice>& device, const Plan& plan,
                        const RecordingInputs& inputs) {
  auto made = Recording::create(device, plan, inputs);
  if (!made) FAIL(made.error().message);
  return std::move(made).value();
}

// Submits `recording` that many times in one batch and waits.
inline void run(VulkanDevice& device, const Recording& recording, size_t times = 1) {
  const std::vector<RecordingRange> batch(times, {&recording});
  auto value = device.submit({.ranges = batch});
  if (!value) FAIL(value.error().message);
  const Status status = device.wait(*value);
  if (!status) FAIL(status.error().message);
}

inline BufferSpan whole(const Buffer& buffer) {
  return {&buffer, 0, buffer.bytes()};
}

// How many of `words` differ from first + step * i.
inline size_t mismatches(std::span<const uint32_t> words, uint32_t first, uint32_t step = 1) {
  size_t wrong = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != first + step * static_cast<uint32_t>(i)) ++wrong;
  }
  return wrong;
}

}  // namespace vkformer::fill_plan
