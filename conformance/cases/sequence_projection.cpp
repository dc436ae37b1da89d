// The cases of sequence_projection: its checks, and what the benchmark times.
#include "reference/sequence_projection.h"
#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"
#include "reference/attention.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> linformer_case(const HeadSizes& s) {
  const HeadArrays h = make_head_arrays(s, 1);
  const Array e = scaled(random_array({5, s.q[2] + 3}, 4), 0.2);
  const Array f = scaled(random_array({5, s.q[2] + 3}, 5), 0.2);
  VKF_ASSIGN(const Array keys, reference::sequence_projection(h.k, e, nullptr));
  VKF_ASSIGN(const Array values, reference::sequence_projection(h.v, f, nullptr));
  VKF_ASSIGN(Array y, reference::attention(h.q, keys, values));
  TensorMap inputs = h.inputs();
  inputs.emplace("E", floats(e));
  inputs.emplace("F", floats(f));
  return call_case({"linformer_attention", "{}", std::move(inputs)},
                   {{"output", {std::move(y), terms(16 * s.q[2]), 4}}});
}

}  // namespace

void sequence_projection_cases(OperatorCases& cases) {
  for (const HeadSizes& s : kHeadSizes) {
    cases.check("linformer/" + size_text(s.q) + "-" + std::to_string(s.value_width), is_quick(s),
                [=] { return linformer_case(s); });
  }
  cases.time("linformer 4096", {"linformer_attention", "{}"},
             "Q=1,12,4096,64 K=1,12,4096,64 V=1,12,4096,64 E=256,4096 F=256,4096");
  cases.limited_by("values are loaded again for every few rows of the projection");
}

}  // namespace vkformer::conformance
