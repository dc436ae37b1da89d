// The cases of matmul: its checks, and what the benchmark times.
#include "ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"
#include "conformance/matrix_rounding.h"
#include "ops/layer_norm.h"
#include "ops/rms_norm.h"
#include "reference/layer_norm.h"
#include "reference/matmul.h"
#include "reference/rms_norm.h"
#include "reference/rows_in_bytes.h"

namespace vkformer::conformance {
namespace {

struct Product {
  int64_t m, n, k;
};

// Weights of 64 columns are in panels as they stand, f32 ones too. Rows 1 to 9, around tiles of 8,
// 14, 16, 32 and 64, panels of 64 columns, odd depths. 1,500 rows. Few blocks with many steps, for
// which GPUs take K in parts. Whole parts of 128 and of 64 steps.
constexpr Product kProducts[] = {
    {1, 1, 1},      {1, 7, 3},      {1, 64, 65},   {2, 64, 33},   {3, 63, 64},     {4, 65, 127},
    {5, 8, 128},    {6, 200, 31},   {7, 129, 65},  {8, 130, 257}, {9, 64, 64},     {13, 66, 40},
    {14, 71, 9},    {15, 64, 16},   {16, 97, 129}, {17, 33, 32},  {31, 128, 63},   {32, 127, 100},
    {33, 65, 66},   {63, 64, 17},   {64, 65, 33},  {65, 200, 47}, {200, 200, 200}, {1500, 67, 21},
    {12, 70, 1025}, {270, 66, 256}, {36, 40, 192}};

bool is_quick(const Product& p) {
  return p.m == 5 || p.m == 33 || p.m == 12 || (p.n == 64 && p.m <= 2);
}

std::string product_text(const Product& p) {
  return size_text({p.m, p.n, p.k});
}

struct ProductForm {
  const char* name;
  MatrixFormat weights;
  bool bias;
  const char* activation;
  Precision precision;
};

constexpr ProductForm kProductForms[] = {
    {"f32", MatrixFormat::kF32, false, "none", Precision::kF32},
    {"f32-bias-gelu", MatrixFormat::kF32, true, "gelu", Precision::kF32},
    {"f16", MatrixFormat::kF16, false, "none", Precision::kF32},
    {"f16-bias-relu", MatrixFormat::kF16, true, "relu", Precision::kF32},
    {"precision-f16", MatrixFormat::kF32, false, "none", Precision::kF16},
    {"f16-precision-f16", MatrixFormat::kF16, false, "none", Precision::kF16},
    {"bf16", MatrixFormat::kBF16, false, "none", Precision::kF32},
    {"q8-bias-relu", MatrixFormat::kQ8, true, "relu", Precision::kF32},
    {"q8-precision-f16", MatrixFormat::kQ8, false, "none", Precision::kF16},
    {"q4", MatrixFormat::kQ4, false, "none", Precision::kF32},
    {"q4m", MatrixFormat::kQ4M, false, "none", Precision::kF32},
    {"q8_0", MatrixFormat::kQ8_0, false, "none", Precision::kF32},
    {"q4_0-bias-relu", MatrixFormat::kQ4_0, true, "relu", Precision::kF32},
    {"q4_1", MatrixFormat::kQ4_1, false, "none", Precision::kF32},
    {"q5_0", MatrixFormat::kQ5_0, false, "none", Precision::kF32},
    {"q5_1", MatrixFormat::kQ5_1, false, "none", Precision::kF32},
    {"q4_k", MatrixFormat::kQ4K, false, "none", Precision::kF32},
    {"q4_k-precision-f16", MatrixFormat::kQ4K, false, "none", Precision::kF16},
    {"q5_k", MatrixFormat::kQ5K, false, "none", Precision::kF32},
    {"q6_k-bias-relu", MatrixFormat::kQ6K, true, "relu", Precision::kF32},
    {"q6_k-precision-f16", MatrixFormat::kQ6K, false, "none", Precision::kF16},
    {"mxfp4", MatrixFormat::kMxfp4, false, "none", Precision::kF32},
    {"iq4_nl", MatrixFormat::kIq4Nl, false, "none", Precision::kF32},
    {"iq4_xs", MatrixFormat::kIq4Xs, false, "none", Precision::kF32},
    {"q2_k", MatrixFormat::kQ2K, false, "none", Precision::kF32},
    {"q3_k", MatrixFormat::kQ3K, false, "none", Precision::kF32},
    {"q8-precision-int8", MatrixFormat::kQ8, false, "none", Precision::kInt8},
    {"q4_0-bias-relu-precision-int8", MatrixFormat::kQ4_0, true, "relu", Precision::kInt8},
    {"q5_1-precision-int8", MatrixFormat::kQ5_1, false, "none", Precision::kInt8},
    {"q2_k-precision-int8", MatrixFormat::kQ2K, false, "none", Precision::kInt8},
    {"q4_k-precision-int8", MatrixFormat::kQ4K, false, "none", Precision::kInt8},
    {"q6_k-bias-relu-precision-int8", MatrixFormat::kQ6K, true, "relu", Precision::kInt8},
    {"iq4_xs-precision-int8", MatrixFormat::kIq4Xs, false, "none", Precision::kInt8},
};

const ProductForm& form_named(std::string_view name) {
  return *std::find_if(std::begin(kProductForms), std::end(kProductForms),
                       [&](const ProductForm& form) { return form.name == name; });
}

Result<CheckCase> product_case(const Product& p, const ProductForm& form, Content content) {
  const bool half = form.precision == Precision::kF16;
  Array a = scaled(random_array({p.m, p.k}, 1, content), half ? 0.5 : 1);
  Array b = random_array({p.k, p.n}, 2);
  const Array bias = random_array({p.n}, 3);
  // Not what is beyond f16: that is to be multiplied as it is.
  if (half && content == Content::kNormal) a = reference::round_to_f16(std::move(a));
  if (half) b = reference::round_to_f16(std::move(b));
  const bool bytes = form.precision == Precision::kInt8;
  if (bytes) a = reference::clear_of_ties(std::move(a));
  const Array given = b;
  b = round_to_format(std::move(b), form.weights);
  reference::MatmulOptions options;
  VKF_ASSIGN(options.activation,
             reference::activation_from_name(
                 form.activation == std::string("none") ? "identity" : form.activation));
  TensorMap inputs{{"A", floats(a)}, {"B", floats(given)}};
  if (form.bias) {
    options.bias = &bias;
    inputs.emplace("C", floats(bias));
  }
  VKF_ASSIGN(Array y, reference::matmul(bytes ? reference::rows_in_bytes(a) : a, b, options));
  const DType arithmetic = half ? DType::kF16 : DType::kF32;
  const double magnitude = magnitude_of_sum(p.k, content);
  VKF_ASSIGN(
      CheckCase made,
      call_case({"gemm", std::string(R"({"activation": ")") + form.activation + "\"}",
                 std::move(inputs), weight_format_of(form.weights)},
                {{"Y", {std::move(y), reference::tolerance_for(arithmetic, p.k), magnitude}}}));
  made.precision = form.precision;
  return made;
}

// Any strides, batches and a full C: matmul_strided and matmul_tiled.
Result<CheckCase> strided_case(const Product& p, bool trans_a, bool trans_b) {
  const Array a = random_array(trans_a ? Shape{2, p.k, p.m} : Shape{2, p.m, p.k}, 1);
  const Array b = random_array(trans_b ? Shape{2, p.n, p.k} : Shape{2, p.k, p.n}, 2);
  const Array c = random_array({p.m, p.n}, 3);
  reference::MatmulOptions options;
  options.trans_a = trans_a;
  options.trans_b = trans_b;
  options.alpha = 0.5;
  options.beta = -2;
  options.c = &c;
  VKF_ASSIGN(Array y, reference::matmul(a, b, options));
  const std::string attributes = std::string(R"({"alpha": 0.5, "beta": -2)") +
                                 (trans_a ? R"(, "trans_a": true)" : "") +
                                 (trans_b ? R"(, "trans_b": true)" : "") + "}";
  return call_case({"gemm", attributes, {{"A", floats(a)}, {"B", floats(b)}, {"C", floats(c)}}},
                   {{"Y", {std::move(y), terms(p.k), magnitude_of_sum(p.k, Content::kNormal)}}});
}

// Operands whose products are of the order of 1.
Array unit_operand(const Shape& shape, int64_t k) {
  return scaled(random_array(shape, 7), 1 / std::sqrt(static_cast<double>(k)));
}

Result<reference::ActivationKind> reference_kind(ActivationKind kind) {
  if (kind == ActivationKind::kNone) return reference::ActivationKind::kIdentity;
  return reference::activation_from_name(activation_name(kind));
}

// Two tensors of a graph, with C where it has a shape.
struct TensorProduct {
  Shape a, b, c = {};
  MatmulAttrs attrs = {};
};

Result<CheckCase> tensor_case(const TensorProduct& p) {
  const int64_t k = p.a[p.a.size() - (p.attrs.trans_a ? 2 : 1)];
  const Array a = unit_operand(p.a, k), b = random_array(p.b, 2);
  const bool added = !p.c.empty();
  const Array c = added ? random_array(p.c, 3) : Array{};
  reference::MatmulOptions options;
  options.trans_a = p.attrs.trans_a;
  options.trans_b = p.attrs.trans_b;
  options.alpha = p.attrs.alpha;
  options.beta = p.attrs.beta;
  VKF_ASSIGN(options.activation, reference_kind(p.attrs.activation));
  if (added) options.c = &c;
  VKF_ASSIGN(Array y, reference::matmul(a, b, options));
  CheckCase made;
  const TensorId a_id = made.op.bind("a", floats(a)), b_id = made.op.bind("b", floats(b));
  const TensorId c_id = added ? made.op.bind("c", floats(c)) : kNoTensor;
  VKF_ASSIGN(const TensorId y_id, add_matmul(made.op.graph, a_id, b_id, c_id, p.attrs));
  made.op.name_output(y_id, "y");
  made.expected.emplace("y", Expected{std::move(y), terms(k)});
  return made;
}

void add_tensor_checks(OperatorCases& cases) {
  const auto add = [&](const std::string& name, const TensorProduct& p) {
    const std::string c = p.c.empty() ? "" : "-" + size_text(p.c);
    cases.test(name + size_text(p.a) + "-" + size_text(p.b) + c, [=] { return tensor_case(p); });
  };
  for (const Product& p : {Product{1, 1, 1}, Product{9, 13, 31}, Product{33, 24, 65}}) {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        add(std::string("tensors-") + (trans_a ? "t" : "n") + (trans_b ? "t/" : "n/"),
            {trans_a ? Shape{p.k, p.m} : Shape{p.m, p.k},
             trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n},
             {},
             {.trans_a = trans_a, .trans_b = trans_b}});
      }
    }
  }
  const std::pair<Shape, Shape> broadcast[] = {
      {{2, 3, 4, 5}, {5, 6}},          {{4, 5}, {2, 3, 5, 6}},       {{2, 3, 4, 5}, {3, 5, 6}},
      {{2, 1, 4, 5}, {1, 3, 5, 6}},    {{2, 3, 4, 5}, {2, 1, 5, 8}}, {{1, 4, 5}, {7, 5, 8}},
      {{2, 2, 2, 3, 5}, {2, 1, 5, 3}},
  };
  for (const auto& [a, b] : broadcast) add("broadcast/", {a, b});
  for (const Shape& c : {Shape{6}, Shape{4, 6}, Shape{2, 3, 4, 6}}) {
    add("added/", {{2, 3, 4, 5},
                   {3, 5, 6},
                   c,
                   {.alpha = -1.5f, .beta = 0.25f, .activation = ActivationKind::kSilu}});
  }
}

// A packed weight with all that a linear layer adds. x (..., K) -> (..., N)
struct Linear {
  Shape x;
  int64_t n;
  MatrixFormat format = MatrixFormat::kF32;
  bool bias = true, residual = false;
  ActivationKind activation = ActivationKind::kNone;
  Precision precision = Precision::kF32;
};

Result<CheckCase> linear_case(const Linear& c) {
  const int64_t k = c.x.back(), rows = element_count(c.x) / k;
  const bool bytes = c.precision == Precision::kInt8;
  const Array given = random_array(c.x, 1), x = bytes ? reference::clear_of_ties(given) : given;
  const Array w = unit_operand({k, c.n}, k);
  const Array bias = random_array({c.n}, 3), residual = random_array({rows, c.n}, 4);
  Shape y_shape = c.x;
  y_shape.back() = c.n;
  VKF_ASSIGN(const std::vector<float> values, floats(w).to_floats());
  std::vector<float> biases;
  if (c.bias) {
    VKF_ASSIGN(biases, floats(bias).to_floats());
  }
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {u32(c.n), u32(k), MatrixOrder::kInOut}, biases, c.format));
  CheckCase made;
  const LinearWeight weight{.tensor = made.op.bind("weight", words(packed.words)),
                            .n = u32(c.n),
                            .k = u32(k),
                            .bias_offset = packed.bias_offset,
                            .format = c.format};
  LinearAttrs attrs{.activation = c.activation};
  if (c.residual) {
    Tensor added = floats(residual);
    added.shape = y_shape;
    attrs.residual = made.op.bind("residual", std::move(added));
  }
  const TensorId x_id = made.op.bind("x", floats(x));
  VKF_ASSIGN(const TensorId y_id, add_linear(made.op.graph, x_id, weight, attrs));
  made.op.name_output(y_id, "y");
  reference::MatmulOptions options;
  VKF_ASSIGN(options.activation, reference_kind(c.activation));
  if (c.bias) options.bias = &bias;
  if (c.residual) options.residual = &residual;
  VKF_ASSIGN(Array y,
             reference::matmul({{rows, k}, bytes ? reference::rows_in_bytes(x).data : x.data},
                               round_to_format(w, c.format), options));
  made.precision = c.precision;
  y.shape = y_shape;
  made.expected.emplace("y", Expected{std::move(y), terms(k)});
  return made;
}

void add_linear_checks(OperatorCases& cases) {
  for (const MatrixFormat format : kMatrixFormats) {
    for (const int64_t rows : {1, 3, 4, 8, 9, 40}) {
      if (is_gguf_format(format) && rows != 3 && rows != 40) continue;
      const Linear c{
          .x = {rows, 37},
          .n = 27,
          .format = format,
          .bias = rows != 3,
          .residual = rows != 8,
          .activation = rows == 4 || rows == 40 ? ActivationKind::kRelu : ActivationKind::kNone};
      cases.test(std::string("linear-") + format_name(format) + "/" + size_text({rows, 27, 37}),
                 [=] { return linear_case(c); });
      if (!is_quantized(format)) continue;
      Linear in_bytes = c;
      in_bytes.precision = Precision::kInt8;
      cases.test(std::string("linear-") + format_name(format) + "-precision-int8/" +
                     size_text({rows, 27, 37}),
                 [=] { return linear_case(in_bytes); });
    }
  }
  for (const Shape& x : {Shape{5}, Shape{2, 3, 4, 5}, Shape{145, 768}}) {
    cases.test("linear-rows/" + size_text(x), [=] { return linear_case({x, 24}); });
  }
}

// A norm before a product of a few rows, in a step. It is one dispatch where the product takes the
// norm over (ops/norm_folding.h), else two.
struct NormedProduct {
  Product size;
  enum class Norm : uint8_t { kRms, kLayer } norm;
  MatrixFormat weights;
};

Result<CheckCase> normed_case(const NormedProduct& c, Content content) {
  constexpr float kEpsilon = 1e-5f;
  const Product& p = c.size;
  const Array x = random_array({p.m, p.k}, 1, content);
  const Array gain = random_array({p.k}, 2), bias = random_array({p.k}, 3);
  const Array given = random_array({p.k, p.n}, 4);
  CheckCase made;
  made.op.graph.set_step(u32(p.m));
  made.live_slots = u32(p.m);
  const TensorId from = made.op.bind("x", floats(x));
  const TensorId gains = made.op.bind("gains", floats(stacked_rows(gain, bias)));
  VKF_ASSIGN(const std::vector<float> values, floats(given).to_floats());
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {u32(p.n), u32(p.k), MatrixOrder::kInOut}, {}, c.weights));
  const LinearWeight weight{.tensor = made.op.bind("weight", words(packed.words)),
                            .n = u32(p.n),
                            .k = u32(p.k),
                            .bias_offset = packed.bias_offset,
                            .format = c.weights};
  Array normed;
  TensorId h = kNoTensor;
  if (c.norm == NormedProduct::Norm::kRms) {
    VKF_ASSIGN(h, add_rms_norm(made.op.graph, from, gains, {kEpsilon}));
    VKF_ASSIGN(normed, reference::rms_norm(x, {.epsilon = kEpsilon, .gain = &gain}));
  } else {
    VKF_ASSIGN(h, add_layer_norm(made.op.graph, {.x = from, .gain_bias = gains}, {kEpsilon}));
    VKF_ASSIGN(normed,
               reference::layer_norm(x, {.epsilon = kEpsilon, .gain = &gain, .bias = &bias}));
  }
  VKF_ASSIGN(const TensorId y, add_linear(made.op.graph, h, weight, {}));
  made.op.name_output(y, "y");
  VKF_ASSIGN(Array expected, reference::matmul(normed, round_to_format(given, c.weights)));
  made.expected.emplace(
      "y", Expected{std::move(expected), terms(p.k), magnitude_of_sum(p.k, Content::kNormal)});
  return made;
}

void add_normed_checks(OperatorCases& cases) {
  using enum NormedProduct::Norm;
  for (const Product& p :
       {Product{1, 64, 64}, Product{1, 200, 257}, Product{3, 65, 33}, Product{4, 70, 36}}) {
    for (const auto norm : {kRms, kLayer}) {
      for (const MatrixFormat format : kMatrixFormats) {
        if (is_gguf_format(format) && p.k != 257) continue;
        const NormedProduct c{p, norm, format};
        const std::string how = std::string(norm == kRms ? "rms_norm-" : "layer_norm-") +
                                format_name(format) + "/" + product_text(p);
        cases.check("step-" + how, p.m == 4, [=] { return normed_case(c, Content::kNormal); });
        cases.check("step-special-" + how, p.m == 3,
                    [=] { return normed_case(c, Content::kSpecial); });
      }
    }
  }
}

}  // namespace

void matmul_cases(OperatorCases& cases) {
  for (const Product& p : kProducts) {
    for (const ProductForm& form : kProductForms) {
      cases.check(form.name + ("/" + product_text(p)), is_quick(p),
                  [=, &form] { return product_case(p, form, Content::kNormal); });
    }
    if (p.m > 200) continue;
    for (int form = 0; form < 4; ++form) {
      const bool a = (form & 1) != 0, b = (form & 2) != 0;
      cases.check(
          std::string("strided-") + (a ? "t" : "n") + (b ? "t" : "n") + "/" + product_text(p),
          is_quick(p) && form == 2, [=] { return strided_case(p, a, b); });
    }
  }
  for (const Content content : kOtherContents) {
    for (const Product& p :
         {Product{1, 65, 33}, Product{6, 65, 33}, Product{40, 65, 33}, Product{40, 65, 128}}) {
      for (const ProductForm& form : {kProductForms[0], kProductForms[2], kProductForms[5],
                                      form_named("q4_k-precision-int8")}) {
        cases.check(std::string(form.name) + "-" + content_name(content) + "/" + product_text(p),
                    true, [=] { return product_case(p, form, content); });
      }
    }
  }
  add_normed_checks(cases);
  add_tensor_checks(cases);
  add_linear_checks(cases);
  cases.time("square 1024", {"gemm", "{}"}, "A=1024,1024 B=1024,1024");
  cases.time("bert-base 1x128 qkv", {"gemm", "{}"}, "A=128,768 B=768,2304 C=2304");
  cases.time("bert-base 1x128 up", {"gemm", R"({"activation": "gelu"})"},
             "A=128,768 B=768,3072 C=3072");
  cases.time("bert-base 1x128 down", {"gemm", "{}"}, "A=128,3072 B=3072,768 C=768");
  cases.time("vit-b32-384 up", {"gemm", R"({"activation": "gelu"})"},
             "A=145,768 B=768,3072 C=3072");
  cases.time("whisper-tiny 30 s up", {"gemm", R"({"activation": "gelu"})"},
             "A=1500,384 B=384,1536 C=1536");
  cases.time("llama-134m prefill 256 gate+up", {"gemm/f16", "{}"}, "A=256,768 B=768,4096");
  cases.time("llama-134m decode qkv", {"gemm/f16", "{}"}, "A=1,768 B=768,2304");
  cases.time("llama-134m decode head", {"gemm/f16", "{}"}, "A=1,768 B=768,32000");
  cases.time("marian 6 beams up", {"gemm", R"({"activation": "relu"})"},
             "A=6,512 B=512,2048 C=2048");
  cases.limited_by("drivers on a CPU make every load with a computed address lane by lane");
}

}  // namespace vkformer::conformance
