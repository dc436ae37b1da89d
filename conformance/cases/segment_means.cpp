// The cases of segment_means: what the benchmark times; whole searches are in models.cpp.
#include "conformance/cases.h"

namespace vkformer::conformance {

void segment_means_cases(OperatorCases& cases) {
  cases.time("nystromformer 4096", {"nystrom_attention", R"({"num_landmarks": 64})"},
             "Q=1,12,4096,64 K=1,12,4096,64 V=1,12,4096,64");
  cases.limited_by("sums down the sequence, whose elements lie a row apart");
}

}  // namespace vkformer::conformance
