// Examples of operators and of multi-head attention without a model.
#include <vkformer/attention.h>
#include <vkformer/operators.h>

#include <cstdio>

#include "examples.h"

using vkformer::Tensor;

vkformer::Status show_operators(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  //! [operator_names run_operator]
  // Lists the operators, and runs a softmax over two rows.
  for (const std::string& name : vkformer::operator_names()) std::puts(name.c_str());
  vkformer::OperatorCall call;
  call.name = "softmax";
  call.inputs = {{"X", Tensor::from_floats({2, 2}, {1, 2, 3, 4})}};
  const auto result = vkformer::run_operator(device, call);
  if (!result) return result.error();
  for (const auto& [name, tensor] : result->outputs) {
    std::printf("%s %s\n", name.c_str(), vkformer::shape_text(tensor.shape).c_str());
  }
  std::printf("%d dispatches, %.3f ms\n", result->dispatches, result->milliseconds);
  //! [end]

  //! [MultiHeadAttention::create MultiHeadAttention::run]
  // Two tokens of width 2 attend to themselves and earlier ones.
  const Tensor identity = Tensor::from_floats({2, 2}, {1, 0, 0, 1});
  vkformer::MultiHeadAttentionOptions options;
  options.d_model = 2;
  options.causal = true;
  const auto attention = vkformer::MultiHeadAttention::create(
      device, options,
      {{"query.weight", identity}, {"key.weight", identity}, {"value.weight", identity}});
  if (!attention) return attention.error();
  const auto attended = attention->run(Tensor::from_floats({1, 2, 2}, {1, 2, 3, 4}), nullptr);
  if (!attended) return attended.error();
  const auto weights = attended->weights.to_floats();
  if (!weights) return weights.error();
  std::printf("%.3f %.3f\n", (*weights)[2], (*weights)[3]);
  //! [end]
  return expect((*weights)[0] == 1, "a first token that sees itself alone");
}
