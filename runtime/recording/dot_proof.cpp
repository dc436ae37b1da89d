#include "recording/dot_proof.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "base/matrix_format.h"
#include "base/message.h"
#include "ops/matmul_dots.h"
#include "params/activation.h"
#include "params/byte_rows.h"
#include "params/matmul_dots.h"
#include "recording/recorded_graph.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

// Of the product: an odd number of rows, one panel, and two blocks of K, of which the second is not
// whole. All sums are integers below 2^24, exact in f32.
constexpr uint32_t kM = 3, kN = kPanelColumns, kK = 56, kBlocks = 2;
constexpr MatrixFormat kWeights = MatrixFormat::kQ8;

// Signed bytes of every kind, both ends among them.
int32_t element(uint32_t step, uint32_t line, uint32_t salt) {
  if (step >= kK) return 0;
  const uint32_t mixed = (step * 37 + line * 101 + salt) * 2654435761u >> 24;
  return static_cast<int8_t>(step % 11 == 3 ? (line % 2 == 0 ? 0x80 : 0x7f) : mixed);
}
int32_t a_at(uint32_t row, uint32_t step) {
  return element(step, row, 17);
}
int32_t b_at(uint32_t step, uint32_t column) {
  return element(step, column, 71);
}

uint32_t four_bytes(const std::array<int32_t, 4>& values) {
  uint32_t word = 0;
  for (uint32_t s = 0; s < 4; ++s) word |= (static_cast<uint32_t>(values[s]) & 255u) << (8 * s);
  return word;
}

// Rows as byte_rows.h has them, of scale 1.
std::vector<uint32_t> row_words() {
  std::vector<uint32_t> words(size_t{kM} * byte_row_words(kK));
  for (uint32_t row = 0; row < kM; ++row) {
    const size_t at = size_t{row} * byte_row_words(kK);
    for (uint32_t i = 0; i < kBlocks * kByteRowWords; ++i) {
      words[at + i] = four_bytes(
          {a_at(row, 4 * i), a_at(row, 4 * i + 1), a_at(row, 4 * i + 2), a_at(row, 4 * i + 3)});
    }
    for (uint32_t block = 0; block < kBlocks; ++block) {
      uint32_t sums[2] = {0, 0};
      for (uint32_t step = 0; step < kBlockSteps; ++step) {
        sums[step / 16] += static_cast<uint32_t>(a_at(row, block * kBlockSteps + step));
      }
      const size_t facts = at + kBlocks * kByteRowWords + kByteRowFacts * block;
      words[facts] = std::bit_cast<uint32_t>(1.0f);
      words[facts + 1] = (sums[0] & 0xffffu) | sums[1] << 16;
    }
  }
  return words;
}

// A panel of Q8 as weight_blocks.h has it, of scale 1.
std::vector<uint32_t> panel() {
  std::vector<uint32_t> words(panel_words(kWeights, kK));
  for (uint32_t block = 0; block < kBlocks; ++block) {
    const size_t at = size_t{block} * block_words(kWeights);
    for (uint32_t run = 0; run < kBlockSteps / 4; ++run) {
      for (uint32_t column = 0; column < kN; ++column) {
        const uint32_t step = block * kBlockSteps + 4 * run;
        words[at + run * kN + column] =
            four_bytes({b_at(step, column), b_at(step + 1, column), b_at(step + 2, column),
                        b_at(step + 3, column)});
      }
    }
    for (uint32_t i = 0; i < kN / 2; ++i) words[at + kBlockSteps / 4 * kN + i] = 0x3f803f80u;
  }
  return words;
}

constexpr KernelId kProven[] = {
    KernelId::matmul_dots__i8_blocks_f32, KernelId::matmul_dot_tiles__i8_blocks_f32,
    KernelId::matmul_dots__i8_blocks_f32_dot8, KernelId::matmul_dot_tiles__i8_blocks_f32_dot8};
constexpr size_t kPlain = 2;  // kernels without integer dot products, which are first

// One product by every kernel, each with a separate result.
Plan dot_proof_plan() {
  Plan plan;
  plan.buffers = {
      {.name = "rows", .source = BufferSource::kExternal, .bytes = 4 * row_words().size()},
      {.name = "panel", .source = BufferSource::kExternal, .bytes = 4 * panel().size()}};
  MatmulParams p{};
  p.m = kM;
  p.n = kN;
  p.k = kK;
  p.a_row_stride = byte_row_words(kK);
  p.a_col_stride = p.b_col_stride = 1;
  p.b_row_stride = kPanelColumns;
  p.b_panel_stride = panel_stride(kWeights, kK);
  p.bias_offset = p.c_offset = kMatmulNone;
  p.y_row_stride = kN;
  p.alpha = p.beta = 1;
  p.activation = kActivationNone;
  const auto format = static_cast<uint32_t>(kWeights);
  for (size_t i = 0; i < std::size(kProven); ++i) {
    plan.buffers.push_back({.name = "products." + std::to_string(i),
                            .source = BufferSource::kExternal,
                            .bytes = uint64_t{4} * kM * kN});
    Dispatch d;
    d.kernel = kProven[i];
    d.label = "proof of integer dot products";
    d.set_push(p);
    d.bindings = {{0, Access::kRead},
                  {1, Access::kRead},
                  {0, Access::kRead},
                  {static_cast<uint32_t>(2 + i), Access::kWrite}};
    if (i % 2 == 0) {
      d.set_constants(MatmulDotsConstants{.local_size = 8,
                                          .rows = kM,
                                          .column_lanes = 8,
                                          .slices = 1,
                                          .activation = p.activation,
                                          .format = format});
      d.groups = {1, 1, 1};
    } else {
      d.set_constants(MatmulDotTilesConstants{.local_size = 64,
                                              .block = 32,
                                              .tile_m = 4,
                                              .activation = p.activation,
                                              .format = format});
      d.groups = {kN / 32, 1, 1};
    }
    plan.dispatches.push_back(std::move(d));
  }
  return plan;
}

// What a kernel's result has of the sums: a sentence on the first that differs, or nothing.
std::string fault_of_products(KernelId kernel, std::span<const float> y) {
  for (uint32_t i = 0; i < kM * kN; ++i) {
    int32_t sum = 0;
    for (uint32_t step = 0; step < kK; ++step) sum += a_at(i / kN, step) * b_at(step, i % kN);
    if (y[i] == static_cast<float>(sum)) continue;
    return message({kernel_info(kernel).name, " gives ", number_text(y[i]), " in place of ", sum,
                    " in row ", i / kN, ", column ", i % kN});
  }
  return {};
}

// The faults of all kernels, in the order of kProven.
Result<std::vector<std::string>> faults_of_dots(const std::shared_ptr<VulkanDevice>& device) {
  PassMemory memory(device);
  std::vector<std::string> results;
  for (size_t i = 0; i < std::size(kProven); ++i)
    results.push_back("products." + std::to_string(i));
  VKF_ASSIGN(const RecordedGraph graph,
             RecordedGraph::from_plan(memory, dot_proof_plan(),
                                      {.host = {.writes = {"rows", "panel"}, .reads = results}}));
  VKF_CHECK(memory.write("rows", 0, row_words()));
  VKF_CHECK(memory.write("panel", 0, panel()));
  std::vector<TensorPart> parts;
  for (const std::string& name : results) parts.push_back({name, 0, size_t{4} * kM * kN});
  const RecordingRange ranges[] = {graph.all()};
  VKF_CHECK(memory.submit(ranges, parts));
  VKF_CHECK(memory.wait());
  std::vector<std::string> faults;
  for (size_t i = 0; i < std::size(kProven); ++i) {
    std::vector<float> y(size_t{kM} * kN);
    VKF_CHECK(memory.read(parts[i], std::as_writable_bytes(std::span(y))));
    faults.push_back(fault_of_products(kProven[i], y));
  }
  return faults;
}

}  // namespace

Status prove_dots(const std::shared_ptr<VulkanDevice>& device) {
  Context& context = device->impl().context;
  std::lock_guard<std::mutex> lock(context.proof_mutex);
  if (context.dots_are_proven || !context.caps.dot8()) return {};
  VKF_ASSIGN(const std::vector<std::string> faults, faults_of_dots(device));
  for (size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].empty()) continue;
    if (i < kPlain) {
      return unsupported(
          message({"[precision] 'int8' adds up products of integers, but on this "
                   "device ",
                   faults[i], "; use the precision 'f32', or another driver"}));
    }
    context.caps.has_dot8 = false;
    context.say(LogLevel::kWarning, message({"[device] '", context.caps.name,
                                             "': precision 'int8' goes without integer dot "
                                             "products, because ",
                                             faults[i], "."}));
    break;
  }
  context.dots_are_proven = true;
  return {};
}

}  // namespace vkformer
