// The cases of inverse_start, in whole Nystroem attention, and what the benchmark times.
#include "reference/inverse_start.h"
#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"
#include "ops/chunk_attention.h"

namespace vkformer::conformance {
namespace {

// Six steps of an iteration follow its start, so errors of the softmax before it grow.
Result<CheckCase> nystrom_case(const HeadSizes& s, int64_t landmarks, bool exact) {
  const HeadArrays h = make_head_arrays(s, 1);
  VKF_ASSIGN(reference::NystromReference y,
             reference::nystrom_attention(
                 {h.q, h.k, h.v}, landmarks,
                 exact ? reference::InverseMaximum::kOwn : reference::InverseMaximum::kShared));
  const std::string attributes = R"({"num_landmarks": )" + std::to_string(landmarks) +
                                 R"(, "init": ")" + (exact ? "exact" : "original") + "\"}";
  const Tolerance bound = terms(INT64_MAX);
  const double magnitude = magnitude_of(y.pseudo_inverse);
  return call_case({"nystrom_attention", attributes, h.inputs()},
                   {{"output", {std::move(y.output), bound, magnitude}},
                    {"pseudo_inverse", {std::move(y.pseudo_inverse), bound, magnitude}}});
}

}  // namespace

void inverse_start_cases(OperatorCases& cases) {
  for (const auto& [s, landmarks] :
       {std::pair{HeadSizes{{1, 1, 4, 4}, 4}, 2}, std::pair{HeadSizes{{2, 2, 33, 16}, 16}, 11},
        std::pair{HeadSizes{{1, 2, 128, 32}, 24}, 64}}) {
    for (const bool exact : {false, true}) {
      const std::string at = size_text(s.q) + "-" + std::to_string(landmarks);
      cases.check((exact ? "exact/" : "original/") + at, landmarks == 11,
                  [s = s, m = landmarks, exact] { return nystrom_case(s, m, exact); });
    }
  }
  cases.time("nystromformer 4096", {"nystrom_attention", R"({"num_landmarks": 64})"},
             "Q=1,12,4096,64 K=1,12,4096,64 V=1,12,4096,64");
  cases.limited_by("a maximum over all matrices before anything can be written");
}

}  // namespace vkformer::conformance
