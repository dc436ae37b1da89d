#include "operators/operator_runner.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "operators/graph_runner.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

Status check_options(const OperatorOptions& options) {
  constexpr int kMostRepeats = 1000000;
  if (options.repeats >= 1 && options.repeats <= kMostRepeats) return {};
  return invalid_argument(message({"[repeats] The option is ", options.repeats,
                                   ", but must be from 1 to ", kMostRepeats, "."}));
}

Result<const OperatorAdaptor*> find_adaptor(const std::string& name) {
  std::string known;
  for (const OperatorAdaptor& adaptor : operator_adaptors()) {
    if (name == adaptor.name) return &adaptor;
    known += (known.empty() ? "" : ", ") + std::string(adaptor.name);
  }
  return unsupported(message({"[", name, "] This operator is not known; use one of ", known, "."}));
}

// The graph's outputs if every one of them is empty, else none.
TensorMap empty_outputs(const PreparedOperator& op) {
  TensorMap outputs;
  for (const TensorDesc& desc : op.graph.tensors()) {
    if (desc.kind != TensorKind::kExternal || op.inputs.count(desc.name) != 0) continue;
    if (element_count(desc.shape) != 0) return {};
    outputs.emplace(desc.name, Tensor::zeros(desc.dtype, desc.shape));
  }
  return outputs;
}

// Precision int8 that no product of the operator takes would be f32 and not say so.
Status check_precision_used(const OperatorOptions& options, const std::vector<KernelId>& kernels) {
  const bool used = std::find(kernels.begin(), kernels.end(),
                              KernelId::quantize_rows__f32_none_i8) != kernels.end();
  if (options.precision != Precision::kInt8 || used) return {};
  return unsupported(
      message({"[precision] 'int8' multiplies quantized weights, and this operator "
               "has none: the option weights is '",
               choice_name(options.weights),
               "'. Choose q8 or another one of them, or the precision 'f32'."}));
}

Result<OperatorResult> run_prepared(const std::shared_ptr<VulkanDevice>& device,
                                    PreparedOperator op, const OperatorOptions& options) {
  OperatorResult result;
  if (!op.ready.empty()) {
    result.outputs = std::move(op.ready);
    return result;
  }
  result.outputs = empty_outputs(op);
  if (result.outputs.empty()) {
    GraphRunOptions run;
    run.precision = options.precision;
    run.repeats = options.repeats;
    if (options.poison) run.poison = GraphRunOptions::Poison::kOn;
    VKF_ASSIGN(GraphRunReport report, run_graph(device, op.graph, op.inputs, run));
    VKF_CHECK(check_precision_used(options, report.kernels));
    result.outputs = std::move(report.outputs);
    result.milliseconds = report.milliseconds;
    result.scratch_bytes = report.scratch_bytes;
    result.dispatches = report.dispatches;
    result.flops = report.flops;
    result.bytes = report.bytes;
  }
  if (op.finish != nullptr) {
    VKF_ASSIGN(result.outputs, op.finish(std::move(result.outputs)));
  }
  return result;
}

}  // namespace

Result<PreparedOperator> prepare_operator_call(const OperatorCall& call,
                                               const OperatorOptions& options) {
  VKF_CHECK(check_options(options));
  VKF_ASSIGN(const OperatorAdaptor* adaptor, find_adaptor(call.name));
  VKF_ASSIGN(const OperatorArguments arguments, OperatorArguments::parse(call, options));
  return adaptor->prepare(arguments);
}

Result<OperatorResult> run_operator_call(const std::shared_ptr<VulkanDevice>& device,
                                         const OperatorCall& call, const OperatorOptions& options) {
  VKF_ASSIGN(PreparedOperator op, prepare_operator_call(call, options));
  return run_prepared(device, std::move(op), options);
}

std::vector<std::string> known_operators() {
  std::vector<std::string> names;
  for (const OperatorAdaptor& adaptor : operator_adaptors()) names.emplace_back(adaptor.name);
  return names;
}

}  // namespace vkformer
