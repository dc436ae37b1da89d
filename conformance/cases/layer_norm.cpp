// The cases of layer_norm: its checks, and what the benchmark times.
#include "reference/layer_norm.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> layer_norm_case(const Array& x, bool fused) {
  const Array gain = random_array({x.dim(-1)}, 2), bias = random_array({x.dim(-1)}, 3);
  const Array residual = random_array(x.shape, 4);
  reference::LayerNormOptions options;
  options.gain = &gain;
  options.bias = &bias;
  TensorMap inputs{{"X", floats(x)}, {"weight", floats(gain)}, {"bias", floats(bias)}};
  if (fused) {
    options.residual = &residual;
    inputs.emplace("residual", floats(residual));
  }
  VKF_ASSIGN(Array y, reference::layer_norm(x, options));
  return call_case({"layer_norm", "{}", std::move(inputs)},
                   {{"Y", {std::move(y), terms(x.dim(-1)), 4}}});
}

}  // namespace

void layer_norm_cases(OperatorCases& cases) {
  for (const RowSize& size : row_sizes()) {
    cases.check("plain/" + size.name, size.quick,
                [=] { return layer_norm_case(row_array(size), false); });
    cases.check("residual/" + size.name, size.quick,
                [=] { return layer_norm_case(row_array(size), true); });
  }
  cases.time("bert-base 1x128", {"layer_norm", "{}"},
             "X=128,768 residual=128,768 weight=768 bias=768");
  cases.time("vit-b32-384", {"layer_norm", "{}"}, "X=145,768 weight=768 bias=768");
  cases.time("gpt2 decode", {"layer_norm", "{}"}, "X=1,768 weight=768 bias=768");
  cases.limited_by("three passes over a row: mean, variance, result");
}

}  // namespace vkformer::conformance
