#include "operators/graph_runner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/message.h"
#include "ops/op.h"
#include "recording/arithmetic_proof.h"
#include "recording/dot_proof.h"
#include "recording/recorded_graph.h"

namespace vkformer {
namespace {

constexpr uint32_t kPoisonWord = 0x7fc0dead;  // a quiet NaN
constexpr uint32_t kGuardWord = 0x6a5dca4e;
constexpr uint64_t kGuardBytes = 1024;  // before and after every tensor; a multiple of 256

// A graph on its way: its plan, and memory for what the recording does not hold itself.
struct Run {
  VulkanDevice& device;
  const Graph& graph;
  const TensorMap& inputs;
  const GraphRunOptions& options;
  Plan plan;
  std::vector<uint64_t> bytes;                   // of every plan buffer, without guards
  std::vector<std::shared_ptr<Buffer>> buffers;  // by plan buffer; null for those in the arena
  std::vector<uint8_t> written;                  // by plan buffer: by some dispatch
  PassMemory memory;

  bool guarded() const { return options.guards == GraphRunOptions::Guards::kOn; }
  uint64_t guard() const { return guarded() ? kGuardBytes : 0; }
  const Tensor* input(size_t index) const {
    if (index >= graph.tensors().size()) return nullptr;
    const auto found = inputs.find(graph.tensors()[index].name);
    return found == inputs.end() ? nullptr : &found->second;
  }
};

Status upload_input(Run& run, size_t index) {
  const TensorDesc& desc = run.graph.tensors()[index];
  const Tensor& tensor = *run.input(index);
  if (tensor.dtype != desc.dtype || tensor.shape != desc.shape) {
    return invalid_argument(
        message({"[", desc.name, "] is ", dtype_name(tensor.dtype), " ", shape_text(tensor.shape),
                 ", but the graph expects ", dtype_name(desc.dtype), " ", shape_text(desc.shape)}));
  }
  std::vector<std::byte> padded = tensor.bytes;
  padded.resize(std::max<size_t>(4, (padded.size() + 3) / 4 * 4));
  return run.device.upload(*run.buffers[index], run.guard(), padded);
}

// A tensor's binding goes on into the guard after it, so that what a shader writes too far lands
// there. Uniform blocks, which nothing writes, end where they end.
uint64_t bound_guard(const Run& run, size_t index) {
  const uint64_t most = run.device.caps().limits.max_storage_range;
  const bool fits = run.written[index] != 0 && run.bytes[index] + kGuardBytes <= most;
  return run.guarded() && fits ? kGuardBytes : 0;
}

// Memory of every tensor that is bound, between guards where those are asked for.
Status place_all(Run& run) {
  run.buffers.resize(run.plan.buffers.size());
  run.written.resize(run.plan.buffers.size());
  for (const Dispatch& d : run.plan.dispatches) {
    for (const BoundBuffer& b : d.bindings) {
      if (b.access != Access::kRead) run.written[b.buffer] = 1;
    }
  }
  std::map<std::string, TensorPlace> places;
  for (size_t i = 0; i < run.plan.buffers.size(); ++i) {
    PlanBuffer& planned = run.plan.buffers[i];
    run.bytes.push_back(planned.bytes);
    if (planned.source == BufferSource::kConstant) {
      return invalid_argument(
          message({"[", planned.name, "] is a constant; run_graph takes none"}));
    }
    if (run.guarded() && planned.source == BufferSource::kArena) {
      planned.source = BufferSource::kExternal;
      planned.name += " " + std::to_string(i);  // tensors of the arena may share a name
    }
    if (planned.source != BufferSource::kExternal) continue;
    const uint64_t all = (planned.bytes + 3) / 4 * 4 + 2 * run.guard();
    VKF_ASSIGN(Buffer made, run.device.make_buffer(all, MemoryUse::kDevice, planned.name));
    run.buffers[i] = std::make_shared<Buffer>(std::move(made));
    if (run.guarded()) VKF_CHECK(run.device.fill(*run.buffers[i], 0, all, kGuardWord));
    if (run.input(i) != nullptr) VKF_CHECK(upload_input(run, i));
    planned.bytes += bound_guard(run, i);
    places[planned.name] = {run.buffers[i], i, run.guard(), planned.bytes};
  }
  run.memory.place(places);
  return {};
}

constexpr const char* kArguments = "indirect arguments";

// Group counts of what a decoding step dispatches indirectly.
Status write_arguments(Run& run) {
  if (!run.memory.has(kArguments)) return {};
  const uint32_t live = std::min(run.options.live_slots, run.plan.row_capacity);
  std::vector<uint32_t> groups;
  for (const Dispatch& d : run.plan.dispatches) {
    if (d.live_axis < 0) continue;
    std::array<uint32_t, 3> counts = d.groups;
    counts[static_cast<size_t>(d.live_axis)] = (live + d.slots_per_group - 1) / d.slots_per_group;
    groups.insert(groups.end(), counts.begin(), counts.end());
  }
  return run.memory.write(kArguments, 0, groups);
}

// Before every run: what the last one wrote is as it was.
Status prepare(Run& run, const Recording& recording) {
  const bool poison = run.options.poison == GraphRunOptions::Poison::kOn;
  for (size_t i = 0; i < run.buffers.size(); ++i) {
    if (run.buffers[i] == nullptr) continue;
    if (run.input(i) != nullptr) {
      if (run.written[i] != 0) VKF_CHECK(upload_input(run, i));
    } else if (poison) {
      const uint64_t bytes = (run.bytes[i] + 3) / 4 * 4;
      VKF_CHECK(run.device.fill(*run.buffers[i], run.guard(), bytes, kPoisonWord));
    }
  }
  return poison ? recording.fill_arena(kPoisonWord) : Status{};
}

Status check_guard(Run& run, size_t index, uint64_t offset) {
  std::array<uint32_t, kGuardBytes / 4> words{};
  VKF_CHECK(
      run.device.download(*run.buffers[index], offset, std::as_writable_bytes(std::span(words))));
  const auto bad =
      std::find_if(words.begin(), words.end(), [](uint32_t word) { return word != kGuardWord; });
  if (bad == words.end()) return {};
  const int64_t at =
      static_cast<int64_t>(offset) + 4 * (bad - words.begin()) - static_cast<int64_t>(kGuardBytes);
  return Error{ErrorCode::kDriver,
               "[" + run.plan.buffers[index].name + "] has " + std::to_string(run.bytes[index]) +
                   " bytes, but something was written at byte " + std::to_string(at) +
                   ", outside of it; a kernel that wrote it is wrong on this driver"};
}

Status check_guards(Run& run) {
  for (size_t i = 0; i < run.buffers.size() && run.guarded(); ++i) {
    if (run.written[i] == 0) continue;
    VKF_CHECK(check_guard(run, i, 0));
    VKF_CHECK(check_guard(run, i, kGuardBytes + (run.bytes[i] + 3) / 4 * 4));
  }
  return {};
}

Result<TensorMap> read_outputs(Run& run) {
  TensorMap outputs;
  for (size_t i = 0; i < run.graph.tensors().size(); ++i) {
    const TensorDesc& desc = run.graph.tensors()[i];
    if (desc.kind != TensorKind::kExternal) continue;
    if (run.input(i) != nullptr && run.written[i] == 0) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    VKF_CHECK(run.device.download(*run.buffers[i], run.guard(), tensor.bytes));
    outputs.emplace(desc.name, std::move(tensor));
  }
  return outputs;
}

Status compare_runs(const TensorMap& first, const TensorMap& again, int run) {
  for (const auto& [name, tensor] : first) {
    const Tensor& other = again.at(name);
    const auto differs =
        std::mismatch(tensor.bytes.begin(), tensor.bytes.end(), other.bytes.begin());
    if (differs.first == tensor.bytes.end()) continue;
    const auto byte = static_cast<size_t>(differs.first - tensor.bytes.begin());
    return Error{
        ErrorCode::kDriver,
        "[" + name + "] differs in run " + std::to_string(run) + " at element " +
            std::to_string(byte / dtype_size(tensor.dtype)) +
            " although inputs and commands are the same; this driver is not deterministic"};
  }
  return {};
}

Result<double> run_once(PassMemory& memory, const RecordedGraph& graph) {
  const auto begin = std::chrono::steady_clock::now();
  const RecordingRange all[] = {graph.all()};
  VKF_CHECK(memory.submit(all, {}));
  VKF_CHECK(memory.wait());
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  VKF_ASSIGN(std::vector<double> times, graph.recording().dispatch_times());
  if (times.empty()) return wall.count();
  double sum = 0;
  for (double t : times) sum += t;
  return sum * 1e-6;
}

}  // namespace

Result<GraphRunReport> run_graph(const std::shared_ptr<VulkanDevice>& device, const Graph& graph,
                                 const TensorMap& inputs, const GraphRunOptions& options) {
  // First: what it finds decides on kernels.
  const bool runs = options.until == GraphRunOptions::Until::kRun;
  if (runs && options.precision == Precision::kInt8) VKF_CHECK(prove_dots(device));
  VKF_ASSIGN(Plan plan,
             make_plan(graph, options.caps ? *options.caps : device->caps(), options.precision));
  GraphRunReport report{.scratch_bytes = plan.arena_bytes,
                        .dispatches = static_cast<int>(plan.dispatches.size()),
                        .flops = plan.flops(),
                        .bytes = plan.bytes()};
  for (const Dispatch& d : plan.dispatches) report.kernels.push_back(d.kernel);
  if (options.until == GraphRunOptions::Until::kPlan) {
    report.plan = plan.dump();
    for (const Dispatch& d : plan.dispatches) {
      report.plan += "constants";
      for (const uint32_t value : d.spec) report.plan += " " + std::to_string(value);
      report.plan += "\n";
    }
    return report;
  }
  if (options.precision == Precision::kReproducible) VKF_CHECK(prove_arithmetic(device));
  Run run{*device, graph, inputs, options, std::move(plan), {}, {}, {}, PassMemory(device)};
  VKF_CHECK(place_all(run));
  RecordedGraphOptions recorded{.host = {.writes = {kArguments}, .reads = {}},
                                .indirect_args = kArguments};
  if (options.repeats > 1) recorded.profile = RecordingInputs::Profile::kOn;
  VKF_ASSIGN(const RecordedGraph on_device,
             RecordedGraph::from_plan(run.memory, run.plan, recorded));
  VKF_CHECK(write_arguments(run));
  std::vector<double> times;
  for (int i = 0; i < std::max(1, options.repeats); ++i) {
    VKF_CHECK(prepare(run, on_device.recording()));
    VKF_ASSIGN(double time, run_once(run.memory, on_device));
    times.push_back(time);
    VKF_ASSIGN(TensorMap outputs, read_outputs(run));
    if (i > 0) VKF_CHECK(compare_runs(report.outputs, outputs, i));
    report.outputs = std::move(outputs);
  }
  VKF_CHECK(check_guards(run));
  std::sort(times.begin(), times.end());
  report.milliseconds = times[times.size() / 2];
  return report;
}

}  // namespace vkformer
