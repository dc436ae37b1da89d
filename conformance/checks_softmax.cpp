// Checks of softmax and its relatives, and of choices along a row.
#include "base/check.h"
#include "conformance/content.h"
#include "reference/argmax.h"
#include "reference/log_softmax.h"
#include "reference/softmax.h"
#include "reference/top_k.h"

#include <cmath>

namespace vkformer::conformance {
namespace {

constexpr int64_t kWidths[] = {1, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257, 768, 1500, 5003};
constexpr Content kContents[] = {Content::kNormal, Content::kWide, Content::kTiny,
                                 Content::kSpecial};

bool is_quick(int64_t width) {
  return width == 1 || width == 33 || width == 129 || width == 1500;
}

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

Result<CheckCase> log_softmax_case(const Shape& shape, Content content) {
  const Array x = random_array(shape, 1, content);
  VKF_ASSIGN(Array y, reference::log_softmax(x));
  return call_case({"log_softmax", "{}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(shape.back())}}});
}

// Probabilities of every row.
Result<CheckCase> entropy_case(const Shape& shape) {
  VKF_ASSIGN(const Array p, reference::softmax(random_array(shape, 9)));
  const Array x = reference::round_to_f32(p);
  Array y = reference::filled({shape[0], shape[1], shape[2]}, 0.0);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x[i] > 0) y[i / shape[3]] -= x[i] * std::log(x[i]);
  }
  return call_case({"row_entropy", "{}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(shape[3])}}});
}

// Ties everywhere: 16 values only.
Array with_ties(const Shape& shape, uint64_t seed, Content content) {
  Array x = random_array(shape, seed, content);
  for (double& value : x.data) {
    if (std::abs(value) < 4) value = std::round(value * 2) / 2;
  }
  return x;
}

Result<CheckCase> argmax_case(const Shape& shape, Content content) {
  const Array x = with_ties(shape, 5, content);
  VKF_ASSIGN(Array y, reference::argmax(x));
  return call_case({"argmax", "{}", {{"X", floats(x)}}}, {{"Y", {std::move(y)}}});
}

Result<CheckCase> top_k_case(const Shape& shape, int64_t k, Content content) {
  const Array x = with_ties(shape, 6, content);
  VKF_ASSIGN(reference::TopK y, reference::top_k(x, k));
  return call_case({"top_k", R"({"k": )" + std::to_string(k) + "}", {{"X", floats(x)}}},
                   {{"values", {std::move(y.values)}}, {"indices", {std::move(y.indices)}}});
}

void add_width(CheckList& list, int64_t width, Content content, bool quick) {
  const std::string at = std::string(content_name(content)) + "/";
  const Shape four{2, 3, width < 1000 ? 5 : 2, width}, two{width < 1000 ? 9 : 2, width};
  for (const SoftmaxForm& form : kForms) {
    if (content == Content::kWide && form.biased) continue;  // sums of large numbers round
    list.add("softmax", form.name + ("/" + at) + size_text(four), quick,
             [=, &form] { return softmax_case(form, four, content); });
  }
  if (content != Content::kSpecial && content != Content::kWide) {
    list.add("row_entropy", at + size_text(four), quick, [=] { return entropy_case(four); });
  }
  list.add("log_softmax", at + size_text(two), quick,
           [=] { return log_softmax_case(two, content); });
  list.add("argmax", at + size_text(two), quick, [=] { return argmax_case(two, content); });
  for (const int64_t k : {int64_t{1}, int64_t{5}, int64_t{64}}) {
    if (k > width) continue;
    list.add("top_k", "k" + std::to_string(k) + "/" + at + size_text(two), quick && k == 5,
             [=] { return top_k_case(two, k, content); });
  }
}

}  // namespace

void add_softmax_checks(CheckList& list) {
  for (const int64_t width : kWidths) {
    add_width(list, width, Content::kNormal, is_quick(width));
  }
  for (const Content content : kContents) {
    if (content != Content::kNormal) add_width(list, 200, content, true);
  }
}

}  // namespace vkformer::conformance
