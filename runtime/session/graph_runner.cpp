#include "session/graph_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ops/op.h"
#include "vulkan/recording.h"

namespace vkformer {
namespace {

constexpr uint32_t kPoisonWord = 0x7fc0dead;  // a quiet NaN

// The buffers of one run: externals by plan buffer index.
struct Bound {
  std::vector<Buffer> buffers;  // by tensor id; empty for others
  std::vector<BufferSpan> memory;
};

Status bind_input(VulkanDevice& device, const TensorDesc& desc, const Tensor& tensor,
                  Buffer& buffer) {
  if (tensor.dtype != desc.dtype || tensor.shape != desc.shape) {
    return invalid_argument("[" + desc.name + "] is " + dtype_name(tensor.dtype) + " " +
                            shape_text(tensor.shape) + ", but the graph expects " +
                            dtype_name(desc.dtype) + " " + shape_text(desc.shape));
  }
  std::vector<std::byte> padded = tensor.bytes;
  padded.resize(std::max<size_t>(4, (padded.size() + 3) / 4 * 4));
  return device.upload(buffer, 0, padded);
}

Result<Bound> bind_all(VulkanDevice& device, const Graph& graph, const Plan& plan,
                       const TensorMap& inputs) {
  Bound bound;
  bound.buffers.resize(plan.buffers.size());
  bound.memory.resize(plan.buffers.size());
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorDesc& desc = graph.tensors()[i];
    if (desc.kind == TensorKind::kConstant) {
      return invalid_argument("[" + desc.name + "] is a constant; run_graph takes none");
    }
    if (desc.kind != TensorKind::kExternal) continue;
    VKF_ASSIGN(bound.buffers[i],
               device.make_buffer(plan.buffers[i].bytes, MemoryUse::kDevice, desc.name));
    const auto input = inputs.find(desc.name);
    if (input != inputs.end()) {
      VKF_CHECK(bind_input(device, desc, input->second, bound.buffers[i]));
    }
    bound.memory[i] = {&bound.buffers[i], 0, plan.buffers[i].bytes};
  }
  return bound;
}

Status poison(VulkanDevice& device, const Graph& graph, const Plan& plan, const TensorMap& inputs,
              Bound& bound, const Recording& recording) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].source == BufferSource::kArena) continue;
    if (inputs.count(graph.tensors()[i].name) != 0) continue;
    VKF_CHECK(device.fill(bound.buffers[i], 0, plan.buffers[i].bytes, kPoisonWord));
  }
  return recording.fill_arena(kPoisonWord);
}

Result<TensorMap> read_outputs(VulkanDevice& device, const Graph& graph, const TensorMap& inputs,
                               const Bound& bound) {
  TensorMap outputs;
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorDesc& desc = graph.tensors()[i];
    if (desc.kind != TensorKind::kExternal || inputs.count(desc.name) != 0) continue;
    Tensor tensor = Tensor::zeros(desc.dtype, desc.shape);
    VKF_CHECK(device.download(bound.buffers[i], 0, tensor.bytes));
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

Result<double> run_once(VulkanDevice& device, const Recording& recording) {
  const auto begin = std::chrono::steady_clock::now();
  const Recording* list[] = {&recording};
  VKF_ASSIGN(uint64_t value, device.submit(list));
  VKF_CHECK(device.wait(value));
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  VKF_ASSIGN(std::vector<double> times, recording.dispatch_times());
  if (times.empty()) return wall.count();
  double sum = 0;
  for (double t : times) sum += t;
  return sum * 1e-6;
}

}  // namespace

Result<GraphRunReport> run_graph(const std::shared_ptr<VulkanDevice>& device, const Graph& graph,
                                 const TensorMap& inputs, const GraphRunOptions& options) {
  VKF_ASSIGN(Plan plan, make_plan(graph, device->caps(), options.precision));
  VKF_ASSIGN(Bound bound, bind_all(*device, graph, plan, inputs));
  RecordingInputs recording_inputs{.memory = bound.memory};
  if (options.repeats > 1) recording_inputs.profile = RecordingInputs::Profile::kOn;
  VKF_ASSIGN(Recording recording, Recording::create(device, plan, recording_inputs));
  GraphRunReport report{.scratch_bytes = plan.arena_bytes,
                        .dispatches = static_cast<int>(plan.dispatches.size()),
                        .flops = plan.flops(),
                        .bytes = plan.bytes()};
  std::vector<double> times;
  for (int run = 0; run < std::max(1, options.repeats); ++run) {
    if (options.poison == GraphRunOptions::Poison::kOn) {
      VKF_CHECK(poison(*device, graph, plan, inputs, bound, recording));
    }
    VKF_ASSIGN(double time, run_once(*device, recording));
    times.push_back(time);
    VKF_ASSIGN(TensorMap outputs, read_outputs(*device, graph, inputs, bound));
    if (run > 0) VKF_CHECK(compare_runs(report.outputs, outputs, run));
    report.outputs = std::move(outputs);
  }
  std::sort(times.begin(), times.end());
  report.milliseconds = times[times.size() / 2];
  return report;
}

}  // namespace vkformer
