#include "conformance/benchmark_operators.h"

#include <algorithm>

#include "base/check.h"
#include "base/handle_access.h"
#include "conformance/cases.h"
#include "conformance/kernels.h"
#include "measure/benchmark_inputs.h"
#include "measure/conformance_support.h"
#include "measure/timed_plan.h"
#include "measure/wake.h"

namespace vkformer {
namespace {

constexpr double kWarmUpMs = 30;
constexpr int kMostWarmUps = 20;
constexpr int kMostRounds = 10000;

// One row, ready to run again and again.
class TimedRow {
 public:
  static Result<TimedRow> create(const std::shared_ptr<VulkanDevice>& device,
                                 const OperatorRow& row, const char* limit) {
    VKF_ASSIGN(OperatorGraph made, make_operator_graph(row));
    VKF_ASSIGN(Plan plan, plan_on(HandleAccess::make<Device>(device), made.graph));
    settle(plan, made.graph);
    VKF_ASSIGN(TimedPlan timed,
               TimedPlan::create(device, std::move(plan), RecordingInputs::Profile::kOn));
    for (const TensorContent& content : made.contents) {
      VKF_CHECK(upload(timed, content));
    }
    // What the operator overwrites is written again before every run, so that all are alike.
    const std::vector<uint32_t> outputs = timed.outputs();
    std::erase_if(made.contents, [&](const TensorContent& content) {
      return std::find(outputs.begin(), outputs.end(), content.tensor) == outputs.end();
    });
    return TimedRow(row, limit, std::move(timed), std::move(made.contents));
  }

  Status warm_up() {
    double spent = 0;
    for (int i = 0; i < kMostWarmUps && spent < kWarmUpMs; ++i) {
      VKF_ASSIGN(const RunTime time, run_once());
      spent += time.wall;
    }
    return {};
  }
  Status measure() {
    VKF_ASSIGN(const RunTime time, run_once());
    times_.push_back(time);
    return {};
  }
  Result<OperatorTime> finish() const {
    OperatorTime time;
    time.op = row_.op;
    time.model = row_.model;
    time.shapes = row_.inputs;
    const Plan& plan = plan_.plan();
    for (const Dispatch& d : plan.dispatches) {
      const std::string name = conformance::name_of(d.kernel);
      if (time.kernels.find(name) != std::string::npos) continue;
      time.kernels += (time.kernels.empty() ? "" : " ") + name;
    }
    time.dispatches = static_cast<int>(plan.dispatches.size());
    time.ms_median = median_time(times_, &RunTime::device);
    time.ms_min = least_time(times_, &RunTime::device);
    time.flops = plan.flops();
    time.bytes = plan.bytes();
    VKF_ASSIGN(time.hash, plan_.hash_outputs());
    time.reason = limit_;
    return time;
  }

 private:
  TimedRow(const OperatorRow& row, const char* limit, TimedPlan plan,
           std::vector<TensorContent> restored)
      : row_(row), limit_(limit), plan_(std::move(plan)), restored_(std::move(restored)) {}

  // Tensors that belonged to other nodes need no memory; a step's slots are all live, so its group
  // counts are known.
  static void settle(Plan& plan, const Graph& graph) {
    for (Dispatch& d : plan.dispatches) {
      if (d.live_axis < 0) continue;
      d.groups[static_cast<size_t>(d.live_axis)] =
          (graph.row_capacity() + d.slots_per_group - 1) / d.slots_per_group;
      d.live_axis = -1;
    }
    std::vector<bool> used(plan.buffers.size(), false);
    for (const Dispatch& d : plan.dispatches) {
      for (const BoundBuffer& b : d.bindings) used[b.buffer] = true;
    }
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && plan.buffers[i].source == BufferSource::kArena) plan.buffers[i].bytes = 0;
    }
  }

  static Status upload(TimedPlan& plan, const TensorContent& content) {
    std::vector<std::byte> padded = content.bytes;
    padded.resize((padded.size() + 3) / 4 * 4);
    if (padded.empty()) return {};
    return plan.upload(content.tensor, padded);
  }

  Result<RunTime> run_once() {
    for (const TensorContent& content : restored_) VKF_CHECK(upload(plan_, content));
    return plan_.run();
  }

  OperatorRow row_;
  const char* limit_;
  TimedPlan plan_;
  std::vector<TensorContent> restored_;
  std::vector<RunTime> times_;
};

}  // namespace

Result<std::vector<OperatorTime>> run_operator_rows(const std::shared_ptr<VulkanDevice>& device,
                                                    const std::string& op, int rounds) {
  if (!device) return invalid_argument("[operators] The device is empty; make a Device first.");
  VKF_CHECK(check_benchmark_size("operators", "rounds", rounds, kMostRounds));
  std::vector<TimedRow> rows;
  for (const conformance::OperatorCases& cases : conformance::all_cases()) {
    if (op != cases.op()) continue;
    for (const OperatorRow& row : cases.rows()) {
      auto timed = TimedRow::create(device, row, cases.limit());
      if (!timed) return timed.error().with_context(op + ", " + row.model);
      rows.push_back(std::move(*timed));
    }
  }
  if (rows.empty()) {
    return invalid_argument("[operators] '" + op +
                            "' is no operator with a row in the table; see benchmark_operators().");
  }
  for (TimedRow& row : rows) VKF_CHECK(row.warm_up());
  VKF_CHECK(wake(device));
  for (int round = 0; round < rounds; ++round) {
    for (TimedRow& row : rows) VKF_CHECK(row.measure());
  }
  std::vector<OperatorTime> times;
  for (const TimedRow& row : rows) {
    VKF_ASSIGN(OperatorTime time, row.finish());
    times.push_back(std::move(time));
  }
  return times;
}

std::vector<std::string> benchmark_operators() {
  std::vector<std::string> names;
  for (const conformance::OperatorCases& cases : conformance::all_cases()) {
    if (!cases.rows().empty()) names.emplace_back(cases.op());
  }
  return names;
}

Result<std::vector<OperatorTime>> benchmark_operator(const Device& device, const std::string& op,
                                                     int rounds) {
  return run_operator_rows(HandleAccess::impl(device), op, rounds);
}

}  // namespace vkformer
