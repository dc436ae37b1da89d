// The cases of attention_weights: its checks, and what the benchmark times.
#include "conformance/attention_checks.h"
#include "conformance/cases.h"

namespace vkformer::conformance {

void attention_weights_cases(OperatorCases& cases) {
  add_whole_attention_checks(cases);
  cases.time("bert-base 1x128", {"attention_weights", "{}"},
             "Q=1,12,128,64 K=1,12,128,64 V=1,12,128,64");
  cases.limited_by("three passes over every row of weights, one with an exponential");
}

}  // namespace vkformer::conformance
