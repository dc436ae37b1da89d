// The cases of softmax: its checks, and what the benchmark times.
#include "reference/softmax.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

struct SoftmaxForm {
  const char* name;
  const char* attributes;
  bool masked, biased;
  double temperature;
  bool causal;
};

constexpr SoftmaxForm kForms[] = {
    {"plain", "{}", false, false, 1, false},
    {"masked", "{}", true, false, 1, false},
    {"biased", R"({"temperature": 0.5})", false, true, 0.5, false},
    {"causal", R"({"causal": true, "causal_offset": 3})", true, false, 1, true},
};

Result<CheckCase> softmax_case(const SoftmaxForm& form, const Shape& shape, Content content) {
  const Array x = random_array(shape, 1, content);
  const Array key_mask = random_mask({shape[0], shape[3]}, 2);
  const Array bias = random_array({1, shape[1], 1, shape[3]}, 3);
  reference::SoftmaxOptions options;
  options.temperature = form.temperature;
  TensorMap inputs{{"X", floats(x)}};
  if (form.masked) {
    options.masks.key_mask = &key_mask;
    inputs.emplace("key_mask", mask_bytes(key_mask));
  }
  if (form.biased) {
    options.bias = &bias;
    inputs.emplace("bias", floats(bias));
  }
  options.masks.causal = form.causal;
  options.masks.causal_offset = form.causal ? 3 : 0;
  VKF_ASSIGN(Array y, reference::softmax(x, options));
  return call_case({"softmax", form.attributes, std::move(inputs)},
                   {{"Y", {std::move(y), terms(shape[3])}}});
}

}  // namespace

void softmax_cases(OperatorCases& cases) {
  for (const ScoreSize& size : score_sizes()) {
    for (const SoftmaxForm& form : kForms) {
      // Sums of large numbers round.
      if (size.content == Content::kWide && form.biased) continue;
      cases.check(form.name + ("/" + size.name) + size_text(size.scores), size.quick,
                  [=, &form] { return softmax_case(form, size.scores, size.content); });
    }
  }
  cases.time("bert-base 1x128", {"softmax", "{}"}, "X=1,12,128,128");
  cases.time("vit-b32-384", {"softmax", "{}"}, "X=1,12,145,145");
  cases.limited_by("an exponential or erf for each element");
}

}  // namespace vkformer::conformance
