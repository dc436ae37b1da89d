#include "operators/appended_operator.h"

#include "base/check.h"
#include "base/message.h"
#include "operators/operator_runner.h"
#include "ops/op.h"

namespace vkformer {

Result<AppendedOperator> AppendedOperator::create(std::shared_ptr<VulkanDevice> device,
                                                  const OperatorCall& call) {
  AppendedOperator made;
  made.device_ = std::move(device);
  VKF_ASSIGN(made.op_, prepare_operator_call(call, {}));
  if (made.op_.ready.empty() && made.op_.finish == nullptr) return made;
  return unsupported(message({"[", call.name,
                              "] is computed on the host, at least in part, and cannot be recorded "
                              "into a command buffer; use run_operator"}));
}

std::map<std::string, TensorDesc> AppendedOperator::tensors(bool outputs) const {
  std::map<std::string, TensorDesc> found;
  for (const TensorDesc& desc : op_.graph.tensors()) {
    if (desc.kind != TensorKind::kExternal) continue;
    if ((op_.inputs.count(desc.name) == 0) == outputs) found.emplace(desc.name, desc);
  }
  return found;
}

Result<BufferSpan> AppendedOperator::own_input(const TensorDesc& desc, uint64_t bytes) {
  const auto value = op_.inputs.find(desc.name);
  if (value == op_.inputs.end()) {
    return invalid_argument(message(
        {"[", desc.name, "] is an output and has no buffer; bind one of ", bytes, " bytes"}));
  }
  VKF_ASSIGN(Buffer buffer, device_->make_buffer(bytes, MemoryUse::kDevice, desc.name));
  std::vector<std::byte> padded = value->second.bytes;
  padded.resize(bytes);
  VKF_CHECK(device_->upload(buffer, 0, padded));
  own_.push_back(std::make_unique<Buffer>(std::move(buffer)));
  return BufferSpan{own_.back().get(), 0, bytes};
}

Status AppendedOperator::bind(const std::map<std::string, BufferSpan>& places) {
  if (recording_) return invalid_argument("[bind] was called before; make another operator");
  for (const auto& [name, span] : places) {
    const TensorId id = op_.graph.find_external(name);
    if (id == kNoTensor) {
      return not_found(
          message({"[", name, "] is not a tensor of this operator; see inputs() and outputs()"}));
    }
  }
  VKF_ASSIGN(Plan plan, make_plan(op_.graph, device_->caps(), Precision::kF32));
  RecordingInputs inputs;
  inputs.memory.resize(plan.buffers.size());
  for (size_t i = 0; i < op_.graph.tensors().size(); ++i) {
    const TensorDesc& desc = op_.graph.tensors()[i];
    if (desc.kind != TensorKind::kExternal) continue;
    const auto place = places.find(desc.name);
    if (place != places.end()) {
      inputs.memory[i] = place->second;
      continue;
    }
    VKF_ASSIGN(inputs.memory[i], own_input(desc, plan.buffers[i].bytes));
  }
  VKF_ASSIGN(recording_, Recording::prepare(device_, std::move(plan), inputs));
  return {};
}

Status AppendedOperator::append(VkCommandBuffer_T* commands) {
  if (!recording_)
    return invalid_argument("[record] needs bind() first, which says where tensors lie");
  return recording_->append(commands);
}

}  // namespace vkformer
