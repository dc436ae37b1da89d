// Fuzz target: op.json of an acceptance case, the name of an operator and its attributes, as
// run_operator reads them. The first line names the operator, the rest is the attributes. What is
// accepted is also planned; nothing needs a device.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "operators/operator_arguments.h"
#include "operators/operator_runner.h"
#include "ops/op.h"

namespace {

using namespace vkformer;

// Inputs that many operators take, small enough that whatever is made of them stays small.
TensorMap some_inputs(uint8_t seed) {
  TensorMap inputs;
  const int64_t width = 4 + seed % 3 * 4;
  for (const char* name : {"X", "A", "B", "Q", "K", "V"}) {
    inputs[name] = Tensor::zeros(DType::kF32, {1, 2, 3, width});
  }
  for (const char* name : {"gain", "bias", "weight"}) {
    inputs[name] = Tensor::zeros(DType::kF32, {width});
  }
  inputs["ids"] = Tensor::zeros(DType::kI64, {1, 3});
  return inputs;
}

void plan(const OperatorCall& call) {
  const auto prepared = prepare_operator_call(call, {});
  if (prepared.ok()) (void)make_plan(prepared->graph, DeviceCaps{}, Precision::kF32);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\n');
  if (cut == input.npos) return 0;
  OperatorCall call;
  call.name = std::string(input.substr(0, cut));
  call.attributes_json = std::string(input.substr(cut + 1));
  // All of the inputs are more than any operator knows, so one is omitted at a time, then pairs.
  const TensorMap all = some_inputs(data[size - 1]);
  for (const auto& [first, tensor] : all) {
    call.inputs = {{first, tensor}};
    plan(call);
    for (const auto& [second, other] : all) {
      call.inputs = {{first, tensor}, {second, other}};
      plan(call);
    }
  }
  call.inputs = {{"Q", all.at("Q")}, {"K", all.at("K")}, {"V", all.at("V")}};
  plan(call);
  call.inputs = {{"X", all.at("X")}, {"gain", all.at("gain")}, {"bias", all.at("bias")}};
  plan(call);
  return 0;
}
