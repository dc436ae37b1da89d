#include "conformance/attention_checks.h"

#include "base/check.h"
#include "reference/attention_weights.h"

namespace vkformer::conformance {
namespace {

struct Sizes {
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
};

// Tiles are of 4 to 64 queries and keys.
constexpr Sizes kSizes[] = {
    {1, 1, 1, 1, 1, 1, 1},      {2, 2, 2, 1, 7, 8, 8},       {1, 4, 2, 7, 33, 16, 16},
    {2, 3, 3, 31, 32, 32, 32},  {1, 2, 1, 32, 63, 64, 64},   {1, 2, 2, 33, 65, 64, 64},
    {1, 6, 2, 64, 129, 24, 40}, {2, 1, 1, 65, 64, 80, 80},   {1, 1, 1, 127, 257, 128, 128},
    {1, 2, 2, 9, 1500, 64, 64}, {1, 1, 1, 130, 40, 256, 256}};

bool is_quick(const Sizes& s) {
  return s.queries == 1 || s.queries == 33 || s.width == 24;
}

std::string sizes_text(const Sizes& s) {
  return size_text({s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.width, s.value_width});
}

enum Term : uint32_t {
  kCausal = 1,
  kKeyMask = 2,
  kWindow = 4,
  kBias = 8,
  kAlibi = 16,
  kSoftcap = 32,
  kFreeMask = 64,
  kRelative = 128,
  kHalves = 256,  // precision f16
};

struct Form {
  const char* name;
  uint32_t terms;
};

constexpr uint32_t kAllMasks = kCausal | kKeyMask | kWindow | kBias | kAlibi | kFreeMask;

constexpr Form kForms[] = {{"plain", 0},
                           {"causal", kCausal},
                           {"key-mask", kKeyMask},
                           {"window", kWindow | kCausal},
                           {"bias", kBias},
                           {"alibi", kAlibi | kCausal},
                           {"softcap", kSoftcap},
                           {"mask", kFreeMask},
                           {"relative", kRelative},
                           {"all", kAllMasks},
                           {"precision-f16", kHalves},
                           {"softcap-precision-f16", kHalves | kSoftcap | kCausal},
                           {"all-precision-f16", kHalves | kAllMasks}};

// Everything an attention is given; the reference looks into it.
struct Arrays {
  Array q, k, v, key_mask, mask, bias, slopes, relative_keys, relative_values;
};

void add_terms(const Sizes& s, uint32_t terms, Arrays& a, reference::AttentionOptions& options,
               TensorMap& inputs, std::string& attributes) {
  const auto attribute = [&](const std::string& text) {
    attributes += (attributes.empty() ? "" : ", ") + text;
  };
  if ((terms & kCausal) != 0) {
    options.masks.causal = true;
    options.masks.causal_offset = s.keys - s.queries;
    attribute(R"("causal": true, "causal_offset": )" + std::to_string(s.keys - s.queries));
  }
  if ((terms & kWindow) != 0) {
    options.masks.window_left = 5;
    attribute(R"("window_left": 5)");
  }
  if ((terms & kKeyMask) != 0) {
    a.key_mask = random_mask({s.batch, s.keys}, 4);
    options.masks.key_mask = &a.key_mask;
    inputs.emplace("key_mask", mask_bytes(a.key_mask));
  }
  if ((terms & kFreeMask) != 0) {
    a.mask = random_mask({s.batch, 1, s.queries, s.keys}, 5, 0.8);
    options.masks.mask = &a.mask;
    inputs.emplace("mask", mask_bytes(a.mask));
  }
  if ((terms & kBias) != 0) {
    a.bias = random_array({1, s.heads, s.queries, s.keys}, 6);
    options.bias = &a.bias;
    inputs.emplace("bias", floats(a.bias));
  }
  if ((terms & kAlibi) != 0) {
    a.slopes = reference::filled({s.heads}, 0.0);
    for (int64_t h = 0; h < s.heads; ++h) {
      a.slopes[h] = 1.0 / static_cast<double>(int64_t{2} << h);
    }
    inputs.emplace("alibi_slopes", floats(a.slopes));
    options.alibi_slopes = &a.slopes;
  }
  if ((terms & kSoftcap) != 0) {
    options.softcap = 1.5;
    attribute(R"("softcap": 1.5)");
  }
  if ((terms & kRelative) != 0) {
    a.relative_keys = random_array({9, s.width}, 7);
    a.relative_values = random_array({9, s.value_width}, 8);
    options.relative.keys = &a.relative_keys;
    options.relative.values = &a.relative_values;
    inputs.emplace("relative_keys", floats(a.relative_keys));
    inputs.emplace("relative_values", floats(a.relative_values));
  }
}

Result<CheckCase> attention_case(const char* op, const Sizes& s, uint32_t terms_asked,
                                 Content values) {
  Arrays a;
  a.q = random_array({s.batch, s.heads, s.queries, s.width}, 1);
  a.k = random_array({s.batch, s.kv_heads, s.keys, s.width}, 2);
  a.v = random_array({s.batch, s.kv_heads, s.keys, s.value_width}, 3, values);
  const bool halves = (terms_asked & kHalves) != 0;
  for (Array* factor : {&a.q, &a.k, &a.v}) {
    // Not what is beyond f16: that is to be multiplied as it is.
    if (halves && (factor != &a.v || values == Content::kNormal)) {
      *factor = reference::round_to_f16(std::move(*factor));
    }
  }
  reference::AttentionOptions options;
  TensorMap inputs{{"Q", floats(a.q)}, {"K", floats(a.k)}, {"V", floats(a.v)}};
  std::string attributes;
  add_terms(s, terms_asked, a, options, inputs, attributes);
  VKF_ASSIGN(reference::AttentionOutputs y, reference::attention_weights(a.q, a.k, a.v, options));
  const Tolerance bound =
      halves ? reference::tolerance_for(DType::kF16, s.keys) : terms(s.keys + 2 * s.width);
  const double magnitude = values == Content::kWide ? 1e5 : 1;
  std::map<std::string, Expected> expected;
  expected.emplace("output", Expected{std::move(y.output), bound, magnitude});
  if (op == std::string("attention_weights")) {
    expected.emplace("weights", Expected{std::move(y.weights), bound});
    expected.emplace("entropy", Expected{std::move(y.entropy), bound});
  }
  VKF_ASSIGN(CheckCase made,
             call_case({op, "{" + attributes + "}", std::move(inputs)}, std::move(expected)));
  if (halves) made.precision = Precision::kF16;
  return made;
}

}  // namespace

void add_whole_attention_checks(OperatorCases& cases) {
  const char* op = cases.op();
  const bool weights = op == std::string("attention_weights");
  for (const Sizes& s : kSizes) {
    for (const Form& form : kForms) {
      // "all" has those that are left out.
      const bool many = form.terms == kBias || form.terms == kFreeMask || form.terms == kKeyMask;
      const bool halves = (form.terms & kHalves) != 0;
      if (halves && (weights || s.queries < 9)) continue;  // what no kernel of halves takes
      const bool quick = s.queries == 7 ? !many : is_quick(s) && (form.terms & ~kHalves) == 0;
      cases.check(form.name + ("/" + sizes_text(s)), quick && (!weights || form.terms == 0),
                  [=, &form] { return attention_case(op, s, form.terms, Content::kNormal); });
    }
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    const std::string name = std::string("values-") + content_name(content);
    constexpr Sizes kOne = {2, 2, 2, 33, 40, 32, 32};
    cases.check(name, true, [=] { return attention_case(op, kOne, kKeyMask, content); });
    if (weights) continue;
    cases.check(name + "-precision-f16", true,
                [=] { return attention_case(op, kOne, kKeyMask | kHalves, content); });
  }
}

}  // namespace vkformer::conformance
