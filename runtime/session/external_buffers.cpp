#include "session/external_buffers.h"

namespace vkformer {

Status ExternalBuffers::allocate(VulkanDevice& device, const Plan& plan) {
  for (const PlanBuffer& b : plan.buffers) {
    if (b.source != BufferSource::kExternal) continue;
    const auto known = buffers_.find(b.name);
    if (known != buffers_.end()) {
      if (known->second->bytes() >= b.bytes) continue;
      return internal_error("[" + b.name + "] is " + std::to_string(b.bytes) +
                            " bytes in one pass and " + std::to_string(known->second->bytes()) +
                            " in another that shares it");
    }
    VKF_ASSIGN(Buffer buffer, device.make_buffer(b.bytes, MemoryUse::kDevice, b.name));
    buffers_.emplace(b.name, std::make_unique<Buffer>(std::move(buffer)));
  }
  return {};
}

RecordingInputs ExternalBuffers::bind(const Plan& plan, const LoadedModel& model) const {
  RecordingInputs inputs;
  inputs.memory.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& b = plan.buffers[i];
    if (b.source == BufferSource::kExternal)
      inputs.memory[i] = {buffers_.at(b.name).get(), 0, b.bytes};
    if (b.source == BufferSource::kConstant) inputs.memory[i] = model.weight_memory(b.constant);
  }
  return inputs;
}

}  // namespace vkformer
