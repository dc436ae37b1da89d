// The random weight of a linear layer, as it is stored and as the reference needs it.
#pragma once

#include <cmath>
#include <vector>

#include "ops/matmul.h"
#include "support/matrix_rounding.h"
#include "support/operator_check.h"
#include "weights/pack_matrix.h"

namespace vkformer::testing {

struct PackedLinear {
  Array w;     // (K, N), rounded to the format
  Array bias;  // (N), stored only where it was asked for
  std::vector<uint32_t> words;
  LinearWeight weight;  // of a tensor of these words, which the caller names

  Shape shape() const { return {static_cast<int64_t>(words.size())}; }
};

enum class StoredBias : uint8_t { kOff, kOn };

inline PackedLinear random_linear(int64_t k, int64_t n, MatrixFormat format, StoredBias stored,
                                  uint32_t seed) {
  PackedLinear p;
  p.w = random_array({k, n}, seed, 1 / std::sqrt(static_cast<double>(k)));
  const std::vector<float> values(p.w.data.begin(), p.w.data.end());
  p.w = round_to_format(p.w, format);
  p.bias = random_array({n}, seed + 1);
  std::vector<float> bias(p.bias.data.begin(), p.bias.data.end());
  if (stored == StoredBias::kOff) bias.clear();
  const auto columns = static_cast<uint32_t>(n), depth = static_cast<uint32_t>(k);
  auto packed = pack_matrix(values, {columns, depth, MatrixOrder::kInOut}, bias, format);
  REQUIRE(packed.ok());
  p.words = std::move(packed->words);
  p.weight = {.n = columns, .k = depth, .bias_offset = packed->bias_offset, .format = format};
  return p;
}

}  // namespace vkformer::testing
