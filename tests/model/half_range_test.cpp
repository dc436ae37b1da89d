// Values beyond 65,504, the largest half, inside models and operators with precision f16. What
// comes out is what f32 gives, to the precision of halves, on every tier.
#include "model/encoder_cases.h"
#include "reference/attention.h"
#include "reference/matmul.h"
#include "support/matrix_rounding.h"
#include "support/matrix_units.h"
#include "support/operator_check.h"
#include "vkformer/operators.h"
#include "vkformer/session.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

// The test device at each of its tiers.
std::vector<Device> devices_of_all_tiers() {
  std::vector<Device> list;
  if (!have_test_device()) return list;
  for (int tier = 0; tier <= static_cast<int>(vulkan_of(*test_device())->caps().tier); ++tier) {
    DeviceOptions options = test_device_options();
    options.tier = static_cast<Tier>(tier);
    auto device = make_test_device(options, test_device_tweaks());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    list.push_back(*device);
  }
  return list;
}

void scale_weights(ChangedModel& model, const std::string& part, float factor) {
  int found = 0;
  for (auto& [name, tensor] : model.tensors) {
    if (name.find(part) == std::string::npos) continue;
    ++found;
    std::vector<float> values = *tensor.to_floats();
    for (float& value : values) value *= factor;
    tensor = Tensor::from_floats(tensor.shape, values);
  }
  CHECK(found > 0);
}

std::vector<float> logits_of(const Device& device, const std::string& folder,
                             const ModelOptions& options) {
  const auto model = Model::load(device, folder, options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 22; ++i) ids.push_back(1 + i * 7 % 30);
  const auto outputs = session->run({{"input_ids", Tensor::from_ints({2, 11}, ids)}});
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return *outputs->at("logits").to_floats();
}

// Within `share` of the largest magnitude of what was expected.
void check_near(const std::vector<float>& actual, const std::vector<float>& expected, float share) {
  REQUIRE(actual.size() == expected.size());
  float largest = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(std::isfinite(expected[i]));
    REQUIRE(std::isfinite(actual[i]));
    largest = std::max(largest, std::fabs(expected[i]));
    worst = std::max(worst, std::fabs(actual[i] - expected[i]));
  }
  CHECK(largest > 0);
  CHECK(worst <= share * largest);
}

void check_product(const Device& device, const Array& a, const Array& b, WeightFormat weights) {
  OperatorOptions options;
  options.precision = Precision::kF16;
  options.weights = weights;
  const OperatorCall call{
      "gemm", "{}", {{"A", reference::to_tensor(a)}, {"B", reference::to_tensor(b)}}};
  const auto run = run_operator(device, call, options);
  REQUIRE_MESSAGE(run.ok(), run.error().message);
  const Array expected = *reference::matmul(a, b, {});
  const std::vector<float> wanted(expected.data.begin(), expected.data.end());
  CAPTURE(choice_name(device.tier()));
  CAPTURE(a.dim(0));
  check_near(*run->outputs.at("Y").to_floats(), wanted, 0.01f);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a model with values beyond halves in attention and feed-forward layers keeps them") {
    ChangedModel model("llama-gqa");
    scale_weights(model, "mlp.up_proj", 0x1p20f);
    scale_weights(model, "v_proj", 0x1p19f);
    const test::TempDir folder;
    folder.write("config.json", model.config.dump());
    REQUIRE(write_tensor_file(folder.file("model.safetensors"), model.tensors).ok());
    for (const Device& device : devices_of_all_tiers()) {
      CAPTURE(choice_name(device.tier()));
      for (const WeightFormat weights : {WeightFormat::kAsStored, WeightFormat::kQ8}) {
        const auto expected = logits_of(device, folder.path(), {.weights = weights});
        const auto half =
            logits_of(device, folder.path(), {.weights = weights, .precision = Precision::kF16});
        check_near(half, expected, 0.02f);
      }
    }
  }

  TEST_CASE("a model whose products and attention run on matrix units gives what f32 gives") {
    if (!units_device()) return;
    // As a GPU with room for the smallest blocks only, which compile soonest.
    const auto device = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    DeviceCaps& caps = vulkan_of(*device)->impl().context.caps;
    caps.device_class = DeviceClass::kDiscrete;
    caps.limits.max_shared_bytes = 16384;
    // Longer than the model's window of 128 bytes.
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 2 * 150; ++i) ids.push_back(32 + i * i % 90);
    const auto logits = [&](Precision precision) {
      const auto model =
          Model::load(*device, std::string(VKFORMER_SOURCE_DIR) + "/models/shakespeare",
                      {.precision = precision});
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      const auto plan = model->plan_text({.batch = 2, .target = 150});
      REQUIRE_MESSAGE(plan.ok(), plan.error().message);
      const char* attention = caps.matrix2() ? "attention_units_nv__" : "attention_units__";
      for (const char* kernel : {attention, "matmul_units__"}) {
        CAPTURE(kernel);
        CHECK((plan->find(kernel) != std::string::npos) == (precision == Precision::kF16));
      }
      auto session = Session::create(*model);
      REQUIRE_MESSAGE(session.ok(), session.error().message);
      const auto outputs = session->run({{"input_ids", Tensor::from_ints({2, 150}, ids)}});
      REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
      return *outputs->at("logits").to_floats();
    };
    check_near(logits(Precision::kF16), logits(Precision::kF32), 0.02f);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("products of f16 precision keep factors and products beyond halves") {
    for (const Device& device : devices_of_all_tiers()) {
      for (const int64_t rows : {1, 5, 20}) {
        // Weights in f16, so that they are packed and halves are multiplied where the tier can.
        Array a = random_array({rows, 33}, 3);
        Array b = reference::round_to_f16(random_array({33, 70}, 4));
        a[7] = 70000;
        a[rows * 33 - 1] = -3e9;
        check_product(device, a, b, WeightFormat::kF16);
        // Each factor fits, their products do not.
        for (double& value : a.data) value = value < 0 ? -300 : 301;
        for (double& value : b.data) value *= 512;
        check_product(device, reference::round_to_f16(a), b, WeightFormat::kF16);
        // And so for weights that a half cannot hold.
        b = round_to_format(random_array({33, 70}, 6), MatrixFormat::kBF16);
        b[5] = 98304;
        check_product(device, random_array({rows, 33}, 5), b, WeightFormat::kBF16);
      }
    }
  }

  TEST_CASE("attention of f16 precision keeps values and scores beyond halves") {
    for (const Device& device : devices_of_all_tiers()) {
      const Array q = random_array({1, 2, 19, 24}, 5, 300),
                  k = random_array({1, 2, 37, 24}, 6, 300);
      const Array v = random_array({1, 2, 37, 24}, 7, 1e6);
      OperatorOptions options;
      options.precision = Precision::kF16;
      const OperatorCall call{"attention",
                              "{}",
                              {{"Q", reference::to_tensor(q)},
                               {"K", reference::to_tensor(k)},
                               {"V", reference::to_tensor(v)}}};
      const auto run = run_operator(device, call, options);
      REQUIRE_MESSAGE(run.ok(), run.error().message);
      const Array expected = *reference::attention(q, k, v);
      CAPTURE(choice_name(device.tier()));
      check_near(*run->outputs.at("output").to_floats(),
                 {expected.data.begin(), expected.data.end()}, 0.01f);
    }
  }
}

}  // namespace vkformer::testing
