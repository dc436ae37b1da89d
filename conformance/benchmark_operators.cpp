#include "conformance/benchmark_operators.h"

#include <algorithm>

#include "base/check.h"
#include "conformance/kernels.h"
#include "measure/benchmark_inputs.h"
#include "measure/conformance_support.h"
#include "measure/timed_plan.h"

namespace vkformer {
namespace {

constexpr double kWarmUpMs = 30;
constexpr int kMostWarmUps = 20;
constexpr int kMostRounds = 10000;

// One row, ready to run again and again.
class TimedRow {
 public:
  static Result<TimedRow> create(const std::shared_ptr<VulkanDevice>& device,
                                 const OperatorRow& row) {
    VKF_ASSIGN(OperatorGraph made, make_operator_graph(row));
    VKF_ASSIGN(Plan plan, plan_on(Device(device), made.graph));
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
    return TimedRow(row, std::move(timed), std::move(made.contents));
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
    time.reason = roofline_reason(row_.op);
    return time;
  }

 private:
  TimedRow(const OperatorRow& row, TimedPlan plan, std::vector<TensorContent> restored)
      : row_(row), plan_(std::move(plan)), restored_(std::move(restored)) {}

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
  for (const OperatorRow& row : operator_rows()) {
    if (op != row.op) continue;
    auto timed = TimedRow::create(device, row);
    if (!timed) return timed.error().with_context(op + ", " + row.model);
    rows.push_back(std::move(*timed));
  }
  if (rows.empty()) {
    return invalid_argument("[operators] '" + op +
                            "' is no operator with a row in the table; see benchmark_operators().");
  }
  for (TimedRow& row : rows) VKF_CHECK(row.warm_up());
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

std::string roofline_reason(const std::string& op) {
  struct Reason {
    const char* op;
    const char* why;
  };
  constexpr const char* kSmall = "a small copy: the dispatch itself is the cost";
  constexpr const char* kExponential = "an exponential or erf for each element";
  constexpr const char* kPasses = "three passes over a row: mean, variance, result";
  constexpr const char* kSingles = "single elements, which drivers on a CPU load lane by lane";
  constexpr const char* kDown = "sums down the sequence, whose elements lie a row apart";
  constexpr Reason kReasons[] = {
      {"activation", kExponential},
      {"additive_attention", "a tanh for every query, key and column"},
      {"argmax", kSingles},
      {"attention", "an exponential for every pair, between two products"},
      {"attention_weights", "three passes over every row of weights, one with an exponential"},
      {"beam_select", "sequential choices among a few dozen candidates; one workgroup an item"},
      {"chunk_attention", "an exponential for every pair; every query loads its keys for itself"},
      {"combine", kSingles},
      {"conv", "a weight is used for four outputs, and each of them loads its element"},
      {"embedding", kSingles},
      {"gated_activation", kExponential},
      {"gather_rows", kSingles},
      {"greedy_select", "one invocation a row writes a few words"},
      {"group_norm", kPasses},
      {"inverse_start", "a maximum over all matrices before anything can be written"},
      {"kv_append", kSmall},
      {"layer_norm", kPasses},
      {"linear_attention", "features, sums of chunks and their scan pass through memory"},
      {"log_softmax", "three passes over a row, one with an exponential"},
      {"lsh_hash", "a few dozen columns for each token, then the largest of them"},
      {"lsh_sort", "radix passes that wait for each other"},
      {"matmul", "drivers on a CPU make every load with a computed address lane by lane"},
      {"mean_pool", kDown},
      {"mix_rounds", "an exponential for each round of every element"},
      {"move_columns", kSmall},
      {"picture_values",
       "a filter along lines, then one along columns: several pixels for each of its own"},
      {"recurrence", "every token waits for the one before"},
      {"recurrent_cell", kSmall},
      {"rms_norm", "two passes over a row"},
      {"rotary", kSingles},
      {"rotary_append", kSmall},
      {"row_entropy", "a logarithm for each element"},
      {"segment_means", kDown},
      {"sequence_projection", "values are loaded again for every few rows of the projection"},
      {"softmax", kExponential},
      {"step_advance", "one workgroup packs the live rows and writes the next step's sizes"},
      {"token_candidates", "three passes over a row: the largest, the sum, the best"},
      {"token_sample", "a dozen passes over the row, which find thresholds digit by digit"},
      {"token_scores", "a pass to clear marks, one to set them by history, one to use them"},
      {"top_k", "the best of a row are kept in order while it is read"},
      {"unfold", "single elements, each found by its place in the picture"},
  };
  for (const Reason& reason : kReasons) {
    if (op == reason.op) return reason.why;
  }
  return {};
}

std::vector<std::string> benchmark_operators() {
  std::vector<std::string> names;
  for (const OperatorRow& row : operator_rows()) {
    if (names.empty() || names.back() != row.op) names.emplace_back(row.op);
  }
  return names;
}

Result<std::vector<OperatorTime>> benchmark_operator(const Device& device, const std::string& op,
                                                     int rounds) {
  return run_operator_rows(device.impl(), op, rounds);
}

}  // namespace vkformer
