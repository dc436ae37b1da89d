#include "vkformer/estimate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "conformance/estimates/caps_json.h"
#include "conformance/estimates/data_sheets.h"
#include "conformance/estimates/recorded_gpus.h"
#include "conformance/kernels.h"
#include "measure/planned_passes.h"
#include "model_shapes.h"
#include "params/constants.h"
#include "support/test_device.h"

using namespace vkformer;
using namespace vkformer::estimates;
using nlohmann::ordered_json;

namespace {

constexpr double kExact = 1e-9;

// A unit of 64 lanes at a GHz, of which a GPU has 4.
GpuRates four_units() {
  return {.units = 4,
          .clock = 1e9,
          .issued = 64,
          .multiply_adds = 64,
          .residents = 32,
          .bandwidth = 1e9,
          .latency = 1e-6,
          .launch = 2e-6};
}

// Of 8 workgroups of 64, each of 64 * 1000 multiply-adds.
Dispatch eight_groups() {
  Dispatch d;
  d.kernel = KernelId::fill_words__u32;
  d.set_constants(WorkgroupConstants{64});
  d.groups = {8, 1, 1};
  d.flops = 2.0 * 8 * 64 * 1000;
  d.bytes = 1000;
  return d;
}

// Milliseconds of the benchmark's models with one GPU's kernels and those choices.
double models_ms(const RecordedGpu& gpu, const DataSheet& sheet, const GpuTraits& traits) {
  DeviceCaps caps = caps_of(sheet, gpu);
  caps.gpu = traits;
  double seconds = 0;
  for (const char* name : {"bert-base", "gpt2", "llama-134m", "whisper-tiny"}) {
    const cli::ModelShape& shape = *cli::find_model_shape(name);
    for (const cli::ModelRun& run : shape.runs) {
      auto plans = plan_passes(caps, cli::random_model(shape, cli::ShapeWeights::kZeros), {},
                               cli::sizes_of(run));
      REQUIRE_MESSAGE(plans.ok(), plans.error().message);
      for (Plan& plan : *plans) {
        settle_step(plan);
        for (const Dispatch& d : plan.dispatches) {
          seconds +=
              time_of(d, gpu.find(conformance::name_of(d.kernel), d.spec).kernel, sheet.rates)
                  .total();
        }
      }
    }
  }
  return 1e3 * seconds;
}

std::string traits_text(const GpuTraits& traits) {
  return "blocks of " + std::to_string(traits.matmul_block) + ", " +
         std::to_string(traits.matmul_rows) + " rows a pass, " +
         std::to_string(traits.attention_queries) + " queries";
}

std::string recording(const std::string& kernels) {
  return R"({"target": "one", "caps": )" + caps_json(DeviceCaps{}, 0).dump() + R"(, "kernels": [)" +
         kernels + "]}";
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("arithmetic is what the busiest unit issues") {
    // Half of the hot loop multiplies; 100 instructions are outside of it.
    const CompiledKernel kernel{.subgroup_size = 32,
                                .occupancy = 8,
                                .instructions = 120,
                                .hot_instructions = 20,
                                .hot_multiply_adds = 10};
    Dispatch d = eight_groups();
    DispatchTime time = time_of(d, &kernel, four_units());
    // Two groups a unit, each of 64 invocations of 1000 * 2 + 100 instructions.
    CHECK(time.arithmetic == doctest::Approx(2 * 2100e-9).epsilon(kExact));
    CHECK(time.bound() == time.arithmetic);
    CHECK(time.total() == doctest::Approx(2 * 2100e-9 + 2e-6).epsilon(kExact));
    // A ninth group has a unit for itself while the others wait.
    d.groups = {9, 1, 1};
    d.flops *= 9.0 / 8;
    CHECK(time_of(d, &kernel, four_units()).arithmetic ==
          doctest::Approx(3 * 2100e-9).epsilon(kExact));
    // Where half of the lanes can multiply, the loop takes no longer: it multiplies half the time.
    GpuRates half = four_units();
    half.multiply_adds = 32;
    CHECK(time_of(d, &kernel, half).arithmetic == doctest::Approx(3 * 2100e-9).epsilon(kExact));
    half.multiply_adds = 16;
    CHECK(time_of(d, &kernel, half).arithmetic == doctest::Approx(3 * 4000e-9).epsilon(kExact));
  }

  TEST_CASE("latency is of rounds that wait, by how many groups a unit holds") {
    const CompiledKernel kernel{.subgroup_size = 32,
                                .occupancy = 2,
                                .instructions = 20,
                                .hot_instructions = 20,
                                .hot_multiply_adds = 10,
                                .hot_loads = 2};
    // 2 of occupancy are 64 invocations: one group at a time. 100 rounds, twice.
    const Dispatch d = eight_groups();
    CHECK(time_of(d, &kernel, four_units()).latency ==
          doctest::Approx(2 * 100 * 1e-6).epsilon(kExact));
    CompiledKernel roomy = kernel;
    roomy.occupancy = 4;
    CHECK(time_of(d, &roomy, four_units()).latency == doctest::Approx(100e-6).epsilon(kExact));
    CompiledKernel shared = kernel;
    shared.hot_loads = 0;
    CHECK(time_of(d, &shared, four_units()).latency == doctest::Approx(2e-6).epsilon(kExact));
    // Occupancy in subgroups is of more invocations where these are larger.
    GpuRates by_size = four_units();
    by_size.residents = 2;
    by_size.residents_by_size = true;
    CHECK(time_of(d, &kernel, by_size).latency == doctest::Approx(100e-6).epsilon(kExact));
  }

  TEST_CASE("bytes take what the memory takes, and of an unknown kernel operations count") {
    Dispatch d = eight_groups();
    d.bytes = 1e9;
    const DispatchTime time = time_of(d, nullptr, four_units());
    CHECK(time.bandwidth == doctest::Approx(1.0).epsilon(kExact));
    CHECK(time.bound() == time.bandwidth);
    CHECK(time.latency == 0);
    CHECK(time.arithmetic == doctest::Approx(8 * 64 * 1000 / 256e9).epsilon(kExact));
  }

  TEST_CASE("capabilities come back from JSON as they were") {
    DeviceCaps caps;
    caps.name = "a GPU";
    caps.driver = "a driver";
    caps.device_class = DeviceClass::kIntegrated;
    caps.tier = Tier::kMatrix;
    caps.subgroup_size = 32;
    caps.compiler.has_int64 = caps.compiler.has_quads = true;
    caps.matrix_units = {{16, 8, 16}};
    caps.unit_lanes = 16;
    caps.max_unit_subgroups = 8;
    caps.has_matrix2 = caps.keeps_dispatch_base = true;
    caps.max_dispatch_flops = 4e10;
    caps.limits.max_shared_bytes = 49152;
    caps.limits.max_storage_range = 1ull << 32;
    caps.limits.max_group_count = {1u << 31, 7, 9};
    caps.demoted = {KernelId::fill_words__u32};
    constexpr uint32_t kIntel = 0x8086;
    const ordered_json json = caps_json(caps, kIntel);
    const Result<DeviceCaps> read = caps_from_json(json);
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    CHECK(caps_json(*read, kIntel) == json);
    CHECK(read->gpu == gpu_traits(kIntel, "a driver"));
    CHECK(read->demoted == caps.demoted);
    for (const char* member : {"tier", "limits", "matrix_units", "demoted", "vendor"}) {
      ordered_json damaged = json;
      damaged.erase(member);
      const Result<DeviceCaps> failed = caps_from_json(damaged);
      REQUIRE_FALSE(failed.ok());
      CHECK(failed.error().message.find(member) != std::string::npos);
    }
  }

  TEST_CASE("a pipeline that was not compiled is taken to be as the nearest of its kernel") {
    const auto gpu = RecordedGpu::parse(recording(
        R"(["a", [1, 2, 3], 32, 8, 100, 20, 10, 1], ["a", [1, 5, 6], 32, 4, 200, 0, 0, 0])"));
    REQUIRE_MESSAGE(gpu.ok(), gpu.error().message);
    CHECK(gpu->pipelines() == 2);
    const uint32_t exact[] = {1, 5, 6}, near[] = {0, 2, 3};
    CHECK(gpu->find("a", exact).exact);
    CHECK(gpu->find("a", exact).kernel->instructions == 200);
    CHECK_FALSE(gpu->find("a", near).exact);
    CHECK(gpu->find("a", near).kernel->hot_instructions == 20);
    CHECK(gpu->find("b", exact).kernel == nullptr);
  }

  TEST_CASE("a damaged recording is an error, as is one that is not there") {
    const std::string whole = recording(R"(["a", [1], 32, 8, 100, 20, 10, 1])");
    CHECK(RecordedGpu::parse(whole).ok());
    for (size_t i = 0; i < whole.size(); i += 7) {
      CHECK_FALSE(RecordedGpu::parse(whole.substr(0, i)).ok());
    }
    CHECK_FALSE(RecordedGpu::parse(recording(R"(["a", [1], 32])")).ok());
    CHECK_FALSE(RecordedGpu::parse(recording(R"(["a", ["x"], 32, 8, 100, 20, 10, 1])")).ok());
    CHECK(RecordedGpu::read("no:gpu").error().message.find("record_kernels") != std::string::npos);
  }

  TEST_CASE("every data sheet has a recording of a GPU") {
    for (const DataSheet& sheet : data_sheets()) {
      INFO(sheet.chip);
      CHECK(find_data_sheet(sheet.chip) == &sheet);
      const auto gpu = RecordedGpu::read(sheet.target);
      REQUIRE_MESSAGE(gpu.ok(), gpu.error().message);
      CHECK(gpu->target() == sheet.target);
      CHECK(gpu->pipelines() > 50);
      CHECK(gpu->caps().device_class != DeviceClass::kSoftware);
      CHECK(gpu->caps().subgroup());
      CHECK(sheet.rates.issued >= sheet.rates.multiply_adds);
      CHECK(caps_of(sheet, *gpu).compute_units == sheet.stated_units);
      CHECK((sheet.stated_units == 0 || sheet.stated_units == sheet.rates.units));
    }
    CHECK(estimated_gpus().size() == data_sheets().size());
  }

  TEST_CASE("a model is estimated on every GPU, and the parts are the whole") {
    for (const EstimatedGpu& gpu : estimated_gpus()) {
      for (const char* name : {"bert-base", "llama-134m"}) {
        INFO(gpu.chip << " " << name);
        const cli::ModelShape& shape = *cli::find_model_shape(name);
        const SessionSizes sizes = cli::sizes_of(shape.runs.front());
        const auto made = estimate_model(
            gpu.chip, cli::random_model(shape, cli::ShapeWeights::kZeros), {}, sizes);
        REQUIRE_MESSAGE(made.ok(), made.error().message);
        CHECK(made->device == gpu.product);
        CHECK(made->step.has_value() == (sizes.new_tokens > 0));
        const EstimatedPass& pass = made->first;
        CHECK(pass.arithmetic_ms + pass.bandwidth_ms + pass.latency_ms + pass.launch_ms ==
              doctest::Approx(pass.ms).epsilon(kExact));
        double ms = 0, assumed = 0;
        int dispatches = 0;
        for (const EstimatedKernel& kernel : pass.kernels) {
          ms += kernel.ms;
          assumed += kernel.assumed.empty() ? 0 : kernel.ms;
          dispatches += kernel.dispatches;
        }
        CHECK(ms == doctest::Approx(pass.ms).epsilon(kExact));
        CHECK(dispatches == pass.dispatches);
        // Kernels may change before they are compiled anew.
        CHECK(assumed < pass.ms / 2);
        // No pass is faster than the data sheet.
        CHECK(pass.ms > pass.flops * 1e-6 / gpu.fma_gflops);
      }
    }
  }

  TEST_CASE("no vendor's choice is predicted to be far from the best") {
    for (const DataSheet& sheet : data_sheets()) {
      const auto gpu = RecordedGpu::read(sheet.target);
      REQUIRE_MESSAGE(gpu.ok(), gpu.error().message);
      const GpuTraits& chosen = gpu->caps().gpu;
      const double ms = models_ms(*gpu, sheet, chosen);
      for (const GpuTraits& other : other_traits(chosen)) {
        const double other_ms = models_ms(*gpu, sheet, other);
        CAPTURE(sheet.chip);
        CAPTURE(traits_text(chosen));
        CAPTURE(traits_text(other));
        CHECK(ms < 1.1 * other_ms);
      }
    }
  }

  TEST_CASE("an unknown chip is an error with those that are known") {
    const auto made = estimate_model("navi99", ModelSource::directory("none"), {}, {});
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().message.find("navi99") != std::string::npos);
    CHECK(made.error().message.find("navi31") != std::string::npos);
    CHECK_FALSE(estimate_model("m1", ModelSource::directory("/none"), {}, {}).ok());
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("a device is estimated by its roofline") {
    VKF_TEST_DEVICE(device);
    const Roofline roofline{.fma_gflops = 100, .copy_gbytes = 10, .dispatch_us = 5};
    const cli::ModelShape& shape = *cli::find_model_shape("bert-base");
    const ModelSource source = cli::random_model(shape, cli::ShapeWeights::kZeros);
    const auto made =
        estimate_model(device_of(device), roofline, source, {}, {.batch = 1, .tokens = 128});
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK(made->device == device->caps().name);
    const EstimatedPass& pass = made->first;
    CHECK(pass.launch_ms == doctest::Approx(pass.dispatches * 5e-3));
    CHECK(pass.latency_ms == 0);
    CHECK(pass.ms >= pass.flops / 100e6);
    CHECK_FALSE(estimate_model(device_of(device), {}, source, {}, {}).ok());
  }
}
