// The cases of matmul: its checks, and what the benchmark times.
#include "ops/matmul.h"
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

namespace vkformer::conformance {
namespace {

struct Product {
  int64_t m, n, k;
};

// Weights of 64 columns are in panels as they stand, f32 ones too. Rows 1 to 9, around tiles of 8,
// 14, 16, 32 and 64, panels of 64 columns, odd depths; 1,500 rows; so few blocks
// and so many steps that GPUs take K in parts; and whole parts of 128 and of 64 steps.
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

constexpr ProductForm kForms[] = {
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
};

Result<CheckCase> product_case(const Product& p, const ProductForm& form, Content content) {
  const bool half = form.precision == Precision::kF16;
  Array a = scaled(random_array({p.m, p.k}, 1, content), half ? 0.5 : 1);
  Array b = random_array({p.k, p.n}, 2);
  const Array bias = random_array({p.n}, 3);
  // Not what is beyond f16: that is to be multiplied as it is.
  if (half && content == Content::kNormal) a = reference::round_to_f16(std::move(a));
  if (half) b = reference::round_to_f16(std::move(b));
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
  VKF_ASSIGN(Array y, reference::matmul(a, b, options));
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

// A norm in front of a product of a few rows, in a step: one dispatch where the product takes the
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
  Array gain_bias = gain;
  gain_bias.shape = {2, p.k};
  gain_bias.data.insert(gain_bias.data.end(), bias.data.begin(), bias.data.end());
  const TensorId from = made.op.bind("x", floats(x));
  const TensorId gains = made.op.bind("gains", floats(gain_bias));
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
    for (const ProductForm& form : kForms) {
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
      for (const ProductForm& form : {kForms[0], kForms[2], kForms[5]}) {
        cases.check(std::string(form.name) + "-" + content_name(content) + "/" + product_text(p),
                    true, [=] { return product_case(p, form, content); });
      }
    }
  }
  add_normed_checks(cases);
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
