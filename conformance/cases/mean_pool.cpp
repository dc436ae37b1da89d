// The cases of mean_pool: its checks, and what the benchmark times.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "reference/mean_pool.h"

namespace vkformer::conformance {
namespace {

struct Pool {
  Shape x;
  bool masked, normalize;
  Content content = Content::kNormal;
  reference::Pool pool = reference::Pool::kMean;
};

// By reference::Pool, as the operator's attribute says them.
constexpr const char* kKinds[] = {"mean", "max", "last", "weighted_mean", "mean_sqrt_length"};

const char* kind_name(reference::Pool pool) {
  return kKinds[static_cast<size_t>(pool)];
}

std::string attributes_of(const Pool& c) {
  std::string text = c.normalize ? R"("normalize": true)" : "";
  if (c.pool != reference::Pool::kMean) {
    text += std::string(text.empty() ? "" : ", ") + R"("kind": ")" + kind_name(c.pool) + '"';
  }
  return "{" + text + "}";
}

Result<CheckCase> mean_pool_case(const Pool& c) {
  const Array x = random_array(c.x, 6, c.content);
  const Array mask = random_mask({c.x[0], c.x[1]}, 7);
  TensorMap inputs{{"X", floats(x)}};
  if (c.masked) inputs.emplace("mask", mask_bytes(mask));
  VKF_ASSIGN(Array y, reference::mean_pool(x, {.normalize = c.normalize,
                                               .mask = c.masked ? &mask : nullptr,
                                               .pool = c.pool}));
  // A sum divided by a root is as large as the root of what was added.
  double magnitude = magnitude_of(x);
  if (c.pool == reference::Pool::kMeanSqrtLength) {
    magnitude *= std::sqrt(static_cast<double>(std::max<int64_t>(1, c.x[1])));
  }
  return call_case({"mean_pool", attributes_of(c), std::move(inputs)},
                   {{"Y", {std::move(y), terms(std::max(c.x[1], c.x[2])), magnitude}}});
}

void add_check(OperatorCases& cases, const Pool& c) {
  const bool mean = c.pool == reference::Pool::kMean;
  cases.check((mean ? "" : kind_name(c.pool) + std::string("-")) + (c.masked ? "" : "all-") +
                  (c.normalize ? "normalized-" : "") + content_name(c.content) + "/" +
                  size_text(c.x),
              c.x[1] == 5, [=] { return mean_pool_case(c); });
}

}  // namespace

void mean_pool_cases(OperatorCases& cases) {
  for (const Content content : kAllContents) {
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{3, 5, 33}, Shape{2, 9, 129}, Shape{2, 1500, 7}}) {
      add_check(cases, {shape, true, false, content});
      add_check(cases, {shape, true, true, content});
    }
  }
  for (const reference::Pool pool :
       {reference::Pool::kMax, reference::Pool::kLast, reference::Pool::kWeightedMean,
        reference::Pool::kMeanSqrtLength}) {
    for (const Content content : kAllContents) {
      add_check(cases, {{3, 5, 33}, true, false, content, pool});
    }
    add_check(cases, {{2, 40, 129}, true, true, Content::kNormal, pool});
    add_check(cases, {{2, 1500, 7}, false, false, Content::kNormal, pool});
  }
  for (const int64_t width : kRowWidths) {
    add_check(cases, {{3, 11, width}, false, false});
    add_check(cases, {{3, 11, width}, true, true});
  }
  for (const int64_t tokens : {1, 31, 32, 33, 65}) {
    add_check(cases, {{2, tokens, 24}, true, false});
  }
  cases.time("minilm-l6 32x128", {"mean_pool", R"({"normalize": true})"},
             "X=32,128,384 mask:mask=32,128");
  cases.limited_by("sums down the sequence, whose elements lie a row apart");
}

}  // namespace vkformer::conformance
