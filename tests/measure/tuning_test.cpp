// The tuner on a device: the file it writes, and what a device makes of one.
#include "measure/tuning.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "device_files/tuning_file.h"
#include "measure/benchmarks.h"
#include "ops/matmul_table.h"
#include "support/test_device.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

// Devices with a cache directory of this test's own, removed at the end.
struct Bench {
  fs::path folder;
  std::vector<std::string> said;

  explicit Bench(const char* name) : folder(fs::temp_directory_path() / name) {
    fs::remove_all(folder);
  }
  ~Bench() {
    std::error_code error;
    fs::remove_all(folder, error);
  }
  std::shared_ptr<VulkanDevice> device(bool tuning) {
    DeviceOptions options = test_device_options();
    options.cache_directory = folder.string();
    options.tuning = tuning;
    options.log = [this](LogLevel, const std::string& message) { said.push_back(message); };
    auto made = VulkanDevice::create_tweaked(options, test_device_tweaks());
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    return *made;
  }
  bool was_said(const std::string& part) const {
    for (const std::string& message : said) {
      if (message.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

GemmBenchmark few_rows() {
  GemmBenchmark gemm;
  gemm.m = 2;
  gemm.n = 70;
  gemm.k = 45;
  gemm.repeats = 1;
  return gemm;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a planted tuning changes the choice, and results stay the same but for rounding") {
    if (!test_device()) return;
    Bench bench("vkformer_tuning_planted");
    const auto plain = bench.device(false);
    const auto usual = run_gemm(plain, few_rows());
    REQUIRE(usual.ok());
    // Tiles that no table asks for at two rows.
    MatmulChoice planted = matmul_candidates(plain->caps(), 48).back();
    planted.max_rows = kAnyRows;
    const VulkanDevice::Impl& impl = plain->impl();
    const MatmulTuning tuning{{{planted}, {}}};
    REQUIRE(write_tuning(impl.tuning_file, {impl.cache_key, plain->caps().tier}, tuning).ok());

    CHECK(bench.device(false)->caps().tuned_matmul == MatmulTuning{});
    const auto tuned = bench.device(true);
    CHECK(tuned->caps().tuned_matmul == tuning);
    const auto run = run_gemm(tuned, few_rows());
    REQUIRE(run.ok());
    CHECK(run->time.kernel != usual->time.kernel);
    REQUIRE(run->y.size() == usual->y.size());
    double worst = 0;
    for (size_t i = 0; i < run->y.size(); ++i) {
      worst = std::max(worst, std::fabs(double{run->y[i]} - double{usual->y[i]}));
    }
    CHECK(worst < 1e-5);
  }

  TEST_CASE("a damaged tuning is ignored with a message") {
    if (!test_device()) return;
    Bench bench("vkformer_tuning_damaged");
    const auto plain = bench.device(false);
    const std::string path = plain->impl().tuning_file;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << "vkformer tuning 1 of 0.1.0\nkey 1 2 3";
    const auto device = bench.device(true);
    CHECK(device->caps().tuned_matmul == MatmulTuning{});
    CHECK(bench.was_said("is damaged"));
    CHECK(bench.was_said(path));
    CHECK(run_gemm(device, few_rows()).ok());
  }

  TEST_CASE("the tuner writes a file that a device reads") {
    if (!test_device()) return;
    Bench bench("vkformer_tuning_written");
    const auto device = bench.device(false);
    TuneOptions options;
    options.effort = TuneOptions::Effort::kQuick;
    options.ms_per_choice = 0.01;
    const auto report = tune_matmul(device, options);
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    CHECK(report->file == device->impl().tuning_file);
    REQUIRE(report->choices.size() == 12);
    for (const TunedChoice& choice : report->choices) {
      CHECK(choice.tried >= 2);
      REQUIRE(choice.candidates.size() == static_cast<size_t>(choice.tried));
      CHECK(choice.candidates[0].choice == choice.usual);
      CHECK(choice.candidates[0].ms == choice.usual_ms);
      bool has_winner = false;
      for (const TunedCandidate& one : choice.candidates) {
        CHECK(one.ms.value_or(0) > 0);
        has_winner |= one.choice == choice.winner && one.ms == choice.winner_ms;
      }
      CHECK(has_winner);
      CHECK(choice.usual_ms > 0);
      CHECK(choice.winner_ms <= choice.usual_ms);
      CHECK((choice.winner == choice.usual) == (choice.winner_ms == choice.usual_ms));
    }
    const auto tuned = bench.device(true);
    CHECK(tuned->caps().tuned_matmul[0].size() == 6);
    CHECK(tuned->caps().tuned_matmul[1].size() == 6);
    CHECK_FALSE(bench.was_said("[tuning]"));
  }

  TEST_CASE("the tuner refuses impossible options") {
    if (!test_device()) return;
    const auto message = [](const TuneOptions& options) {
      const auto report = tune_matmul(vulkan_of(*test_device()), options);
      return report.ok() ? std::string() : report.error().message;
    };
    TuneOptions options;
    options.ms_per_choice = -1;
    CHECK(message(options).find("ms_per_choice is -1") != std::string::npos);
    options = {};
    options.least_gain = 1;
    CHECK(message(options).find("least_gain is 1") != std::string::npos);
    CHECK_FALSE(tune_matmul(nullptr, {}).ok());
  }
}

}  // namespace vkformer
