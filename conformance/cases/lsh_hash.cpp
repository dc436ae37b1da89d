// The cases of lsh_hash: its checks, and what the benchmark times.
#include "reference/lsh_hash.h"
#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"

namespace vkformer::conformance {
namespace {

// Whole numbers, so that every sum is exact and no bucket depends on rounding.
Result<CheckCase> hash_case(const Shape& shape, int64_t rounds, int64_t half) {
  Array x = random_ids(shape, 1, 9),
        rotations = random_ids({shape[1], shape[3], rounds, half}, 2, 9);
  for (double& value : x.data) value -= 4;
  for (double& value : rotations.data) value -= 4;
  VKF_ASSIGN(Array y, reference::lsh_hash(x, rotations, {.factors = {2 * half}, .offsets = false}));
  return call_case({"lsh_hash", "{}", {{"X", floats(x)}, {"rotations", floats(rotations)}}},
                   {{"buckets", {std::move(y)}}});
}

}  // namespace

void lsh_hash_cases(OperatorCases& cases) {
  for (const Shape& shape : kTokenShapes) {
    const bool quick = shape[2] == 33;
    cases.check("whole/" + size_text(shape), quick, [=] { return hash_case(shape, 2, 3); });
    cases.check("many/" + size_text(shape), quick, [=] { return hash_case(shape, 1, 33); });
  }
  cases.time("reformer 4096", {"lsh_hash", "{}"}, "X=1,2,4096,64 rotations=2,64,2,32");
  cases.limited_by("a few dozen columns for each token, then the largest of them");
}

}  // namespace vkformer::conformance
