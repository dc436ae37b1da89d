// One matrix product on hand-made memory, with a strategy of the test's choice: odd strides, gaps
// full of NaN, poisoned outputs.
#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "ops/matmul_strategy.h"
#include "reference/matmul.h"
#include "support/matrix_rounding.h"
#include "support/operator_check.h"
#include "vulkan/submission.h"

namespace vkformer::testing {

inline constexpr uint32_t kGap = 0x7fc0beef;  // a quiet NaN, in memory that nobody may use

struct ProductCase {
  uint32_t m = 1, n = 1, k = 1, batch = 1;
  MatrixFormat weight = MatrixFormat::kF32;
  enum class Layout : uint8_t { kPacked, kStrided } layout = Layout::kPacked;  // of B
  uint32_t a_gap = 0, b_gap = 0, y_gap = 0;  // elements between rows
  uint32_t a_offset = 0;                     // elements
  bool trans_a = false, trans_b = false;     // kStrided only
  bool bias = false;                         // kPacked only
  enum class Addend : uint8_t { kNone, kRow, kMatrix, kAfter } addend = Addend::kNone;
  float alpha = 1, beta = 1;
  ActivationKind activation = ActivationKind::kNone;
  uint32_t seed = 1;
};

// The operands of a case: values, memory images and parameters.
struct Product {
  Array a, b, c, bias;  // (batch, M, K), (batch, K, N), (N) or (batch, M, N), (N)
  std::vector<uint32_t> a_words, b_words, c_words;
  MatmulProblem problem;
  uint32_t y_words = 0;
};

inline uint32_t bits_of_float(double value) {
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

// Matrices of `rows` x `columns`, rows `gap` elements apart; transposed ones are stored so.
struct Placed {
  std::vector<uint32_t> words;
  uint32_t row_stride, column_stride, batch_stride;
};
inline Placed place(const Array& x, uint32_t offset, uint32_t gap, bool transposed) {
  const auto rows = static_cast<uint32_t>(x.dim(-2));
  const auto columns = static_cast<uint32_t>(x.dim(-1));
  const uint32_t pitch = (transposed ? rows : columns) + gap;
  Placed p{
      {}, transposed ? 1 : pitch, transposed ? pitch : 1, pitch * (transposed ? columns : rows)};
  const auto batch = static_cast<uint32_t>(x.dim(0));
  p.words.assign(offset + batch * p.batch_stride + 8, kGap);
  size_t i = 0;
  for (uint32_t z = 0; z < batch; ++z) {
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t c = 0; c < columns; ++c) {
        p.words[offset + z * p.batch_stride + r * p.row_stride + c * p.column_stride] =
            bits_of_float(x.data[i++]);
      }
    }
  }
  return p;
}

inline void place_packed_weight(const ProductCase& c, Product& p) {
  const std::vector<float> values(p.b.data.begin(), p.b.data.end());
  const size_t size = size_t{c.k} * c.n;
  MatmulParams& params = p.problem.params;
  for (uint32_t z = 0; z < c.batch; ++z) {
    const auto packed = pack_matrix(std::span(values).subspan(z * size, size),
                                    {c.n, c.k, MatrixOrder::kInOut}, {}, c.weight);
    REQUIRE(packed.ok());
    p.b_words.insert(p.b_words.end(), packed->words.begin(), packed->words.end());
  }
  params.b_row_stride = kPanelColumns;
  params.b_panel_stride = panel_stride(c.weight, c.k);
  params.b_col_stride = 1;
  params.b_batch_stride = (c.n + kPanelColumns - 1) / kPanelColumns * params.b_panel_stride;
  if (!c.bias) return;
  params.bias_offset = static_cast<uint32_t>(p.b_words.size());
  for (double value : p.bias.data) p.b_words.push_back(bits_of_float(value));
}

inline void place_addend(const ProductCase& c, Product& p) {
  if (c.addend == ProductCase::Addend::kNone) {
    p.c_words = {kGap};
    return;
  }
  MatmulParams& params = p.problem.params;
  params.c_offset = 3;
  p.c_words.assign(3, kGap);
  for (double value : p.c.data) p.c_words.push_back(bits_of_float(value));
  params.c_after = c.addend == ProductCase::Addend::kAfter ? 1 : 0;
  if (c.addend == ProductCase::Addend::kRow) return;
  params.c_row_stride = c.n;
  params.c_batch_stride = c.m * c.n;
}

inline Product make_product(const ProductCase& c) {
  Product p;
  const double scale = 1 / std::sqrt(static_cast<double>(c.k));
  p.a = random_array({c.batch, c.m, c.k}, c.seed, scale);
  p.b = random_array({c.batch, c.k, c.n}, c.seed + 1);
  p.bias = random_array({c.n}, c.seed + 2);
  const bool row = c.addend == ProductCase::Addend::kRow;
  p.c = random_array(row ? Shape{c.n} : Shape{c.batch, c.m, c.n}, c.seed + 3);
  p.problem = {.params = {}, .batch = c.batch, .format = c.weight};
  MatmulParams& params = p.problem.params;
  params = {.m = c.m,
            .n = c.n,
            .k = c.k,
            .a_offset = c.a_offset,
            .bias_offset = kMatmulNone,
            .c_offset = kMatmulNone,
            .alpha = c.alpha,
            .beta = c.beta,
            .activation = static_cast<uint32_t>(c.activation)};
  Placed a = place(p.a, c.a_offset, c.a_gap, c.trans_a);
  p.a_words = std::move(a.words);
  params.a_row_stride = a.row_stride;
  params.a_col_stride = a.column_stride;
  params.a_batch_stride = a.batch_stride;
  if (c.layout == ProductCase::Layout::kPacked) {
    place_packed_weight(c, p);
    p.b = round_to_format(p.b, c.weight);  // what the packed words stand for
  } else {
    Placed b = place(p.b, 5, c.b_gap, c.trans_b);
    p.b_words = std::move(b.words);
    params.b_offset = 5;
    params.b_row_stride = b.row_stride;
    params.b_col_stride = b.column_stride;
    params.b_panel_stride = kPanelColumns * b.column_stride;
    params.b_batch_stride = b.batch_stride;
  }
  place_addend(c, p);
  params.y_row_stride = c.n + c.y_gap;
  params.y_batch_stride = c.m * params.y_row_stride;
  p.y_words = c.batch * params.y_batch_stride + 8;
  return p;
}

inline Array expected_product(const ProductCase& c, const Product& p) {
  reference::MatmulOptions options;
  options.alpha = c.alpha;
  options.beta = c.beta;
  const auto kind = reference::activation_from_name(activation_name(c.activation));
  if (c.activation != ActivationKind::kNone) options.activation = kind.value();
  Array residual = p.c;
  for (double& value : residual.data) value *= c.beta;
  if (c.bias) options.bias = &p.bias;
  if (c.addend == ProductCase::Addend::kAfter) options.residual = &residual;
  if (c.addend == ProductCase::Addend::kRow || c.addend == ProductCase::Addend::kMatrix) {
    options.c = &p.c;
  }
  return reference::matmul(p.a, p.b, options).value();
}

// A way to run a product: capabilities as they would be of another device, and the choice.
struct ProductRun {
  std::string name;
  DeviceCaps caps;
  Precision precision = Precision::kF32;
  MatmulChoice choice = {};
  bool beside = false;  // a variant besides the tier's own
  uint32_t parts = 0;   // of K, with sums apart
};

// Y's memory after `runs` runs over poison, all with the same bits.
inline std::vector<uint32_t> run_product(const std::shared_ptr<VulkanDevice>& device,
                                         const Product& p, const ProductRun& how, int runs = 2) {
  Plan plan;
  const MatmulChoice choice = pick_matmul(p.problem, how.caps, how.precision, &how.choice);
  plan.dispatches.push_back(
      launch_matmul({}, p.problem, how.caps, how.precision, choice, how.parts));
  const uint32_t result = how.parts > 0 ? 4 : 3;
  plan.dispatches[0].bindings = {{0, Access::kRead},
                                 {1, Access::kRead},
                                 {2, Access::kRead},
                                 {result, result_access(plan.dispatches[0])}};
  const std::vector<uint32_t> poison(p.y_words, kGap);
  std::vector<uint32_t> sums;
  std::vector<const std::vector<uint32_t>*> images = {&p.a_words, &p.b_words, &p.c_words, &poison};
  if (how.parts > 0) {
    sums.assign(parts_layout(p.problem, how.parts).bytes / 4, kGap);
    images.push_back(&sums);
    plan.dispatches.push_back(launch_parts({}, p.problem, how.parts));
    plan.dispatches[1].bindings = {
        {4, Access::kRead}, {1, Access::kRead}, {2, Access::kRead}, {3, Access::kWrite}};
  }
  std::vector<Buffer> buffers;
  RecordingInputs bound;
  for (const std::vector<uint32_t>* image : images) {
    // Whole vectors: kernels may load beyond the last element, but not use what they get.
    const uint64_t bytes = (image->size() * 4 + 63) / 64 * 64;
    plan.buffers.push_back({.name = "operand", .source = BufferSource::kExternal, .bytes = bytes});
    auto buffer = device->make_buffer(bytes, MemoryUse::kDevice, "operand");
    REQUIRE(buffer.ok());
    REQUIRE(device->upload(*buffer, 0, std::as_bytes(std::span(*image))).ok());
    buffers.push_back(std::move(*buffer));
  }
  plan_barriers(plan);
  for (const Buffer& buffer : buffers) bound.memory.push_back({&buffer, 0, buffer.bytes()});
  const auto recording = Recording::create(device, plan, bound);
  REQUIRE_MESSAGE(recording.ok(), how.name << ": " << recording.error().message);
  const RecordingRange list[] = {{&*recording}};
  std::vector<uint32_t> first;
  for (int run = 0; run < runs; ++run) {
    REQUIRE(device->upload(buffers[3], 0, std::as_bytes(std::span(poison))).ok());
    const auto value = device->submit({.ranges = list});
    REQUIRE(value.ok());
    REQUIRE(device->wait(*value).ok());
    std::vector<uint32_t> words(p.y_words);
    REQUIRE(device->download(buffers[3], 0, std::as_writable_bytes(std::span(words))).ok());
    if (run > 0) CHECK(words == first);
    first = std::move(words);
  }
  return first;
}

// Row `r` of batch z as it lies in memory.
inline std::vector<uint32_t> product_row(const Product& p, const std::vector<uint32_t>& words,
                                         uint32_t r) {
  const auto begin = words.begin() + r * p.problem.params.y_row_stride;
  return {begin, begin + p.problem.params.n};
}

// Compares Y, and what lies between its rows must still be poison.
inline void check_product(const ProductCase& c, const Product& p,
                          const std::vector<uint32_t>& words, Tolerance tolerance) {
  Tensor y = Tensor::zeros(DType::kF32, {c.batch, c.m, c.n});
  std::vector<uint32_t> left = words;
  size_t i = 0;
  for (uint32_t row = 0; row < c.batch * c.m; ++row) {
    for (uint32_t column = 0; column < c.n; ++column) {
      uint32_t& word = left[size_t{row} * p.problem.params.y_row_stride + column];
      std::memcpy(y.bytes.data() + 4 * i++, &word, 4);
      word = kGap;
    }
  }
  check_close(y, expected_product(c, p), tolerance);
  CHECK(std::all_of(left.begin(), left.end(), [](uint32_t word) { return word == kGap; }));
}

}  // namespace vkformer::testing
