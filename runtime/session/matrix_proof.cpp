#include "session/matrix_proof.h"

#include <algorithm>
#include <cstring>

#include "ops/matmul.h"
#include "ops/matmul_table.h"
#include "session/graph_runner.h"
#include "vulkan/device_impl.h"
#include "weights/pack_matrix.h"

namespace vkformer {
namespace {

// One product x (M, K) W (K, N) + bias of integers, exact in f16 but for one element, with sums
// that are exact in f32. No size is a multiple of a unit's or a block's.
struct Proof {
  int64_t m, n, k;

  float x(int64_t row, int64_t step) const {
    if (row == m - 1 && step == k - 2) return 70000.0f;  // beyond f16
    return static_cast<float>((row * 5 + step * 3) % 9 - 4);
  }
  float w(int64_t step, int64_t column) const {
    return static_cast<float>((step * 7 + column * 11) % 13 - 6);
  }
  float bias(int64_t column) const { return static_cast<float>(column % 5 - 2); }

  float y(int64_t row, int64_t column) const {
    float sum = bias(column);
    for (int64_t step = 0; step < k; ++step) sum += x(row, step) * w(step, column);
    return sum;
  }
};

Result<GraphRunReport> run(const Proof& proof, const std::shared_ptr<VulkanDevice>& device,
                           const DeviceCaps& caps) {
  Tensor x = Tensor::zeros(DType::kF32, {proof.m, proof.k});
  std::vector<float> weights, bias;
  for (int64_t i = 0; i < proof.m * proof.k; ++i) {
    const float value = proof.x(i / proof.k, i % proof.k);
    std::memcpy(x.bytes.data() + 4 * i, &value, 4);
  }
  for (int64_t i = 0; i < proof.k * proof.n; ++i) {
    weights.push_back(proof.w(i / proof.n, i % proof.n));
  }
  for (int64_t i = 0; i < proof.n; ++i) bias.push_back(proof.bias(i));
  VKF_ASSIGN(
      const PackedMatrix packed,
      pack_matrix(weights, {proof.n, proof.k, MatrixOrder::kInOut}, bias, MatrixFormat::kF16));
  Tensor words = Tensor::zeros(DType::kU32, {static_cast<int64_t>(packed.words.size())});
  std::memcpy(words.bytes.data(), packed.words.data(), words.bytes.size());

  Graph graph;
  const auto external = [&](const char* name, DType dtype, const Shape& shape) {
    return graph.add_tensor({name, dtype, shape, TensorKind::kExternal});
  };
  const TensorId x_id = external("x", DType::kF32, x.shape);
  const LinearWeight weight{.tensor = external("weight", DType::kU32, words.shape),
                            .n = static_cast<uint32_t>(proof.n),
                            .k = static_cast<uint32_t>(proof.k),
                            .bias_offset = packed.bias_offset,
                            .format = MatrixFormat::kF16};
  const TensorId y = external("y", DType::kF32, {proof.m, proof.n});
  VKF_CHECK(add_linear_into(graph, x_id, weight, {}, y));
  GraphRunOptions options;
  options.precision = Precision::kF16;
  options.poison = GraphRunOptions::Poison::kOn;
  options.repeats = 2;
  options.caps = caps;
  return run_graph(device, graph, {{"x", std::move(x)}, {"weight", std::move(words)}}, options);
}

// What is wrong with a choice; empty where nothing is.
std::string fault_of(const std::shared_ptr<VulkanDevice>& device, DeviceCaps caps,
                     const MatmulChoice& choice) {
  const Proof proof{choice.rows + 3, choice.rows + 5, 77};
  MatmulChoice forced = choice;
  forced.max_rows = kAnyRows;
  caps.tuned_matmul = {std::vector{forced}, std::vector{forced}};
  const auto ran = run(proof, device, caps);
  if (!ran) return ran.error().message;
  const auto y = ran->outputs.at("y").to_floats();
  if (!y) return y.error().message;
  for (int64_t i = 0; i < proof.m * proof.n; ++i) {
    const float expected = proof.y(i / proof.n, i % proof.n);
    const float got = (*y)[static_cast<size_t>(i)];
    if (got == expected) continue;
    return "by " + choice_text(choice) + " the element (" + std::to_string(i / proof.n) + ", " +
           std::to_string(i % proof.n) + ") of a product of integers is " + std::to_string(got) +
           " in place of " + std::to_string(expected);
  }
  return {};
}

}  // namespace

void prove_matrix_units(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps) {
  constexpr KernelId kKernel = KernelId::matmul_units__f32_any_f32_matrix;
  VulkanDevice::Impl& impl = device->impl();
  std::vector<KernelId>& demoted = impl.context.caps.demoted;
  if (std::find(demoted.begin(), demoted.end(), kKernel) != demoted.end()) return;
  std::vector<MatmulChoice> choices = matmul_table(caps, Precision::kF16);
  for (const MatmulChoice& choice : choices) {
    if (choice.strategy != MatmulStrategy::kUnits) continue;
    const std::string fault = fault_of(device, caps, choice);
    if (fault.empty()) continue;
    demoted.push_back(kKernel);
    impl.info.notes.push_back("the matrix units are not used, because their self-check failed: " +
                              fault);
    impl.context.say(LogLevel::kWarning,
                     "[device] '" + impl.info.name + "': " + impl.info.notes.back() + ".");
    return;
  }
}

}  // namespace vkformer
