#include "weights/quantise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace vkformer {
namespace {

float to_bfloat(float value) {
  return float_from_bfloat(bfloat_from_float(value));
}

// The least bfloat16 that is not below a positive value, so that no weight leaves the range.
float bfloat_above(float value) {
  const uint16_t bits = bfloat_from_float(value);
  return float_from_bfloat(float_from_bfloat(bits) < value ? static_cast<uint16_t>(bits + 1)
                                                           : bits);
}

float largest(std::span<const float> weights) {
  float most = 0;
  for (const float weight : weights) most = std::max(most, std::fabs(weight));
  return most;
}

// Nearest value from `least` to `most`; the argument may be anything finite.
int32_t nearest(float x, int32_t least, int32_t most) {
  const float inside = std::clamp(x, static_cast<float>(least), static_cast<float>(most));
  return static_cast<int32_t>(std::floor(inside + 0.5f));
}

void fill_values(WeightBlock& block, std::span<const float> weights, int32_t least, int32_t most) {
  // Steps too small for a GPU, which may take them for zeros, are zeros.
  if (!std::isnormal(block.scale)) block.scale = 0;
  const float inverse = block.scale == 0 ? 0 : 1 / block.scale;
  for (size_t i = 0; i < weights.size(); ++i) {
    block.values[i] = nearest((weights[i] - block.minimum) * inverse, least, most);
  }
}

double squared_error(const WeightBlock& block, std::span<const float> weights) {
  double sum = 0;  // squares leave the range of f32 before weights do
  for (size_t i = 0; i < weights.size(); ++i) {
    const double difference =
        block.minimum + block.scale * static_cast<float>(block.values[i]) - weights[i];
    sum += difference * difference;
  }
  return sum;
}

constexpr int kMostRounds = 4;  // of fitting; more gain nothing that could be measured

// Keeps of two blocks the one that is closer.
struct Search {
  std::span<const float> weights;
  WeightBlock best{};
  double best_error = INFINITY;

  void attempt(float scale, float minimum) {
    WeightBlock block{.scale = scale, .minimum = minimum};
    fill_values(block, weights, 0, 15);
    const double error = squared_error(block, weights);
    if (error >= best_error) return;
    best_error = error;
    best = block;
  }

  // Fits the scale to the values that the best block has, which then may become others, and again
  // while that helps: alternating least squares. With a minimum both are a line's, without one the
  // line goes through value 8.
  void refine(bool with_minimum) {
    for (int round = 0; round < kMostRounds; ++round) {
      const double before = best_error;
      double v = 0, vv = 0, w = 0, wv = 0;  // sums over the block
      for (size_t i = 0; i < weights.size(); ++i) {
        const double value = best.values[i] - (with_minimum ? 0 : 8);
        v += value;
        vv += value * value;
        w += double{weights[i]};
        wv += value * double{weights[i]};
      }
      const auto n = static_cast<double>(weights.size());
      const double spread = with_minimum ? n * vv - v * v : vv;
      if (!(spread > 0)) return;
      const double slope = (with_minimum ? n * wv - v * w : wv) / spread;
      const float scale = to_bfloat(static_cast<float>(slope));
      attempt(scale, with_minimum ? to_bfloat(static_cast<float>((w - double{scale} * v) / n))
                                  : -8 * scale);
      if (best_error >= before) return;
    }
  }
};

// Values 0 to 15 stand for -8 to 7 steps: the sign of the scale chooses the side that has 8.
WeightBlock search_q4(std::span<const float> weights) {
  Search search{weights};
  const float most = largest(weights);
  for (const float steps : {8.0f, 7.5f, 7.0f, 6.5f, 6.0f}) {
    const float scale = to_bfloat(most / steps);
    search.attempt(scale, -8 * scale);
    search.attempt(-scale, 8 * scale);
  }
  search.refine(false);
  return search.best;
}

WeightBlock search_q4m(std::span<const float> weights) {
  Search search{weights};
  const auto [low, high] = std::minmax_element(weights.begin(), weights.end());
  const float range = *high - *low;
  // Ends that are cut off cost the few weights there and sharpen all others.
  for (const float cut : {0.0f, 0.02f, 0.04f, 0.07f}) {
    for (const float other : {0.0f, 0.03f, 0.06f}) {
      const float minimum = to_bfloat(*low + cut * range);
      search.attempt(to_bfloat((*high - other * range - minimum) / 15), minimum);
    }
  }
  search.refine(true);
  return search.best;
}

void add_bits(std::span<std::byte> matrix, size_t index, uint32_t bits) {
  uint32_t word = 0;
  std::memcpy(&word, matrix.data() + index * 4, 4);
  word |= bits;
  std::memcpy(matrix.data() + index * 4, &word, 4);
}

}  // namespace

bool fits_blocks(std::span<const float> weights, MatrixFormat format) {
  if (format == MatrixFormat::kBF16) return true;
  return std::all_of(weights.begin(), weights.end(),
                     [](float weight) { return std::fabs(weight) < 1e38f; });
}

WeightBlock quantise_block(std::span<const float> weights, MatrixFormat format) {
  WeightBlock block;
  if (format == MatrixFormat::kBF16) {
    for (size_t i = 0; i < weights.size(); ++i) block.values[i] = bfloat_from_float(weights[i]);
    return block;
  }
  if (format == MatrixFormat::kQ8) {
    block.scale = bfloat_above(largest(weights) / 127);
    fill_values(block, weights, -127, 127);
    return block;
  }
  block = format == MatrixFormat::kQ4 ? search_q4(weights) : search_q4m(weights);
  // What fills a block up stands for 0 where the format can say so.
  if (format == MatrixFormat::kQ4) {
    std::fill(block.values.begin() + static_cast<std::ptrdiff_t>(weights.size()),
              block.values.end(), 8);
  }
  return block;
}

float block_weight(const WeightBlock& block, size_t index, MatrixFormat format) {
  if (format == MatrixFormat::kBF16) {
    return float_from_bfloat(static_cast<uint16_t>(block.values[index]));
  }
  return block.minimum + block.scale * static_cast<float>(block.values[index]);
}

void store_block(std::span<std::byte> matrix, const BlockPlace& place, const WeightBlock& block,
                 MatrixFormat format) {
  const uint32_t size = block_words(format);
  const size_t in_panel = place.column % 64;
  const size_t base = place.column / 64 * panel_words(format, place.k) + place.block_index * size;
  const size_t group = in_panel / 8;
  const size_t word = in_panel % 4;                   // of 4 that hold 8 columns
  const uint32_t half = in_panel % 8 < 4 ? 0u : 16u;  // and the half of it
  for (size_t i = 0; i < kBlockSteps; ++i) {
    const auto value = static_cast<uint32_t>(block.values[i]);
    const size_t run = i / 4 * 8 + group;
    const uint32_t step = i % 4;
    if (format == MatrixFormat::kBF16) {
      add_bits(matrix, base + run * 16 + step * 4 + word, value << half);
    } else if (format == MatrixFormat::kQ8) {
      add_bits(matrix, base + run * 8 + in_panel % 8, (value & 255u) << (8 * step));
    } else {
      add_bits(matrix, base + run * 4 + word, value << (half + 4 * step));
    }
  }
  if (format == MatrixFormat::kBF16) return;
  const size_t scales = base + (format == MatrixFormat::kQ8 ? 512 : 256) + group * 4 + word;
  add_bits(matrix, scales, uint32_t{bfloat_from_float(block.scale)} << half);
  if (format == MatrixFormat::kQ4M) {
    add_bits(matrix, scales + 32, uint32_t{bfloat_from_float(block.minimum)} << half);
  }
}

}  // namespace vkformer
