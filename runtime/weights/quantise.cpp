#include "weights/quantise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace vkformer {
namespace {

// What a scale of the format is rounded to. Those that are multiplied by parts are rounded later.
float to_scale(float value, MatrixFormat format) {
  if (has_supers(format)) return value;
  return block_traits(format).half_scales ? float_from_half(half_from_float(value))
                                          : float_from_bfloat(bfloat_from_float(value));
}

// The least scale of the format that is not below a positive value, so that no weight leaves the
// range.
float scale_above(float value, MatrixFormat format) {
  if (block_traits(format).half_scales) {
    const uint16_t bits = half_from_float(value);
    return float_from_half(float_from_half(bits) < value ? static_cast<uint16_t>(bits + 1) : bits);
  }
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

// The exponent of MXFP4's scales, which are multiplied with twice a number: below it they are no
// normal numbers.
constexpr int kLeastMxfp4 = -126;

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
  MatrixFormat format;
  WeightBlock best{};
  double best_error = INFINITY;

  int32_t most() const { return (1 << block_traits(format).bits) - 1; }
  float offset() const { return static_cast<float>(block_traits(format).offset); }

  void attempt(float scale, float minimum) {
    WeightBlock block{.scale = scale, .minimum = minimum};
    fill_values(block, weights, 0, most());
    const double error = squared_error(block, weights);
    if (error >= best_error) return;
    best_error = error;
    best = block;
  }

  // Fits the scale to the values that the best block has, which then may become others, and again
  // while that helps: alternating least squares. With a minimum both are a line's, without one the
  // line goes through the value that stands for 0.
  void refine(bool with_minimum) {
    for (int round = 0; round < kMostRounds; ++round) {
      const double before = best_error;
      double v = 0, vv = 0, w = 0, wv = 0;  // sums over the block
      for (size_t i = 0; i < weights.size(); ++i) {
        const double value = best.values[i] - (with_minimum ? 0.0 : double{offset()});
        v += value;
        vv += value * value;
        w += double{weights[i]};
        wv += value * double{weights[i]};
      }
      const auto n = static_cast<double>(weights.size());
      const double spread = with_minimum ? n * vv - v * v : vv;
      if (!(spread > 0)) return;
      const double slope = (with_minimum ? n * wv - v * w : wv) / spread;
      const float scale = to_scale(static_cast<float>(slope), format);
      attempt(scale, with_minimum
                         ? to_scale(static_cast<float>((w - double{scale} * v) / n), format)
                         : -offset() * scale);
      if (best_error >= before) return;
    }
  }
};

// Values stand for -8 to 7 steps, in Q5_0 -16 to 15: the sign of the scale chooses the side that
// has one more.
WeightBlock search_signed(std::span<const float> weights, MatrixFormat format) {
  Search search{weights, format};
  const float most = largest(weights);
  for (const float less : {0.0f, 0.5f, 1.0f, 1.5f, 2.0f}) {
    const float scale = to_scale(most / (search.offset() - less), format);
    search.attempt(scale, -search.offset() * scale);
    search.attempt(-scale, search.offset() * scale);
  }
  search.refine(false);
  return search.best;
}

WeightBlock search_minimum(std::span<const float> weights, MatrixFormat format) {
  Search search{weights, format};
  const auto [least, high] = std::minmax_element(weights.begin(), weights.end());
  // What multiplies minima of Q4_K and Q5_K has no sign.
  const float low = has_supers(format) ? std::min(*least, 0.0f) : *least;
  const float range = *high - low;
  // Ends that are cut off cost the few weights there and sharpen all others.
  for (const float cut : {0.0f, 0.02f, 0.04f, 0.07f}) {
    for (const float other : {0.0f, 0.03f, 0.06f}) {
      const float minimum = to_scale(low + cut * range, format);
      const auto steps = static_cast<float>(search.most());
      search.attempt(to_scale((*high - other * range - minimum) / steps, format), minimum);
    }
  }
  search.refine(true);
  return search.best;
}

// The power of 2 that leaves the largest weight inside E2M1's 6, and the nearest codes.
WeightBlock nearest_mxfp4(std::span<const float> weights) {
  WeightBlock block;
  int exponent = 0;
  std::frexp(largest(weights), &exponent);  // largest in [2^(exponent - 1), 2^exponent)
  // 6 is 1.5 * 2^2. What lies above it, up to 8, becomes 6.
  block.scale = std::ldexp(1.0f, std::max(exponent - 4, kLeastMxfp4));
  for (size_t i = 0; i < weights.size(); ++i) {
    float least = INFINITY;
    for (int32_t code = 0; code < 16; ++code) {
      const auto value = static_cast<float>(doubled_e2m1(static_cast<uint32_t>(code)));
      const float error = std::fabs(block.scale * value - weights[i]);
      if (error >= least) continue;
      least = error;
      block.values[i] = code;
    }
  }
  return block;
}

constexpr float kMostPart = 63;         // of Q4_K and Q5_K
constexpr float kMostSignedPart = 127;  // of Q6_K

float to_half(float value) {
  return float_from_half(half_from_float(value));
}

// The part of a scale, or of a minimum, of what all blocks share.
int32_t part_of(float value, float shared, float most) {
  return shared == 0
             ? 0
             : nearest(value / shared, static_cast<int32_t>(-most), static_cast<int32_t>(most));
}

// Every block as if it were alone, then scales and minima as multiples of what they share.
void quantise_with_minima(std::span<const float> weights, MatrixFormat format,
                          std::span<WeightBlock> blocks) {
  float scale = 0, minimum = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto some = weights.subspan(
        b * kBlockSteps, std::min<size_t>(kBlockSteps, weights.size() - b * kBlockSteps));
    blocks[b] = search_minimum(some, format);
    scale = std::max(scale, blocks[b].scale);
    minimum = std::max(minimum, -blocks[b].minimum);
  }
  scale = to_half(scale / kMostPart);
  minimum = to_half(minimum / kMostPart);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto some = weights.subspan(
        b * kBlockSteps, std::min<size_t>(kBlockSteps, weights.size() - b * kBlockSteps));
    const int32_t part = part_of(std::max(0.0f, blocks[b].scale), scale, kMostPart);
    const int32_t minimum_part = part_of(std::max(0.0f, -blocks[b].minimum), minimum, kMostPart);
    WeightBlock fitted{.scale = scale * static_cast<float>(part),
                       .minimum = -minimum * static_cast<float>(minimum_part)};
    fill_values(fitted, some, 0, (1 << block_traits(format).bits) - 1);
    blocks[b] = {.scale = scale,
                 .minimum = minimum,
                 .values = fitted.values,
                 .parts = {part, part},
                 .minimum_part = minimum_part};
  }
}

// 16 weights each have a scale whose sign chooses the side that has -32 steps.
void quantise_q6k(std::span<const float> weights, std::span<WeightBlock> blocks) {
  constexpr size_t kRun = kBlockSteps / 2;
  std::array<float, 2 * kBlocksOfSuper> scales{};
  float most = 0;
  for (size_t run = 0; run * kRun < weights.size(); ++run) {
    for (const float weight :
         weights.subspan(run * kRun, std::min(kRun, weights.size() - run * kRun))) {
      if (std::fabs(weight) > std::fabs(scales[run]) * 32) scales[run] = weight / -32;
    }
    most = std::max(most, std::fabs(scales[run]));
  }
  const float shared = to_half(most / kMostSignedPart);
  for (size_t b = 0; b < blocks.size(); ++b) {
    blocks[b] = {.scale = shared};
    blocks[b].values.fill(32);
    for (size_t h = 0; h < 2; ++h) {
      const size_t run = 2 * b + h;
      const int32_t part = part_of(scales[run], shared, kMostSignedPart);
      blocks[b].parts[h] = part;
      if (run * kRun >= weights.size()) continue;
      const auto some = weights.subspan(run * kRun, std::min(kRun, weights.size() - run * kRun));
      const float scale = shared * static_cast<float>(part);
      WeightBlock fitted{.scale = scale, .minimum = -32 * scale};
      fill_values(fitted, some, 0, 63);
      std::copy_n(fitted.values.begin(), some.size(),
                  blocks[b].values.begin() + static_cast<std::ptrdiff_t>(h * kRun));
    }
  }
}

void add_bits(std::span<std::byte> matrix, size_t index, uint32_t bits) {
  uint32_t word = 0;
  std::memcpy(&word, matrix.data() + index * 4, 4);
  word |= bits;
  std::memcpy(matrix.data() + index * 4, &word, 4);
}

// The bits that a block's scale or minimum is stored as.
uint32_t scale_bits(float value, MatrixFormat format) {
  return block_traits(format).half_scales ? half_from_float(value) : bfloat_from_float(value);
}

// Where a block and its column's share of it lie, in words.
struct StoredPlace {
  size_t block;   // its first
  size_t super;   // of what multiplies its scales
  size_t group;   // of 8 columns
  size_t column;  // of the group's
  size_t word;    // of 4 that hold 8 columns
  uint32_t half;  // bits to shift to the half of it

  StoredPlace(const BlockPlace& place, MatrixFormat format) {
    const size_t in_panel = place.column % 64;
    const size_t panel = place.column / 64 * panel_words(format, place.k);
    const size_t size = block_words(format), extra = block_traits(format).super_words;
    super = panel + place.block_index / kBlocksOfSuper * (kBlocksOfSuper * size + extra);
    block = super + extra + place.block_index % kBlocksOfSuper * size;
    group = in_panel / 8;
    column = in_panel % 8;
    word = in_panel % 4;
    half = column < 4 ? 0u : 16u;
  }
};

// Their places without supers are those of blocks one after the other.
void store_values(std::span<std::byte> matrix, const StoredPlace& at, const WeightBlock& block,
                  uint32_t bits) {
  const size_t high = at.block + 256;  // upper bits of values of 5 or 6
  for (size_t i = 0; i < kBlockSteps; ++i) {
    const auto value = static_cast<uint32_t>(block.values[i]);
    const size_t run = i / 4, place = run * 8 + at.group;
    const auto step = static_cast<uint32_t>(i % 4);
    if (bits == 16) {
      add_bits(matrix, at.block + place * 16 + step * 4 + at.word, value << at.half);
      continue;
    }
    if (bits == 8) {
      add_bits(matrix, at.block + place * 8 + at.column, (value & 255u) << (8 * step));
      continue;
    }
    add_bits(matrix, at.block + place * 4 + at.word, (value & 15u) << (at.half + 4 * step));
    const auto column = static_cast<uint32_t>(at.column), word = static_cast<uint32_t>(at.word);
    if (bits == 5) {
      add_bits(matrix, high + at.group * 8 + run, (value >> 4u) << (8 * step + column));
    } else if (bits == 6) {
      add_bits(matrix, high + (at.group * 8 + run) * 2 + column / 4,
               (value >> 4u) << (8 * step + 2 * word));
    }
  }
}

void store_scales(std::span<std::byte> matrix, const StoredPlace& at, const WeightBlock& block,
                  MatrixFormat format) {
  const BlockTraits of = block_traits(format);
  const size_t scales = at.block + size_t{kBlockSteps} * 2 * of.bits;
  const size_t byte = 8 * at.word;  // its first bit, of words for 4 columns
  const size_t of_column = at.column / 4;
  if (format == MatrixFormat::kMxfp4) {
    const auto exponent = static_cast<uint32_t>(std::ilogb(block.scale) + 128);
    add_bits(matrix, scales + at.group * 2 + of_column, exponent << byte);
    return;
  }
  if (!has_supers(format)) {
    const size_t place = scales + at.group * 4 + at.word;
    add_bits(matrix, place, scale_bits(block.scale, format) << at.half);
    if (of.minima) add_bits(matrix, place + 32, scale_bits(block.minimum, format) << at.half);
    return;
  }
  const size_t place = scales + at.group * of.scale_words;
  if (format == MatrixFormat::kQ6K) {
    for (size_t h = 0; h < 2; ++h) {
      add_bits(matrix, place + 2 * h + of_column,
               (static_cast<uint32_t>(block.parts[h]) & 255u) << byte);
    }
  } else {
    const auto minimum = static_cast<uint32_t>(block.minimum_part);
    add_bits(matrix, place + of_column,
             (static_cast<uint32_t>(block.parts[0]) | (minimum & 3u) << 6u) << byte);
    add_bits(matrix, place + 2, (minimum >> 2u) << (4 * at.column));
  }
  add_bits(matrix, at.super + at.group * 4 + at.word, scale_bits(block.scale, format) << at.half);
  if (format == MatrixFormat::kQ6K) return;
  add_bits(matrix, at.super + 32 + at.group * 4 + at.word,
           scale_bits(block.minimum, format) << at.half);
}

}  // namespace

float block_limit(MatrixFormat format) {
  if (format == MatrixFormat::kBF16) return INFINITY;
  return block_traits(format).half_scales && format != MatrixFormat::kMxfp4 ? 65504.0f : 1e38f;
}

bool fits_blocks(std::span<const float> weights, MatrixFormat format) {
  if (format == MatrixFormat::kBF16) return true;
  return std::all_of(weights.begin(), weights.end(), [limit = block_limit(format)](float weight) {
    return std::fabs(weight) < limit;
  });
}

WeightBlock quantise_block(std::span<const float> weights, MatrixFormat format) {
  WeightBlock block;
  const BlockTraits of = block_traits(format);
  if (format == MatrixFormat::kBF16) {
    for (size_t i = 0; i < weights.size(); ++i) block.values[i] = bfloat_from_float(weights[i]);
    return block;
  }
  if (of.bits == 8) {
    block.scale = scale_above(largest(weights) / 127, format);
    fill_values(block, weights, -127, 127);
    return block;
  }
  if (format == MatrixFormat::kMxfp4) return nearest_mxfp4(weights);
  block = of.minima ? search_minimum(weights, format) : search_signed(weights, format);
  // What fills a block up stands for 0 where the format can say so.
  std::fill(block.values.begin() + static_cast<std::ptrdiff_t>(weights.size()), block.values.end(),
            static_cast<int32_t>(of.offset));
  return block;
}

void quantise_blocks(std::span<const float> weights, MatrixFormat format,
                     std::span<WeightBlock> blocks) {
  if (format == MatrixFormat::kQ6K) {
    quantise_q6k(weights, blocks);
  } else if (has_supers(format)) {
    quantise_with_minima(weights, format, blocks);
  } else {
    blocks[0] = quantise_block(weights, format);
  }
}

void store_block(std::span<std::byte> matrix, const BlockPlace& place, const WeightBlock& block,
                 MatrixFormat format) {
  if (format == MatrixFormat::kMxfp4 && std::ilogb(block.scale) < kLeastMxfp4) return;
  const StoredPlace at(place, format);
  store_values(matrix, at, block, block_traits(format).bits);
  if (format == MatrixFormat::kBF16) return;
  // What 8 blocks share is in place after the first of them; adding the same bits changes nothing.
  store_scales(matrix, at, block, format);
}

}  // namespace vkformer
