// The cases of head_norm: its checks, and what the benchmark times.
#include "reference/head_norm.h"

#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

// Heads that begin at column `first` of rows of `width` columns.
struct HeadSize {
  int64_t rows, first, heads, head, width;
  bool quick;
};

constexpr HeadSize kHeads[] = {{1, 0, 1, 1, 1, true},        {3, 0, 2, 7, 14, false},
                               {5, 3, 3, 33, 140, true},     {2, 0, 6, 64, 512, true},
                               {7, 0, 40, 128, 6144, false}, {9, 128, 1, 129, 386, true},
                               {1500, 1, 2, 5, 16, true},    {2, 16, 1, 4099, 4115, false}};

Result<CheckCase> head_norm_case(const HeadSize& size, bool centered, Content content) {
  const Array x = random_array({size.rows, size.width}, 3, content);
  const Array gain = random_array({size.heads, size.head}, 4);
  VKF_ASSIGN(Array y, reference::head_norm(x, gain, {1e-6, size.first, centered}));
  const std::string attributes = R"({"first": )" + std::to_string(size.first) +
                                 R"(, "centered": )" + (centered ? "true}" : "false}");
  return call_case({"head_norm", attributes, {{"X", floats(x)}, {"weight", floats(gain)}}},
                   {{"Y", {std::move(y), terms(size.head)}}});
}

}  // namespace

void head_norm_cases(OperatorCases& cases) {
  for (const bool centered : {false, true}) {
    const std::string kind = centered ? "centered/" : "rms/";
    for (const HeadSize& s : kHeads) {
      const std::string name =
          kind + size_text({s.rows, s.heads, s.head, s.width}) + "/" + std::to_string(s.first);
      cases.check(name, s.quick, [=] { return head_norm_case(s, centered, Content::kNormal); });
    }
    for (const Content content : kOtherContents) {
      cases.check(kind + content_name(content), true, [=] {
        return head_norm_case({5, 3, 3, 33, 140, true}, centered, content);
      });
    }
  }
  cases.time("qwen3-0.6b prefill 256", {"head_norm", "{}"}, "X=256,4096 weight=24,128");
  cases.time("qwen3-0.6b decode", {"head_norm", "{}"}, "X=1,4096 weight=24,128");
  cases.limited_by("two passes over a head");
}

}  // namespace vkformer::conformance
