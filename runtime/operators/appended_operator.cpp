#include "operators/appended_operator.h"

#include <cstring>

#include "base/check.h"
#include "base/message.h"
#include "operators/operator_runner.h"

namespace vkformer {

Result<AppendedOperator> AppendedOperator::create(std::shared_ptr<VulkanDevice> device,
                                                  const OperatorCall& call) {
  AppendedOperator made(std::move(device));
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

Status AppendedOperator::write_inputs() {
  for (const auto& [name, value] : op_.inputs) {
    if (!memory_->has(name)) continue;
    std::vector<uint32_t> words((value.bytes.size() + 3) / 4, 0u);
    std::memcpy(words.data(), value.bytes.data(), value.bytes.size());
    VKF_CHECK(memory_->write(name, 0, words));
  }
  return {};
}

Status AppendedOperator::bind(const std::map<std::string, TensorPlace>& places) {
  if (graph_) return invalid_argument("[bind] was called before; make another operator");
  for (const auto& [name, place] : places) {
    const TensorId id = op_.graph.find_external(name);
    if (id == kNoTensor) {
      return not_found(
          message({"[", name, "] is not a tensor of this operator; see inputs() and outputs()"}));
    }
  }
  for (const auto& [name, desc] : tensors(true)) {
    if (places.count(name) != 0) continue;
    return invalid_argument(message(
        {"[", name, "] is an output and has no buffer; bind one of ",
         static_cast<uint64_t>(element_count(desc.shape)) * dtype_size(desc.dtype), " bytes"}));
  }
  memory_->place(places);
  RecordedGraphOptions options{.commands = RecordedGraphOptions::Commands::kPieces};
  for (const auto& [name, value] : op_.inputs) options.host.writes.push_back(name);
  VKF_ASSIGN(graph_, RecordedGraph::create(*memory_, op_.graph, options));
  VKF_CHECK(write_inputs());
  // The application's command buffer has none of our copies: they run now.
  VKF_CHECK(memory_->send());
  return memory_->wait();
}

Status AppendedOperator::append(VkCommandBuffer_T* commands) {
  if (!graph_) return invalid_argument("[record] needs bind() first, which says where tensors are");
  return graph_->recording().append(commands);
}

}  // namespace vkformer
