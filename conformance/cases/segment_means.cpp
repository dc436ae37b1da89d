// The cases of segment_means: its checks, and what the benchmark times.
#include "ops/segment_means.h"
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "ops/attention.h"
#include "reference/segment_means.h"

namespace vkformer::conformance {
namespace {

// x (B, H, S, E) in M segments, as it is or as columns of rows (B, S, width) that hold more.
struct Segments {
  Shape x;
  int64_t segments;
  bool merged = false;
};

constexpr int64_t kColumnsBefore = 1,
                  kColumnsAfter = 2;  // columns of merged rows that are no head's

// (B, H, S, E) -> (B, S, before + H E + after), the columns around them from `around`.
Array merged(const Array& x, Array around) {
  const int64_t heads = x.dim(1), tokens = x.dim(2), width = x.dim(3);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t e = i % width, s = i / width % tokens, h = i / (width * tokens) % heads;
    const int64_t row = i / (width * tokens * heads) * tokens + s;
    around[row * around.dim(2) + (around.dim(2) > heads * width ? kColumnsBefore : 0) + h * width +
           e] = x[i];
  }
  return around;
}

Result<CheckCase> segments_case(const Segments& c, Content content) {
  const Array x = random_array(c.x, 1, content);
  VKF_ASSIGN(Array y, reference::segment_means(x, c.segments));
  const int64_t batch = c.x[0], heads = c.x[1], tokens = c.x[2], width = c.x[3];
  SegmentMeansAttrs a{.batch = u32(batch),
                      .heads = u32(heads),
                      .tokens = u32(tokens),
                      .segments = u32(c.segments),
                      .head_width = u32(width)};
  CheckCase made;
  TensorId from = kNoTensor;
  if (c.merged) {
    const int64_t columns = kColumnsBefore + heads * width + kColumnsAfter;
    a.x = merged_rows(a.tokens, u32(columns), u32(kColumnsBefore), a.head_width);
    a.y = merged_rows(a.segments, u32(heads * width), 0, a.head_width);
    a.y_shape = {batch, c.segments, heads * width};
    from = made.op.bind("x", floats(merged(x, random_array({batch, tokens, columns}, 2))));
    y = merged(y, reference::filled(a.y_shape, 0.0));
  } else {
    a.x = separate_heads(a.heads, a.tokens, a.head_width, 0);
    a.y = separate_heads(a.heads, a.segments, a.head_width, 0);
    a.y_shape = y.shape;
    from = made.op.bind("x", floats(x));
  }
  VKF_ASSIGN(const TensorId to, add_segment_means(made.op.graph, from, a));
  made.op.name_output(to, "y");
  // A segment of one token is a copy.
  const int64_t terms_of = tokens / c.segments;
  const Tolerance bound = terms_of == 1 ? Tolerance{} : terms(terms_of);
  made.expected.emplace("y", Expected{std::move(y), bound, magnitude_of(x)});
  return made;
}

}  // namespace

void segment_means_cases(OperatorCases& cases) {
  const Segments sizes[] = {
      {{1, 1, 1, 1}, 1},       {{2, 3, 12, 1}, 4},       {{2, 3, 12, 7}, 4},
      {{2, 3, 12, 31}, 4},     {{2, 3, 12, 32}, 4},      {{2, 3, 12, 33}, 4},
      {{2, 3, 12, 129}, 4},    {{2, 2, 74, 8}, 1},       {{2, 2, 74, 8}, 2},
      {{2, 2, 74, 8}, 37},     {{2, 2, 74, 8}, 74},      {{1, 2, 1500, 64}, 60},
      {{2, 2, 6, 5}, 6, true}, {{2, 3, 14, 33}, 7, true}};
  for (const Segments& c : sizes) {
    const std::string at =
        (c.merged ? "merged/" : "heads/") + size_text(c.x) + "-in-" + std::to_string(c.segments);
    const bool quick = c.x[3] == 33 || c.x[3] == 5;
    cases.check(at, quick, [=] { return segments_case(c, Content::kNormal); });
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    for (const bool merged : {false, true}) {
      cases.check(std::string(content_name(content)) + (merged ? "-merged" : "-heads"), true, [=] {
        return segments_case({{2, 3, 35, 17}, 5, merged}, content);
      });
    }
  }
  cases.time("nystromformer 4096", {"nystrom_attention", R"({"num_landmarks": 64})"},
             "Q=1,12,4096,64 K=1,12,4096,64 V=1,12,4096,64");
  cases.limited_by("sums down the sequence, whose elements lie a row apart");
}

}  // namespace vkformer::conformance
