#include "measure/tuning.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/message.h"
#include "device_files/tuning_file.h"
#include "measure/benchmark_inputs.h"
#include "measure/timed_plan.h"
#include "measure/wake.h"
#include "ops/matmul_table.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

// Numbers of rows that are timed, and up to how many rows what wins there holds.
struct RowClass {
  uint32_t timed, most;
};
constexpr RowClass kRowClasses[] = {{1, 1}, {4, 4}, {8, 8}, {16, 16}, {48, 64}, {160, kAnyRows}};

struct Shape {
  int64_t n, k;
};
constexpr Shape kQuickShapes[] = {{1024, 512}};
constexpr Shape kFullShapes[] = {{768, 768}, {3072, 768}, {768, 2048}};

constexpr int kLeastRounds = 3;
constexpr int kMostRounds = 200;
// Two orders of summation of 2048 products with factors of at most 1 and 1/sqrt(K) differ by less.
constexpr double kMostDifference = 1e-3;

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

// One candidate at the shapes of a class, ready to run.
struct Candidate {
  MatmulChoice choice;
  std::vector<TimedPlan> plans;  // by shape
  std::vector<double> ms;        // of every round, all shapes together
  bool agrees = true;
};

struct Timing {
  std::shared_ptr<VulkanDevice> device;
  std::span<const Shape> shapes;
  double ms_per_choice = 0;
};

Result<TimedPlan> plan_product(const Timing& timing, const Shape& shape, uint32_t m,
                               MatrixFormat format, const MatmulChoice& choice) {
  BenchmarkInputs inputs;
  const TensorId x = inputs.uniform("input", m, shape.k);
  const LinearWeight weight =
      inputs.linear("weight", shape.k, shape.n, format, BenchmarkInputs::Bias::kNo);
  VKF_ASSIGN(const TensorId y, add_linear(inputs.graph(), x, weight, {}));
  inputs.name_output(y, "output");
  DeviceCaps caps = timing.device->caps();
  caps.tuned_matmul = {};
  caps.tuned_matmul[format == MatrixFormat::kF16 ? 1 : 0] = {choice};
  VKF_ASSIGN(Plan plan, make_plan(inputs.graph(), caps, Precision::kF32));
  VKF_ASSIGN(TimedPlan timed,
             TimedPlan::create(timing.device, std::move(plan), RecordingInputs::Profile::kOn));
  VKF_CHECK(inputs.upload_to(timed));
  return timed;
}

// Whether its results are those of the usual kernel, but for the order of sums.
bool agree(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(double{a[i]} - double{b[i]}) <= kMostDifference)) return false;
  }
  return true;
}

Result<std::vector<float>> output_of(const TimedPlan& plan, uint64_t count) {
  const std::vector<uint32_t> outputs = plan.outputs();
  if (outputs.empty()) return internal_error("[tuning] A product has no output.");
  return plan.read_floats(outputs[0], count);
}

// The first run of every plan compiles its pipeline and shows its results.
Status warm_up(const Timing& timing, uint32_t m, std::vector<Candidate>& candidates) {
  for (Candidate& candidate : candidates) {
    for (size_t s = 0; s < timing.shapes.size(); ++s) {
      VKF_CHECK(candidate.plans[s].run());
      const auto count = m * static_cast<uint64_t>(timing.shapes[s].n);
      VKF_ASSIGN(const std::vector<float> usual, output_of(candidates[0].plans[s], count));
      VKF_ASSIGN(const std::vector<float> mine, output_of(candidate.plans[s], count));
      candidate.agrees = candidate.agrees && agree(usual, mine);
    }
  }
  return {};
}

// Rounds by turns, so that all meet the same weather, until the time is used up.
Status time_rounds(const Timing& timing, std::vector<Candidate>& candidates) {
  const double end = now_ms() + timing.ms_per_choice * static_cast<double>(candidates.size());
  for (int round = 0; round < kMostRounds && (round < kLeastRounds || now_ms() < end); ++round) {
    for (Candidate& candidate : candidates) {
      if (!candidate.agrees) continue;
      double sum = 0;
      for (const TimedPlan& plan : candidate.plans) {
        VKF_ASSIGN(const RunTime time, plan.run());
        sum += time.device;
      }
      candidate.ms.push_back(sum);
    }
  }
  return {};
}

double median_ms(std::vector<double> ms) {
  if (ms.empty()) return INFINITY;
  std::nth_element(ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2), ms.end());
  return ms[ms.size() / 2];
}

std::string shapes_text(const Timing& timing, uint32_t m, MatrixFormat format) {
  std::string text;
  for (const Shape& shape : timing.shapes) {
    text += (text.empty() ? "" : ", ") + std::to_string(m) + "x" + std::to_string(shape.n) + "x" +
            std::to_string(shape.k);
  }
  return text + (format == MatrixFormat::kF16 ? " f16" : " f32");
}

struct Won {
  TunedChoice report;
  MatmulChoice choice;
};

Result<Won> tune_class(const Timing& timing, const RowClass& rows, MatrixFormat format,
                       double least_gain) {
  std::vector<Candidate> candidates;
  for (MatmulChoice choice : matmul_candidates(timing.device->caps(), rows.timed)) {
    choice.max_rows = rows.most;
    Candidate candidate{choice, {}, {}, true};
    for (const Shape& shape : timing.shapes) {
      VKF_ASSIGN(TimedPlan plan, plan_product(timing, shape, rows.timed, format, choice));
      candidate.plans.push_back(std::move(plan));
    }
    candidates.push_back(std::move(candidate));
  }
  VKF_CHECK(warm_up(timing, rows.timed, candidates));
  VKF_CHECK(wake(timing.device));
  VKF_CHECK(time_rounds(timing, candidates));
  const double usual = median_ms(candidates[0].ms);
  const Candidate* best = &candidates[0];
  double best_ms = usual;
  std::vector<TunedCandidate> tried;
  for (const Candidate& candidate : candidates) {
    const double ms = median_ms(candidate.ms);
    tried.push_back(
        {choice_text(candidate.choice), candidate.agrees ? std::optional(ms) : std::nullopt});
    if (ms < best_ms && ms <= usual * (1 - least_gain)) {
      best = &candidate;
      best_ms = ms;
    }
  }
  return Won{{.shape = shapes_text(timing, rows.timed, format),
              .usual = choice_text(candidates[0].choice),
              .winner = choice_text(best->choice),
              .usual_ms = usual,
              .winner_ms = best_ms,
              .tried = static_cast<int>(candidates.size()),
              .candidates = std::move(tried)},
             best->choice};
}

Status check_options(const TuneOptions& o) {
  if (!(o.ms_per_choice >= 0 && o.ms_per_choice <= 60000)) {
    return invalid_argument(message({"[tuning] The option ms_per_choice is ", o.ms_per_choice,
                                     ", but must be from 0 to 60000 milliseconds."}));
  }
  if (o.least_gain >= 0 && o.least_gain < 1) return {};
  return invalid_argument(message({"[tuning] The option least_gain is ", o.least_gain,
                                   ", but must be a share from 0 to less than 1."}));
}

}  // namespace

Result<TuneReport> tune_matmul(const std::shared_ptr<VulkanDevice>& device, const TuneOptions& o) {
  if (!device) return invalid_argument("[tuning] The device is empty; make a Device first.");
  VKF_CHECK(check_options(o));
  const bool quick = o.effort == TuneOptions::Effort::kQuick;
  Timing timing{device, kFullShapes, 60};
  if (quick) timing = {device, kQuickShapes, 15};
  if (o.ms_per_choice > 0) timing.ms_per_choice = o.ms_per_choice;
  TuneReport report;
  MatmulTuning tuning;
  for (const MatrixFormat format : {MatrixFormat::kF32, MatrixFormat::kF16}) {
    for (const RowClass& rows : kRowClasses) {
      VKF_ASSIGN(Won won, tune_class(timing, rows, format, o.least_gain));
      tuning[format == MatrixFormat::kF16 ? 1 : 0].push_back(won.choice);
      report.choices.push_back(std::move(won.report));
    }
  }
  const VulkanDevice::Impl& impl = device->impl();
  if (impl.tuning_file.empty()) return report;
  VKF_CHECK(write_tuning(impl.tuning_file, {impl.cache_key, device->caps().tier}, tuning));
  report.file = impl.tuning_file;
  return report;
}

}  // namespace vkformer
