// The cases of mean_pool: its checks, and what the benchmark times.
#include <algorithm>

#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "reference/mean_pool.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> mean_pool_case(const Shape& shape, bool normalize, Content content) {
  const Array x = random_array(shape, 6, content);
  const Array mask = random_mask({shape[0], shape[1]}, 7);
  VKF_ASSIGN(Array y, reference::mean_pool(x, {.normalize = normalize, .mask = &mask}));
  return call_case({"mean_pool",
                    normalize ? R"({"normalize": true})" : "{}",
                    {{"X", floats(x)}, {"mask", mask_bytes(mask)}}},
                   {{"Y", {std::move(y), terms(std::max(shape[1], shape[2])), magnitude_of(x)}}});
}

}  // namespace

void mean_pool_cases(OperatorCases& cases) {
  for (const Content content : kAllContents) {
    const std::string name = content_name(content);
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{3, 5, 33}, Shape{2, 9, 129}, Shape{2, 1500, 7}}) {
      const bool quick = shape[2] == 33;
      cases.check(name + "/" + size_text(shape), quick,
                  [=] { return mean_pool_case(shape, false, content); });
      cases.check("normalized-" + name + "/" + size_text(shape), quick,
                  [=] { return mean_pool_case(shape, true, content); });
    }
  }
  cases.time("minilm-l6 32x128", {"mean_pool", R"({"normalize": true})"},
             "X=32,128,384 mask:mask=32,128");
  cases.limited_by("sums down the sequence, whose elements lie a row apart");
}

}  // namespace vkformer::conformance
