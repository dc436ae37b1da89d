// The cases of rms_norm: its checks, and what the benchmark times.
#include "reference/rms_norm.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> rms_norm_case(const Array& x) {
  const Array gain = random_array({x.dim(-1)}, 2);
  reference::RmsNormOptions options;
  options.gain = &gain;
  VKF_ASSIGN(Array y, reference::rms_norm(x, options));
  return call_case({"rms_norm", "{}", {{"X", floats(x)}, {"weight", floats(gain)}}},
                   {{"Y", {std::move(y), terms(x.dim(-1))}}});
}

}  // namespace

void rms_norm_cases(OperatorCases& cases) {
  for (const RowSize& size : row_sizes()) {
    cases.check("plain/" + size.name, size.quick, [=] { return rms_norm_case(row_array(size)); });
  }
  cases.time("llama-134m prefill 256", {"rms_norm", "{}"}, "X=256,768 weight=768");
  cases.time("llama-134m decode", {"rms_norm", "{}"}, "X=1,768 weight=768");
  cases.limited_by("two passes over a row");
}

}  // namespace vkformer::conformance
