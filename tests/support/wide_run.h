// Runs a graph with the workgroups that a discrete device would get. A software device plans one
// vector of lanes per workgroup (row_kernel.h), so that its own plans never reduce over several
// subgroups; this way it tests those paths too.
#pragma once

#include <vector>

#include "ops/op.h"
#include "vulkan/recording.h"

namespace vkformer::testing {

// The outputs of one run over poisoned memory; `inputs` as for run_graph.
inline Result<TensorMap> run_wide(const std::shared_ptr<VulkanDevice>& device, const Graph& graph,
                                  const TensorMap& inputs) {
  constexpr uint32_t kPoison = 0x7fc0dead;  // a quiet NaN
  DeviceCaps caps = device->caps();
  caps.device_class = DeviceClass::kDiscrete;
  VKF_ASSIGN(const Plan plan, make_plan(graph, caps, Precision::kF32));
  std::vector<Buffer> buffers(plan.buffers.size());
  RecordingInputs bound;
  bound.memory.resize(plan.buffers.size());
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorDesc& desc = graph.tensors()[i];
    if (desc.kind != TensorKind::kExternal) continue;
    const uint64_t bytes = plan.buffers[i].bytes;
    VKF_ASSIGN(buffers[i], device->make_buffer(bytes, MemoryUse::kDevice, desc.name));
    bound.memory[i] = {&buffers[i], 0, bytes};
    VKF_CHECK(device->fill(buffers[i], 0, bytes, kPoison));
    const auto input = inputs.find(desc.name);
    if (input == inputs.end()) continue;
    std::vector<std::byte> padded = input->second.bytes;
    padded.resize(bytes);
    VKF_CHECK(device->upload(buffers[i], 0, padded));
  }
  VKF_ASSIGN(const Recording recording, Recording::create(device, plan, bound));
  const Recording* list[] = {&recording};
  VKF_ASSIGN(const uint64_t value, device->submit(list));
  VKF_CHECK(device->wait(value));
  TensorMap outputs;
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorDesc& desc = graph.tensors()[i];
    if (desc.kind != TensorKind::kExternal || inputs.count(desc.name) != 0) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    VKF_CHECK(device->download(buffers[i], 0, tensor.bytes));
    outputs.emplace(desc.name, std::move(tensor));
  }
  return outputs;
}

}  // namespace vkformer::testing
