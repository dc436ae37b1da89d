#include "measure/matrix_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "operators/graph_runner.h"
#include "ops/attention_units.h"
#include "ops/matmul.h"
#include "ops/matmul_table.h"
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

GraphRunOptions options_of(const DeviceCaps& caps) {
  GraphRunOptions options;
  options.precision = Precision::kF16;
  options.poison = GraphRunOptions::Poison::kOn;
  options.repeats = 2;
  options.caps = caps;
  return options;
}

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
  VKF_ASSIGN(const TensorId y, add_linear(graph, x_id, weight, {}));
  graph.tensor(y).kind = TensorKind::kExternal;
  graph.tensor(y).name = "y";
  return run_graph(device, graph, {{"x", std::move(x)}, {"weight", std::move(words)}},
                   options_of(caps));
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

// One attention whose scores differ enough that a query takes the value of one key or, halfway
// between two of them, the mean of both. All of it is exact in f16, with two exceptions. These are
// one element of a value, and one of a query that alone decides which key its row takes. Key j has
// the digits a and b of 8 a + b, over and over. Take the product of (2 a, -a^2, 2 b, -b^2) and (x,
// 1, y, 1). It is largest where a is x and b is y.
struct AttentionProof {
  static constexpr int64_t kKeys = 63, kWidth = 41, kValueWidth = 35;
  static constexpr int64_t kPreferred = 3;  // by the last query
  int64_t queries;

  static int64_t key_of(int64_t query) { return query * 11 % kKeys; }
  static bool halfway(int64_t query) { return query % 3 == 1 && key_of(query) % 8 < 6; }

  float q(int64_t query, int64_t e) const {
    if (e == kWidth - 1) return query == queries - 1 ? 70000.0f : 0.0f;  // beyond f16
    const int64_t key = key_of(query);
    if (e % 4 == 0) return static_cast<float>(key / 8);
    if (e % 4 == 2) return static_cast<float>(key % 8) + (halfway(query) ? 0.5f : 0.0f);
    return 1.0f;
  }
  static float k(int64_t key, int64_t e) {
    if (e == kWidth - 1) return key == kPreferred ? 1.0f : 0.0f;
    const int64_t digit = e % 4 < 2 ? key / 8 : key % 8;
    return static_cast<float>(e % 2 == 0 ? 2 * digit : -digit * digit);
  }
  static float v(int64_t key, int64_t column) {
    if (key == kPreferred && column == kValueWidth - 1) return 70000.0f;
    return static_cast<float>((key * 5 + column * 3) % 9 - 4);
  }
  float y(int64_t query, int64_t column) const {
    if (query == queries - 1) return v(kPreferred, column);
    const int64_t key = key_of(query);
    return halfway(query) ? 0.5f * (v(key, column) + v(key + 1, column)) : v(key, column);
  }

  AttentionAttrs attrs() const {
    AttentionAttrs a;
    a.queries = static_cast<uint32_t>(queries);
    a.keys = kKeys;
    a.head_width = kWidth;
    a.value_width = kValueWidth;
    a.q = merged_rows(a.queries, kWidth, 0, kWidth);
    a.k = merged_rows(a.keys, kWidth + kValueWidth, 0, kWidth);
    a.v = merged_rows(a.keys, kWidth + kValueWidth, kWidth, kValueWidth);
    a.scale = 100.0f;  // a weight is 1, or 0
    return a;
  }
};

Tensor tensor_of(int64_t rows, int64_t columns, const auto& element) {
  Tensor tensor = Tensor::zeros(DType::kF32, {rows, columns});
  for (int64_t i = 0; i < rows * columns; ++i) {
    const float value = element(i / columns, i % columns);
    std::memcpy(tensor.bytes.data() + 4 * i, &value, 4);
  }
  return tensor;
}

Result<std::vector<float>> run(const AttentionProof& proof,
                               const std::shared_ptr<VulkanDevice>& device,
                               const DeviceCaps& caps) {
  constexpr int64_t kBoth = AttentionProof::kWidth + AttentionProof::kValueWidth;
  Tensor q = tensor_of(proof.queries, AttentionProof::kWidth,
                       [&](int64_t row, int64_t e) { return proof.q(row, e); });
  Tensor kv = tensor_of(AttentionProof::kKeys, kBoth, [](int64_t row, int64_t e) {
    return e < AttentionProof::kWidth ? AttentionProof::k(row, e)
                                      : AttentionProof::v(row, e - AttentionProof::kWidth);
  });
  Graph graph;
  const TensorId q_id = graph.add_external("q", DType::kF32, q.shape);
  const TensorId kv_id = graph.add_external("kv", DType::kF32, kv.shape);
  VKF_ASSIGN(const TensorId y,
             add_attention(graph, {.q = q_id, .kv = kv_id, .terms = kNoTensor}, proof.attrs()));
  graph.tensor(y).kind = TensorKind::kExternal;
  graph.tensor(y).name = "y";
  VKF_ASSIGN(
      const GraphRunReport ran,
      run_graph(device, graph, {{"q", std::move(q)}, {"kv", std::move(kv)}}, options_of(caps)));
  return ran.outputs.at("y").to_floats();
}

// What is wrong with attention of this number of queries; empty where nothing is.
std::string fault_of(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps,
                     int64_t queries) {
  const AttentionProof proof{queries};
  const auto y = run(proof, device, caps);
  if (!y) return y.error().message;
  for (size_t i = 0; i < y->size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / AttentionProof::kValueWidth;
    const int64_t column = static_cast<int64_t>(i) % AttentionProof::kValueWidth;
    const float expected = proof.y(row, column);
    // Divisions by 1 and 2 are exact, but no driver has to make them so.
    if (std::abs((*y)[i] - expected) <= 1e-5f * std::abs(expected)) continue;
    return "the element (" + std::to_string(row) + ", " + std::to_string(column) +
           ") of an attention of " + std::to_string(queries) + " queries is " +
           std::to_string((*y)[i]) + " in place of " + std::to_string(expected);
  }
  return {};
}

std::string attention_fault(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps,
                            KernelId kernel) {
  std::vector<AttentionUnits> seen;
  for (const int64_t queries : {9, 17, 33, 65}) {
    const auto units = attention_units(caps, AttentionProof{queries}.attrs(), Precision::kF16);
    if (!units || units->kernel() != kernel) continue;
    if (std::find(seen.begin(), seen.end(), *units) != seen.end()) continue;
    seen.push_back(*units);
    const std::string fault = fault_of(device, caps, queries);
    if (!fault.empty()) return fault;
  }
  return {};
}

std::string matmul_fault(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps,
                         KernelId) {
  for (const MatmulTableRow& row : matmul_table(caps, Precision::kF16)) {
    if (row.choice.strategy != MatmulStrategy::kUnits) continue;
    const std::string fault = fault_of(device, caps, row.choice);
    if (!fault.empty()) return fault;
  }
  return {};
}

using FindFault = std::string (*)(const std::shared_ptr<VulkanDevice>&, const DeviceCaps&,
                                  KernelId);

void prove(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps, KernelId kernel,
           FindFault find_fault) {
  VulkanDevice::Impl& impl = device->impl();
  std::vector<KernelId>& demoted = impl.context.caps.demoted;
  if (std::find(demoted.begin(), demoted.end(), kernel) != demoted.end()) return;
  const std::string fault = find_fault(device, caps, kernel);
  if (fault.empty()) return;
  demoted.push_back(kernel);
  impl.info.notes.push_back("the matrix units are not used in " +
                            std::string(kernel_info(kernel).name) +
                            ", because its self-check failed: " + fault);
  impl.context.say(LogLevel::kWarning,
                   "[device] '" + impl.info.name + "': " + impl.info.notes.back() + ".");
}

}  // namespace

void prove_matrix_units(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps) {
  prove(device, caps, KernelId::matmul_units__f32_any_f32_matrix, matmul_fault);
  prove(device, caps, KernelId::attention_units_nv__f32_f32_f32_matrix2, attention_fault);
  // Where the one before does not take its place.
  DeviceCaps left = caps;
  left.has_matrix2 = caps.has_matrix2 && device->caps().demoted.empty();
  prove(device, left, KernelId::attention_units__f32_f32_f32_matrix, attention_fault);
}

}  // namespace vkformer
