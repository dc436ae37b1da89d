// The cases of softmax: its checks, and what the benchmark times.
#include "reference/softmax.h"

#include <limits>
#include <optional>

#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/sparse_terms.h"

namespace vkformer::conformance {
namespace {

struct SoftmaxForm {
  const char* name;
  bool key_masked = false, masked = false, biased = false;
  double temperature = 1;
  bool causal = false;
  int64_t causal_offset = 0;
  std::optional<int64_t> window_left = {}, window_right = {};
  uint32_t sparse = 0;  // of SparseKind
};

constexpr SoftmaxForm kSoftmaxForms[] = {
    {"plain"},
    {"masked", true},
    {"biased", false, false, true, 0.5},
    {"causal", true, false, false, 1, true, 3},
};

// Masks, biases, windows and offsets together.
constexpr SoftmaxForm kTogether[] = {
    {"key-mask", true},
    {"all-masks", true, true, true},
    {"windows", true, true, true, 0.35, true, 26, 5, 2},
};

// Sparse terms, alone and together.
constexpr SoftmaxForm kSparse[] = {
    {"global", false, false, false, 1, true, 0, 5, {}, kSparseGlobal},
    {"documents", true, false, false, 1, false, 0, {}, {}, kSparseDocuments},
    {"prefix", false, false, false, 1, true, 0, 5, {}, kSparsePrefix},
    {"blocks", false, false, true, 0.5, false, 0, {}, {}, kSparseBlocks},
    {"sparse",
     true,
     true,
     true,
     0.35,
     true,
     0,
     9,
     {},
     kSparseGlobal | kSparseDocuments | kSparsePrefix | kSparseBlocks},
};

std::string attributes_of(const SoftmaxForm& form) {
  std::string text = R"({"temperature": )" + std::to_string(form.temperature);
  const auto add = [&](const char* name, int64_t value) {
    text += std::string(", \"") + name + "\": " + std::to_string(value);
  };
  if (form.causal) text += R"(, "causal": true)";
  if (form.causal) add("causal_offset", form.causal_offset);
  if (form.window_left) add("window_left", *form.window_left);
  if (form.window_right) add("window_right", *form.window_right);
  if ((form.sparse & kSparseBlocks) != 0) add("block_size", kSparseBlock);
  return text + "}";
}

Result<CheckCase> softmax_case(const SoftmaxForm& form, const Shape& shape, Content content) {
  const Array x = random_array(shape, 1, content);
  const Array key_mask = random_mask({shape[0], shape[3]}, 2);
  const Array mask = random_mask({shape[0], 1, shape[2], shape[3]}, 4, 0.8);
  // With a mask beside it, the bias forbids a key too.
  Array bias = random_array({1, shape[1], form.masked ? shape[2] : 1, shape[3]}, 3);
  if (form.masked) bias[bias.size() / 2] = -std::numeric_limits<double>::infinity();
  reference::SoftmaxOptions options;
  options.temperature = form.temperature;
  TensorMap inputs{{"X", floats(x)}};
  if (form.key_masked) {
    options.masks.key_mask = &key_mask;
    inputs.emplace("key_mask", mask_bytes(key_mask));
  }
  if (form.masked) {
    options.masks.mask = &mask;
    inputs.emplace("mask", mask_bytes(mask));
  }
  if (form.biased) {
    options.bias = &bias;
    inputs.emplace("bias", floats(bias));
  }
  SparseArrays sparse;
  add_sparse_terms(form.sparse, shape, sparse, options.masks, inputs);
  options.masks.causal = form.causal;
  options.masks.causal_offset = form.causal_offset;
  options.masks.window_left = form.window_left;
  options.masks.window_right = form.window_right;
  VKF_ASSIGN(Array y, reference::softmax(x, options));
  return call_case({"softmax", attributes_of(form), std::move(inputs)},
                   {{"Y", {std::move(y), terms(shape[3])}}});
}

}  // namespace

void softmax_cases(OperatorCases& cases) {
  for (const ScoreSize& size : score_sizes()) {
    for (const SoftmaxForm& form : kSoftmaxForms) {
      // Sums of large numbers round.
      if (size.content == Content::kWide && form.biased) continue;
      cases.check(form.name + ("/" + size.name) + size_text(size.scores), size.quick,
                  [=, &form] { return softmax_case(form, size.scores, size.content); });
    }
  }
  for (const int64_t width : kRowWidths) {
    const Shape shape{2, 1, 3, width};
    cases.test("plain/" + size_text(shape),
               [=] { return softmax_case(kSoftmaxForms[0], shape, Content::kNormal); });
  }
  for (const SoftmaxForm& form : kTogether) {
    const Shape shape{2, 3, 7, 33};
    cases.test(form.name + ("/" + size_text(shape)),
               [=, &form] { return softmax_case(form, shape, Content::kNormal); });
  }
  for (const SoftmaxForm& form : kSparse) {
    const Shape shape{2, 3, 40, 40};
    cases.check(form.name + ("/" + size_text(shape)), true,
                [=, &form] { return softmax_case(form, shape, Content::kNormal); });
  }
  cases.time("bert-base 1x128", {"softmax", "{}"}, "X=1,12,128,128");
  cases.time("vit-b32-384", {"softmax", "{}"}, "X=1,12,145,145");
  cases.limited_by("an exponential or erf for each element");
}

}  // namespace vkformer::conformance
