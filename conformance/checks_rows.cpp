// Checks of what works on rows or single elements: activations, norms.
#include "base/check.h"
#include "conformance/content.h"
#include "reference/activation.h"
#include "reference/gated_activation.h"
#include "reference/group_norm.h"
#include "reference/layer_norm.h"
#include "reference/mean_pool.h"
#include "reference/rms_norm.h"

namespace vkformer::conformance {
namespace {

// 1, primes, around a vector, around workgroups, 1 to 9 rows, and a real model's.
constexpr std::pair<int64_t, int64_t> kRows[] = {
    {1, 1},   {2, 7},   {3, 31},  {4, 32},  {5, 33},   {6, 63},  {7, 64},   {8, 65},
    {9, 127}, {3, 128}, {1, 129}, {2, 257}, {1500, 5}, {3, 768}, {2, 1500}, {1, 4099}};
constexpr Content kContents[] = {Content::kNormal, Content::kWide, Content::kTiny,
                                 Content::kSpecial};

bool is_quick(const std::pair<int64_t, int64_t>& rows) {
  return rows.second == 1 || rows.second == 33 || rows.second == 129 || rows.first == 1500;
}

// A check over all sizes, and over all contents at one of them.
template <class Make>
void add_rows(CheckList& list, const std::string& op, const std::string& name, Make make,
              int64_t factor = 1) {
  for (const auto& rows : kRows) {
    const Shape shape{rows.first, rows.second * factor};
    list.add(op, name + "/" + size_text(shape), is_quick(rows),
             [=] { return make(random_array(shape, 7), Content::kNormal); });
  }
  for (const Content content : kContents) {
    if (content == Content::kNormal) continue;
    const Shape shape{5, 129 * factor};
    list.add(op, name + "/" + content_name(content) + "/" + size_text(shape), true,
             [=] { return make(random_array(shape, 11, content), content); });
  }
}

constexpr const char* kKinds[] = {"gelu", "gelu_tanh", "quick_gelu", "silu",
                                  "relu", "tanh",      "sigmoid",    "elu_plus_one"};

// Where activations are steep, flat, or easily wrong: far below -13 the exact gelu is 0, and a
// power that overflows on the way makes it NaN.
Array activation_edges() {
  Array x{{1, 0}, {}};
  for (const double value : {-1e30, -65536.0, -700.0, -100.0, -89.0, -20.0, -14.0, -13.5, -13.0,
                             -12.9, -6.0, -1.0, -1e-3, -1e-20, -1e-40, -0.0}) {
    x.data.push_back(value);
    x.data.push_back(-value);
  }
  x.shape[1] = x.size();
  return reference::round_to_f32(x);
}

Result<CheckCase> activation_case(const Array& x, const std::string& kind) {
  VKF_ASSIGN(const reference::ActivationKind k, reference::activation_from_name(kind));
  VKF_ASSIGN(Array y, reference::activation(x, k));
  return call_case({"activation", R"({"kind": ")" + kind + "\"}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(1)}}});
}

Result<CheckCase> gated_case(const Array& x, const std::string& kind) {
  VKF_ASSIGN(const reference::ActivationKind k, reference::activation_from_name(kind));
  VKF_ASSIGN(Array y, reference::gated_activation(x, k));
  const double magnitude = magnitude_of(x);
  return call_case({"gated_activation", R"({"kind": ")" + kind + "\"}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(1), magnitude}}});
}

Result<CheckCase> layer_norm_case(const Array& x, bool fused) {
  const Array gain = random_array({x.dim(-1)}, 2), bias = random_array({x.dim(-1)}, 3);
  const Array residual = random_array(x.shape, 4);
  reference::LayerNormOptions options;
  options.gain = &gain;
  options.bias = &bias;
  TensorMap inputs{{"X", floats(x)}, {"weight", floats(gain)}, {"bias", floats(bias)}};
  if (fused) {
    options.residual = &residual;
    inputs.emplace("residual", floats(residual));
  }
  VKF_ASSIGN(Array y, reference::layer_norm(x, options));
  return call_case({"layer_norm", "{}", std::move(inputs)},
                   {{"Y", {std::move(y), terms(x.dim(-1)), 4}}});
}

Result<CheckCase> rms_norm_case(const Array& x) {
  const Array gain = random_array({x.dim(-1)}, 2);
  reference::RmsNormOptions options;
  options.gain = &gain;
  VKF_ASSIGN(Array y, reference::rms_norm(x, options));
  return call_case({"rms_norm", "{}", {{"X", floats(x)}, {"weight", floats(gain)}}},
                   {{"Y", {std::move(y), terms(x.dim(-1))}}});
}

Result<CheckCase> group_norm_case(const Shape& shape, int64_t groups, Content content) {
  const Array x = random_array(shape, 5, content);
  const Array gain = random_array({shape[1]}, 2), bias = random_array({shape[1]}, 3);
  VKF_ASSIGN(Array y, reference::group_norm(x, gain, bias, {.groups = groups}));
  return call_case({"group_norm",
                    R"({"groups": )" + std::to_string(groups) + "}",
                    {{"X", floats(x)}, {"weight", floats(gain)}, {"bias", floats(bias)}}},
                   {{"Y", {std::move(y), terms(shape[1] / groups * shape[2]), 4}}});
}

Result<CheckCase> mean_pool_case(const Shape& shape, bool normalize, Content content) {
  const Array x = random_array(shape, 6, content);
  const Array mask = random_mask({shape[0], shape[1]}, 7);
  VKF_ASSIGN(Array y, reference::mean_pool(x, {.normalize = normalize, .mask = &mask}));
  return call_case({"mean_pool",
                    normalize ? R"({"normalize": true})" : "{}",
                    {{"X", floats(x)}, {"mask", mask_bytes(mask)}}},
                   {{"Y", {std::move(y), terms(std::max(shape[1], shape[2])), magnitude_of(x)}}});
}

}  // namespace

void add_activation_checks(CheckList& list) {
  for (const char* kind : kKinds) {
    add_rows(list, "activation", kind,
             [=](const Array& x, Content) { return activation_case(x, kind); });
    list.add("activation", std::string(kind) + "/edges", true,
             [=] { return activation_case(activation_edges(), kind); });
    add_rows(
        list, "gated_activation", kind,
        [=](const Array& x, Content) { return gated_case(x, kind); }, 2);
  }
  // More than 128 MiB in one binding: computed where the device binds that much, else refused.
  list.add("activation", "relu/beyond-128-mib", false, []() -> Result<CheckCase> {
    Array x = reference::filled({1, (int64_t{128} << 18) + 1031}, 0.0);
    for (size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<double>(i % 8191) - 4000;
    VKF_ASSIGN(CheckCase made, activation_case(x, "relu"));
    made.may_be_refused = true;
    return made;
  });
}

void add_norm_checks(CheckList& list) {
  add_rows(list, "layer_norm", "plain",
           [](const Array& x, Content) { return layer_norm_case(x, false); });
  add_rows(list, "layer_norm", "residual",
           [](const Array& x, Content) { return layer_norm_case(x, true); });
  add_rows(list, "rms_norm", "plain", [](const Array& x, Content) { return rms_norm_case(x); });
  for (const Content content : kContents) {
    const std::string name = content_name(content);
    for (const Shape& shape :
         {Shape{1, 2, 1}, Shape{2, 6, 33}, Shape{1, 12, 129}, Shape{3, 4, 1500}}) {
      const bool quick = shape[2] == 33;
      list.add("group_norm", name + "/" + size_text(shape), quick,
               [=] { return group_norm_case(shape, 2, content); });
    }
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{3, 5, 33}, Shape{2, 9, 129}, Shape{2, 1500, 7}}) {
      const bool quick = shape[2] == 33;
      list.add("mean_pool", name + "/" + size_text(shape), quick,
               [=] { return mean_pool_case(shape, false, content); });
      list.add("mean_pool", "normalized-" + name + "/" + size_text(shape), quick,
               [=] { return mean_pool_case(shape, true, content); });
    }
  }
}

}  // namespace vkformer::conformance
