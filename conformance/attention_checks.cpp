#include "conformance/attention_checks.h"

#include <limits>

#include "base/check.h"
#include "conformance/sparse_terms.h"
#include "operators/attention_call.h"
#include "ops/attention_weights.h"
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

constexpr uint32_t kSparseShift = 16;

enum Term : uint32_t {
  kCausal = 1,
  kKeyMask = 2,
  kWindow = 4,
  kBias = 8,
  kAlibi = 16,
  kSoftcap = 32,
  kFreeMask = 64,
  kRelative = 128,
  kHalves = 256,         // precision f16
  kDisentangled = 1024,  // relative keys and queries
  kProducts = 2048,      // relative keys and products
  kSinks = 4096,         // sink scores
  kForbidding = 512,     // the free mask forbids a query everything, the bias some pairs
  kTemperature = 8192,   // 1.7.
  // SparseKind, shifted.
  kGlobal = kSparseGlobal << kSparseShift,
  kDocuments = kSparseDocuments << kSparseShift,
  kPrefix = kSparsePrefix << kSparseShift,
  kBlocks = kSparseBlocks << kSparseShift,
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
                           {"disentangled", kDisentangled},
                           {"relative-products", kProducts},
                           {"sinks", kSinks},
                           {"sinks-window", kSinks | kWindow | kCausal | kKeyMask},
                           {"sinks-precision-f16", kSinks | kHalves | kCausal},
                           {"all", kAllMasks},
                           {"precision-f16", kHalves},
                           {"softcap-precision-f16", kHalves | kSoftcap | kCausal},
                           {"all-precision-f16", kHalves | kAllMasks}};

// Sparse terms. Their sizes have several tiles of keys, in quads and not.
constexpr Form kSparseForms[] = {
    {"global", kGlobal | kWindow | kCausal},
    {"documents", kDocuments | kKeyMask},
    {"prefix", kPrefix | kWindow | kCausal},
    {"blocks", kBlocks | kTemperature | kAlibi},
    {"sparse-relative", kGlobal | kWindow | kRelative},
    {"sparse", kGlobal | kDocuments | kPrefix | kBlocks | kKeyMask | kBias | kTemperature}};
constexpr Sizes kSparseSizes[] = {{2, 2, 1, 40, 40, 16, 16}, {2, 2, 2, 72, 72, 7, 5}};

// One attention, by name. `masks` has causal and windows, which the form's terms set as well.
struct AttentionCallCase {
  Sizes sizes;
  uint32_t terms = 0;
  Content values = Content::kNormal;
  reference::MaskOptions masks = {};
  bool weights_alone = false;  // of attention_weights: without the output and the entropy
};

reference::MaskOptions masks_of(const Sizes& s, uint32_t terms) {
  reference::MaskOptions masks;
  masks.causal = (terms & kCausal) != 0;
  masks.causal_offset = masks.causal ? s.keys - s.queries : 0;
  if ((terms & kWindow) != 0) masks.window_left = 5;
  return masks;
}

AttentionCallCase call_of(const Sizes& s, uint32_t terms, Content values = Content::kNormal) {
  return {s, terms, values, masks_of(s, terms)};
}

// Everything an attention is given; the reference looks into it.
struct Arrays {
  Array q, k, v, key_mask, mask, bias, slopes, sinks, relative_keys, relative_queries,
      relative_products, relative_values;
  SparseArrays sparse;
};

void add_relative_terms(const Sizes& s, uint32_t terms, Arrays& a,
                        reference::AttentionOptions& options, TensorMap& inputs) {
  if ((terms & kRelative) != 0) {
    a.relative_keys = random_array({9, s.width}, 7);
    a.relative_values = random_array({9, s.value_width}, 8);
    options.relative.keys = &a.relative_keys;
    options.relative.values = &a.relative_values;
    inputs.emplace("relative_keys", floats(a.relative_keys));
    inputs.emplace("relative_values", floats(a.relative_values));
  }
  if ((terms & kProducts) != 0) {
    a.relative_keys = random_array({9, s.width}, 7);
    a.relative_products = random_array({s.batch, s.heads, s.keys, 9}, 10);
    options.relative.keys = &a.relative_keys;
    options.relative.products = &a.relative_products;
    inputs.emplace("relative_keys", floats(a.relative_keys));
    inputs.emplace("relative_products", floats(a.relative_products));
  }
  if ((terms & kDisentangled) != 0) {
    a.relative_keys = random_array({9, s.heads, s.width}, 7);
    a.relative_queries = random_array({9, s.heads, s.width}, 9);
    options.relative.keys = &a.relative_keys;
    options.relative.queries = &a.relative_queries;
    inputs.emplace("relative_keys", floats(a.relative_keys));
    inputs.emplace("relative_queries", floats(a.relative_queries));
  }
}

void add_terms(const AttentionCallCase& call, Arrays& a, reference::AttentionOptions& options,
               TensorMap& inputs, std::string& attributes) {
  const Sizes& s = call.sizes;
  const uint32_t terms = call.terms;
  const bool forbids = (terms & kForbidding) != 0;
  const auto attribute = [&](const std::string& text) {
    attributes += (attributes.empty() ? "" : ", ") + text;
  };
  const auto number = [&](const char* name, int64_t value) {
    attribute("\"" + std::string(name) + "\": " + std::to_string(value));
  };
  options.masks = call.masks;
  if (call.masks.causal) attribute(R"("causal": true)");
  if (call.masks.causal_offset != 0) number("causal_offset", call.masks.causal_offset);
  if (call.masks.window_left) number("window_left", *call.masks.window_left);
  if (call.masks.window_right) number("window_right", *call.masks.window_right);
  if ((terms & kKeyMask) != 0) {
    a.key_mask = random_mask({s.batch, s.keys}, 4);
    options.masks.key_mask = &a.key_mask;
    inputs.emplace("key_mask", mask_bytes(a.key_mask));
  }
  if ((terms & kFreeMask) != 0) {
    a.mask = random_mask({s.batch, 1, s.queries, s.keys}, 5, 0.8);
    for (int64_t key = 0; forbids && key < s.keys; ++key) a.mask[key] = 0;
    options.masks.mask = &a.mask;
    inputs.emplace("mask", mask_bytes(a.mask));
  }
  if ((terms & kBias) != 0) {
    a.bias = random_array({1, s.heads, s.queries, s.keys}, 6);
    for (int64_t at = 3; forbids && at < a.bias.size(); at += 7) {
      a.bias[at] = -std::numeric_limits<double>::infinity();
    }
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
  if ((terms & kSinks) != 0) {
    a.sinks = random_array({s.heads}, 11);
    inputs.emplace("sink_scores", floats(a.sinks));
    options.sink_scores = &a.sinks;
  }
  if ((terms & kSoftcap) != 0) {
    options.softcap = 1.5;
    attribute(R"("softcap": 1.5)");
  }
  if ((terms & kTemperature) != 0) {
    options.temperature = static_cast<double>(1.7f);
    attribute(R"("temperature": 1.7)");
  }
  add_sparse_terms(terms >> kSparseShift, {s.batch, s.heads, s.queries, s.keys}, a.sparse,
                   options.masks, inputs);
  if ((terms & kBlocks) != 0) number("block_size", kSparseBlock);
  add_relative_terms(s, terms, a, options, inputs);
}

// The weights of what is called, and nothing else: no other kernel is compiled.
Result<CheckCase> weights_case(const OperatorCall& call, Expected expected) {
  const OperatorOptions options;
  VKF_ASSIGN(const OperatorArguments arguments, OperatorArguments::parse(call, options));
  VKF_ASSIGN(AttentionCall attention, prepare_attention_call(arguments));
  AttentionWeightsAttrs attrs;
  attrs.attention = attention.attrs;
  VKF_ASSIGN(const TensorId weights,
             add_attention_weights(attention.op.graph, attention.inputs, attrs));
  attention.op.name_output(weights, "weights");
  CheckCase made;
  made.op = std::move(attention.op);
  made.expected.emplace("weights", std::move(expected));
  return made;
}

Result<CheckCase> attention_case(const char* op, const AttentionCallCase& call) {
  const Sizes& s = call.sizes;
  const Content values = call.values;
  Arrays a;
  a.q = random_array({s.batch, s.heads, s.queries, s.width}, 1);
  a.k = random_array({s.batch, s.kv_heads, s.keys, s.width}, 2);
  a.v = random_array({s.batch, s.kv_heads, s.keys, s.value_width}, 3, values);
  const bool halves = (call.terms & kHalves) != 0;
  for (Array* factor : {&a.q, &a.k, &a.v}) {
    // Not what is beyond f16: that is to be multiplied as it is.
    if (halves && (factor != &a.v || values == Content::kNormal)) {
      *factor = reference::round_to_f16(std::move(*factor));
    }
  }
  reference::AttentionOptions options;
  TensorMap inputs{{"Q", floats(a.q)}, {"K", floats(a.k)}, {"V", floats(a.v)}};
  std::string attributes;
  add_terms(call, a, options, inputs, attributes);
  VKF_ASSIGN(reference::AttentionOutputs y, reference::attention_weights(a.q, a.k, a.v, options));
  const Tolerance bound =
      halves ? reference::tolerance_for(DType::kF16, s.keys) : terms(s.keys + 2 * s.width);
  if (call.weights_alone) {
    return weights_case({op, "{" + attributes + "}", std::move(inputs)},
                        {std::move(y.weights), bound});
  }
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

class Tests {
 public:
  explicit Tests(OperatorCases& cases) : cases_(cases) {}

  void add(const std::string& group, AttentionCallCase call) {
    const char* op = cases_.op();
    call.weights_alone = op == std::string("attention_weights");
    cases_.test(group + "/" + sizes_text(call.sizes), [=] { return attention_case(op, call); });
  }
  // Every set of four terms, with each of these masks.
  void add_sets(const Sizes& s, const std::vector<reference::MaskOptions>& kinds) {
    constexpr uint32_t kSets[] = {kKeyMask, kFreeMask, kBias, kAlibi};
    for (uint32_t set = 0; set < 16; ++set) {
      uint32_t terms = kForbidding;
      for (size_t i = 0; i < 4; ++i) terms |= (set >> i & 1u) != 0 ? kSets[i] : 0;
      for (size_t kind = 0; kind < kinds.size(); ++kind) {
        add("terms-" + std::to_string(set) + "-" + std::to_string(kind),
            {s, terms, Content::kNormal, kinds[kind]});
      }
    }
  }

 private:
  OperatorCases& cases_;
};

// Sizes around tiles, widths that differ, shared heads, and terms alone and together. Windows that
// leave whole tiles and whole rows empty. More keys than a software driver's loops have rounds.
void add_attention_tests(OperatorCases& cases) {
  Tests tests(cases);
  for (const int64_t queries : {1, 7, 8, 9, 63, 64, 65, 145}) {
    for (const int64_t keys : {1, 7, 8, 9, 63, 64, 65, 257}) {
      tests.add("lengths", {{1, 1, 1, queries, keys, 16, 16}});
    }
  }
  constexpr int64_t kWidths[][2] = {{8, 8},   {16, 16}, {40, 40},   {64, 64},
                                    {80, 80}, {96, 96}, {128, 128}, {256, 256},
                                    {1, 1},   {7, 5},   {64, 130},  {33, 256}};
  for (const auto& [width, value_width] : kWidths) {
    tests.add("widths", {{2, 3, 3, 1, 37, width, value_width}});
    tests.add("widths", {{2, 3, 3, 13, 37, width, value_width}});
  }
  for (const int64_t kv_heads : {1, 2, 3, 6})
    tests.add("shared", {{2, 6, kv_heads, 11, 19, 8, 12}});
  tests.add_sets({2, 2, 2, 21, 70, 8, 8},
                 {{},
                  {.causal = true},
                  {.causal = true, .causal_offset = 49, .window_left = 5},
                  {.causal_offset = 49, .window_left = 5, .window_right = 3}});
  for (const int64_t offset : {0, -200, 5000, -5000}) {
    tests.add("empty-tiles-" + std::to_string(offset),
              {{1, 1, 1, 257, 257, 8, 8},
               0,
               Content::kNormal,
               {.causal = true, .causal_offset = offset, .window_left = 3}});
  }
  tests.add("many-keys", {{1, 1, 1, 3, 25001, 8, 8}, kKeyMask});
}

void add_weights_tests(OperatorCases& cases) {
  Tests tests(cases);
  for (const int64_t queries : {1, 7, 64, 65}) {
    for (const int64_t keys : {1, 7, 64, 65, 145, 257}) {
      tests.add("lengths", {{1, 1, 1, queries, keys, 8, 8}});
    }
  }
  for (const int64_t width : {1, 16, 40, 64, 80, 128, 256}) {
    tests.add("widths", {{2, 2, 2, 5, 9, width, 8}});
  }
  tests.add_sets({2, 4, 2, 11, 40, 8, 8},
                 {{}, {.causal = true, .causal_offset = 20, .window_left = 4}});
}

}  // namespace

void add_whole_attention_checks(OperatorCases& cases) {
  const char* op = cases.op();
  const bool weights = op == std::string("attention_weights");
  for (const Sizes& s : kSizes) {
    for (const Form& form : kForms) {
      // "all" has those that are omitted.
      const bool many = form.terms == kBias || form.terms == kFreeMask || form.terms == kKeyMask;
      const bool halves = (form.terms & kHalves) != 0;
      if (halves && (weights || s.queries < 9)) continue;  // what no kernel of halves takes
      const bool quick = s.queries == 7 ? !many : is_quick(s) && (form.terms & ~kHalves) == 0;
      cases.check(form.name + ("/" + sizes_text(s)), quick && (!weights || form.terms == 0),
                  [=, &form] { return attention_case(op, call_of(s, form.terms)); });
    }
  }
  for (const Sizes& s : kSparseSizes) {
    for (const Form& form : kSparseForms) {
      // Weights are of one kernel, whose terms do not depend on the width.
      const bool quick = !weights || (s.width == 16 && form.terms != kSparseForms[4].terms);
      cases.check(form.name + ("/" + sizes_text(s)), quick,
                  [=, &form] { return attention_case(op, call_of(s, form.terms)); });
    }
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    const std::string name = std::string("values-") + content_name(content);
    constexpr Sizes kOne = {2, 2, 2, 33, 40, 32, 32};
    cases.check(name, true, [=] { return attention_case(op, call_of(kOne, kKeyMask, content)); });
    if (weights) continue;
    cases.check(name + "-precision-f16", true,
                [=] { return attention_case(op, call_of(kOne, kKeyMask | kHalves, content)); });
  }
  weights ? add_weights_tests(cases) : add_attention_tests(cases);
}

}  // namespace vkformer::conformance
