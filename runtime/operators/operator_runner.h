// Runs an OperatorCall: finds its adaptor, makes the graph, runs it. See vkformer/operators.h.
#pragma once

#include <memory>

#include "operators/operator_arguments.h"
#include "vkformer/operators.h"

namespace vkformer {

class VulkanDevice;

// An operator whose outputs are all empty, or that is computed on the host, does not touch the GPU.
Result<OperatorResult> run_operator_call(const std::shared_ptr<VulkanDevice>& device,
                                         const OperatorCall& call, const OperatorOptions& options);

// The graph of a call, which was checked; `call` and `options` are not needed any more.
VKFORMER_API Result<PreparedOperator> prepare_operator_call(const OperatorCall& call,
                                                            const OperatorOptions& options);

// The names of the adaptors, in name order.
std::vector<std::string> known_operators();

}  // namespace vkformer
