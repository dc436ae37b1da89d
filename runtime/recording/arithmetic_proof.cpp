#include "recording/arithmetic_proof.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "base/message.h"
#include "params/arithmetic_proof.h"
#include "params/constants.h"
#include "recording/recorded_graph.h"
#include "reproducible/host_arithmetic.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

constexpr uint32_t kGroup = 32;  // invocations

// Zeros, denormals, the ends of every range, halfway cases, infinities and NaN.
constexpr uint32_t kSpecial[] = {
    0x00000000, 0x00000001, 0x00000fff, 0x00400000, 0x007fffff, 0x00800000, 0x00800001,
    0x00ffffff, 0x01000000, 0x0d800000, 0x1f800000, 0x1fffffff, 0x20000001, 0x33800000,
    0x33800001, 0x387fc000, 0x387fe000, 0x38800000, 0x3effffff, 0x3f000000, 0x3f000001,
    0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fffffff, 0x40000000, 0x40400000, 0x42ae0000,
    0x42b17218, 0x477fe000, 0x477ff000, 0x4b000001, 0x4b7fffff, 0x4b800000, 0x4b800001,
    0x4effffff, 0x5f000000, 0x7f000000, 0x7f7fffff, 0x7f800000, 0x7fc00000};

// Triples of operands. They are the special ones by pairs of either sign, then random bits. Half of
// these have like exponents, so that sums cancel and round.
std::vector<float> operands() {
  std::vector<float> x;
  uint32_t state = 0x2545f491u;
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  };
  const auto add = [&](uint32_t a, uint32_t b) {
    const float product = std::bit_cast<float>(a) * std::bit_cast<float>(b);
    x.insert(x.end(), {std::bit_cast<float>(a), std::bit_cast<float>(b), -product});
  };
  for (const uint32_t a : kSpecial) {
    for (const uint32_t b : kSpecial) {
      const uint32_t signs = next();
      add(a ^ (signs & kSignBit), b ^ (signs << 1 & kSignBit));
    }
  }
  for (int i = 0; i < 4096; ++i) {
    const uint32_t a = next();
    const uint32_t b = i % 2 == 0 ? next() : (next() & 0x80ffffffu) | (a & 0x7f000000u);
    add(a, b);
  }
  return x;
}

using Words = std::array<uint32_t, VKF_PROVEN_WORDS>;
constexpr const char* kNames[VKF_PROVEN_WORDS] = {
    "a + b",    "a - b",          "a * b",        "a * b + c",  "c - a * b", "comparisons",
    "floor(a)", "float of words", "float of int", "int of a",   "a / b",     "sqrt(a)",
    "exp(a)",   "log(a)",         "half to f32",  "f32 to half"};

uint32_t comparisons(float a, float b) {
  uint32_t bits = 0;
  const bool all[] = {a<b, a <= b, a> b, a >= b, a == b, a != b};
  for (size_t i = 0; i < std::size(all); ++i) bits |= (all[i] ? 1u : 0u) << i;
  return bits;
}

Words expected_of(float a, float b, float c) {
  HostArithmetic h;
  const float fa = HostArithmetic::flushed(a), fb = HostArithmetic::flushed(b);
  const float magnitude = h.from_bits(h.bits(a) & ~kSignBit);
  const auto word = static_cast<int32_t>(magnitude < 1.0e9f ? a : 1.0f);
  return {h.bits(h.add(a, b)),
          h.bits(h.sub(a, b)),
          h.bits(h.mul(a, b)),
          h.bits(h.add(h.mul(a, b), c)),
          h.bits(h.sub(c, h.mul(a, b))),
          comparisons(fa, fb),
          h.bits(h.floor(a)),
          h.bits(static_cast<float>(h.bits(a))),
          h.bits(static_cast<float>(static_cast<int32_t>(h.bits(a)))),
          static_cast<uint32_t>(word),
          h.bits(divide(h, a, b)),
          h.bits(square_root(h, a)),
          h.bits(exponential(h, a)),
          h.bits(logarithm(h, a)),
          h.bits(from_half(h, h.bits(a) & 0xffffu)),
          to_half(h, a) | to_half(h, b) << 16};
}

bool is_float(size_t result) {
  return result != 5 && result != 9 && result != 15;
}

// Any NaN is as good as another one.
bool same(size_t result, uint32_t got, uint32_t expected) {
  if (got == expected) return true;
  const auto nan = [](uint32_t word) { return (word & ~kSignBit) > kInfinityBits; };
  if (is_float(result)) return nan(got) && nan(expected);
  return false;
}

Plan proof_plan(uint32_t count) {
  Plan plan;
  plan.buffers = {{.name = "operands", .source = BufferSource::kExternal, .bytes = 12ull * count},
                  {.name = "results",
                   .source = BufferSource::kExternal,
                   .bytes = 4ull * VKF_PROVEN_WORDS * count}};
  Dispatch d;
  d.kernel = KernelId::arithmetic_proof_run__f32;
  d.label = "arithmetic proof";
  d.reproducible = true;
  d.bindings = {{0, Access::kRead}, {1, Access::kWrite}};
  d.set_push(ArithmeticProofParams{count});
  d.set_constants(WorkgroupConstants{kGroup});
  d.groups = {(count + kGroup - 1) / kGroup, 1, 1};
  plan.dispatches.push_back(std::move(d));
  return plan;
}

// A sentence on the first result that differs; empty where none does.
Result<std::string> fault_of(const std::shared_ptr<VulkanDevice>& device) {
  const std::vector<float> x = operands();
  const auto count = static_cast<uint32_t>(x.size() / 3);
  PassMemory memory(device);
  VKF_ASSIGN(const RecordedGraph graph,
             RecordedGraph::from_plan(memory, proof_plan(count),
                                      {.host = {.writes = {"operands"}, .reads = {"results"}}}));
  std::vector<uint32_t> words(x.size());
  std::memcpy(words.data(), x.data(), 4 * x.size());
  VKF_CHECK(memory.write("operands", 0, words));
  std::vector<uint32_t> y(size_t{VKF_PROVEN_WORDS} * count);
  const TensorPart all{"results", 0, 4 * y.size()};
  const RecordingRange ranges[] = {graph.all()};
  VKF_CHECK(memory.submit(ranges, std::array{all}));
  VKF_CHECK(memory.wait());
  VKF_CHECK(memory.read(all, std::as_writable_bytes(std::span(y))));
  for (uint32_t i = 0; i < count; ++i) {
    const float a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
    const Words expected = expected_of(a, b, c);
    for (size_t k = 0; k < expected.size(); ++k) {
      const uint32_t got = y[VKF_PROVEN_WORDS * i + k];
      if (same(k, got, expected[k])) continue;
      return message({kNames[k], " with the bits a = ", std::bit_cast<uint32_t>(a),
                      ", b = ", std::bit_cast<uint32_t>(b), ", c = ", std::bit_cast<uint32_t>(c),
                      " gives ", got, " in place of ", expected[k]});
    }
  }
  return std::string();
}

}  // namespace

Status prove_arithmetic(const std::shared_ptr<VulkanDevice>& device) {
  Context& context = device->impl().context;
  std::lock_guard<std::mutex> lock(context.proof_mutex);
  if (context.arithmetic_is_proven) return {};
  std::string fault;
  for (const bool guards : {false, true}) {
    context.arithmetic.guard_denormals = guards;
    VKF_ASSIGN(fault, fault_of(device));
    if (!fault.empty()) continue;
    context.arithmetic_is_proven = true;
    return {};
  }
  return unsupported(
      message({"[precision] 'reproducible' needs f32 arithmetic as IEEE 754 has it, but on this "
               "device ",
               fault, "; use the precision 'f32', or another driver"}));
}

}  // namespace vkformer
