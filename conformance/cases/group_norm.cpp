// The cases of group_norm: its checks, and what the benchmark times.
#include "ops/group_norm.h"
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "reference/group_norm.h"
#include "reference/unfold.h"

namespace vkformer::conformance {
namespace {

// x (B, C, T) in groups of channels.
struct Groups {
  Shape x;
  int64_t groups;
  Content content = Content::kNormal;
};

struct NormArrays {
  Array x, gain, bias, y;
  Tolerance tolerance;
};
Result<NormArrays> make_norm(const Groups& c) {
  NormArrays a{random_array(c.x, 5, c.content),
               random_array({c.x[1]}, 2),
               random_array({c.x[1]}, 3),
               {},
               terms(c.x[1] / c.groups * c.x[2])};
  VKF_ASSIGN(a.y, reference::group_norm(a.x, a.gain, a.bias, {.groups = c.groups}));
  return a;
}

// By name, which takes the channels first.
Result<CheckCase> group_norm_case(const Groups& c) {
  VKF_ASSIGN(NormArrays a, make_norm(c));
  return call_case({"group_norm",
                    R"({"groups": )" + std::to_string(c.groups) + "}",
                    {{"X", floats(a.x)}, {"weight", floats(a.gain)}, {"bias", floats(a.bias)}}},
                   {{"Y", {std::move(a.y), a.tolerance, 4}}});
}

// (B, C, T) -> (B, T, C)
Array tokens_first(Array x) {
  const Shape shape{x.dim(0), x.dim(2), x.dim(1)};
  x.shape.push_back(1);
  Array y = reference::channels_last(x);
  y.shape = shape;
  return y;
}

Result<CheckCase> channels_last_case(const Groups& c) {
  VKF_ASSIGN(const NormArrays a, make_norm(c));
  CheckCase made;
  const TensorId x = made.op.bind("x", floats(tokens_first(a.x)));
  const TensorId gain = made.op.bind("gain_bias", floats(stacked_rows(a.gain, a.bias)));
  VKF_ASSIGN(const TensorId y,
             add_group_norm(made.op.graph, x, gain, {u32(c.groups), 1e-5f, ChannelOrder::kLast}));
  made.op.name_output(y, "y");
  made.expected.emplace("y", Expected{tokens_first(a.y), a.tolerance, 4});
  return made;
}

}  // namespace

void group_norm_cases(OperatorCases& cases) {
  const auto add = [&](const Groups& c) {
    const std::string at = std::string(content_name(c.content)) + "/" + size_text(c.x) +
                           (c.groups == 2 ? "" : "-in-" + std::to_string(c.groups));
    const bool quick = c.x[2] == 33;
    cases.check(at, quick && c.groups == 2, [=] { return group_norm_case(c); });
    cases.check("last-" + at, quick && c.groups == 3, [=] { return channels_last_case(c); });
  };
  for (const Content content : kAllContents) {
    for (const Shape& shape :
         {Shape{1, 2, 1}, Shape{2, 6, 33}, Shape{1, 12, 129}, Shape{3, 4, 1500}}) {
      add({shape, 2, content});
    }
  }
  for (const int64_t length : kRowWidths) add({{2, 6, length}, 3});
  for (const int64_t groups : {1, 2, 7, 14}) {
    add({{3, 14, 5}, groups});
    add({{1, 14, 129}, groups});
  }
  add({{1, 512, 49}, 512});
  cases.time("wav2vec2 1 s", {"group_norm", R"({"groups": 512})"},
             "X=1,512,3199 weight=512 bias=512");
  cases.limited_by("three passes over a row: mean, variance, result");
}

}  // namespace vkformer::conformance
