#include "weights/quantize.h"

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

// Values stand for -8 to 7 steps, in Q5_0 -16 to 15 and so on. The sign of the scale chooses the
// side that has one more.
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

// What codes of 4 bits stand for, to be scaled.
float coded_value(int32_t code, MatrixFormat format) {
  const auto bits = static_cast<uint32_t>(code);
  return static_cast<float>(format == MatrixFormat::kMxfp4 ? doubled_e2m1(bits) : iq4_value(bits));
}

// The codes that come nearest, by a scale that is given.
void fill_codes(WeightBlock& block, float scale, std::span<const float> weights,
                MatrixFormat format) {
  for (size_t i = 0; i < weights.size(); ++i) {
    float least = INFINITY;
    for (int32_t code = 0; code < 16; ++code) {
      const float error = std::fabs(scale * coded_value(code, format) - weights[i]);
      if (error >= least) continue;
      least = error;
      block.values[i] = code;
    }
  }
}

// The power of 2 that leaves the largest weight inside E2M1's 6.
WeightBlock nearest_mxfp4(std::span<const float> weights) {
  WeightBlock block;
  int exponent = 0;
  std::frexp(largest(weights), &exponent);  // largest in [2^(exponent - 1), 2^exponent)
  // 6 is 1.5 * 2^2. What lies above it, up to 8, becomes 6.
  block.scale = std::ldexp(1.0f, std::max(exponent - 4, kLeastMxfp4));
  fill_codes(block, block.scale, weights, MatrixFormat::kMxfp4);
  return block;
}

// The scale of IQ4_NL's table, of either sign, that has the least squared error.
WeightBlock nearest_iq4(std::span<const float> weights, MatrixFormat format) {
  WeightBlock best;
  double best_error = INFINITY;
  const float most = largest(weights);
  for (const float end : {-127.0f, 127.0f, -119.0f, 119.0f, -113.0f, 113.0f, -105.0f, 105.0f}) {
    WeightBlock block{.scale = to_scale(most / end, format)};
    fill_codes(block, block.scale, weights, format);
    double error = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double difference =
          double{block.scale} * double{coded_value(block.values[i], format)} - double{weights[i]};
      error += difference * difference;
    }
    if (error >= best_error) continue;
    best_error = error;
    best = block;
  }
  return best;
}

float to_half(float value) {
  return float_from_half(half_from_float(value));
}

// What a value is of what blocks share, in whole numbers from `least` to `most`.
int32_t part_of(float value, float shared, int32_t least, int32_t most) {
  return shared == 0 ? 0 : nearest(value / shared, least, most);
}

// Weights [first, first + count), as many of them as there are.
std::span<const float> run_of(std::span<const float> weights, size_t first, size_t count) {
  return first >= weights.size() ? std::span<const float>()
                                 : weights.subspan(first, std::min(count, weights.size() - first));
}

// How a format divides 256 weights that share d, and m.
struct SuperTraits {
  size_t run = kBlockSteps;  // weights that share a scale
  int32_t least = 0;         // of its part
  int32_t most = 63;
  int32_t most_minimum = 63;
};
SuperTraits super_traits(MatrixFormat format) {
  switch (format) {
    case MatrixFormat::kQ2K:
      return {kBlockSteps / 2, 0, 15, 15};
    case MatrixFormat::kQ3K:
      return {kBlockSteps / 2, -32, 31, 0};
    case MatrixFormat::kQ6K:
      return {kBlockSteps / 2, -127, 127, 0};
    case MatrixFormat::kIq4Xs:
      return {kBlockSteps, -32, 31, 0};
    default:
      return {};
  }
}

// A run as if it were alone, with a scale that is not rounded.
WeightBlock alone(std::span<const float> weights, MatrixFormat format) {
  if (weights.empty()) return {};
  if (super_minima(format)) return search_minimum(weights, format);
  return format == MatrixFormat::kIq4Xs ? nearest_iq4(weights, format)
                                        : search_signed(weights, format);
}

// A run with the scale and the minimum that its parts give it.
void fill_run(WeightBlock& run, std::span<const float> weights, MatrixFormat format) {
  if (format == MatrixFormat::kIq4Xs) return fill_codes(run, run.scale, weights, format);
  fill_values(run, weights, 0, (1 << block_traits(format).bits) - 1);
}

// Every run as if it were alone, then scales and minima as multiples of what they share.
void quantize_super(std::span<const float> weights, MatrixFormat format,
                    std::span<WeightBlock> blocks) {
  const SuperTraits of = super_traits(format);
  const size_t runs = blocks.size() * kBlockSteps / of.run;
  std::array<WeightBlock, 2 * kBlocksOfSuper> fitted;
  float scale = 0, minimum = 0;
  for (size_t r = 0; r < runs; ++r) {
    fitted[r] = alone(run_of(weights, r * of.run, of.run), format);
    if (std::fabs(fitted[r].scale) > std::fabs(scale)) scale = fitted[r].scale;
    minimum = std::max(minimum, -fitted[r].minimum);
  }
  // The largest scale takes the end that has one more.
  scale = to_half(scale / static_cast<float>(of.least < 0 ? of.least : of.most));
  minimum = super_minima(format) ? to_half(minimum / static_cast<float>(of.most_minimum)) : 0;
  for (WeightBlock& block : blocks) {
    block = WeightBlock{.scale = scale, .minimum = minimum};
    // What fills a block up stands for 0 where the format can say so.
    block.values.fill(static_cast<int32_t>(block_traits(format).offset));
  }
  for (size_t r = 0; r < runs; ++r) {
    const size_t first = r * of.run;
    const auto some = run_of(weights, first, of.run);
    const int32_t part = part_of(fitted[r].scale, scale, of.least, of.most);
    const int32_t below = part_of(-fitted[r].minimum, minimum, 0, of.most_minimum);
    WeightBlock run{.scale = scale * static_cast<float>(part)};
    run.minimum = super_minima(format)
                      ? -minimum * static_cast<float>(below)
                      : -static_cast<float>(block_traits(format).offset) * run.scale;
    fill_run(run, some, format);
    WeightBlock& block = blocks[first / kBlockSteps];
    std::copy_n(run.values.begin(), some.size(),
                block.values.begin() + static_cast<std::ptrdiff_t>(first % kBlockSteps));
    for (size_t h = first % kBlockSteps / (kBlockSteps / 2); h < 2; ++h) {
      block.parts[h] = part;
      block.minimum_parts[h] = below;
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
  size_t block;   // Its first.
  size_t super;   // Of what multiplies its scales.
  size_t group;   // Of 8 columns.
  size_t column;  // Of the group's.
  size_t word;    // Of 4 that hold 8 columns.
  uint32_t half;  // Bits to shift to the half of it.

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

// Bits of 4 steps, apart by `stride`: what a word has of a run and a column, before it is shifted
// to the column's place.
uint32_t run_bits(const WeightBlock& block, size_t run, uint32_t shift, uint32_t mask,
                  uint32_t stride) {
  uint32_t bits = 0;
  for (uint32_t step = 0; step < 4; ++step) {
    bits |= (static_cast<uint32_t>(block.values[4 * run + step]) >> shift & mask)
            << (stride * step);
  }
  return bits;
}

void store_values(std::span<std::byte> matrix, const StoredPlace& at, const WeightBlock& block,
                  MatrixFormat format) {
  const uint32_t bits = block_traits(format).bits, base = base_bits(format);
  const auto column = static_cast<uint32_t>(at.column), pair = static_cast<uint32_t>(2 * at.word);
  const size_t high = at.block + size_t{64} * base;
  for (size_t run = 0; run < kBlockSteps / 4; ++run) {
    const size_t place = run * 8 + at.group;     // of words by run and then by group
    const size_t by_group = at.group * 8 + run;  // and of the others
    if (bits == 16) {
      for (size_t step = 0; step < 4; ++step) {
        const auto value = static_cast<uint32_t>(block.values[4 * run + step]);
        add_bits(matrix, at.block + place * 16 + step * 4 + at.word, value << at.half);
      }
    } else if (bits == 8) {
      add_bits(matrix, at.block + place * 8 + at.column, run_bits(block, run, 0, 255, 8));
    } else if (base == 2) {
      add_bits(matrix, at.block + by_group * 2 + at.column / 4,
               run_bits(block, run, 0, 3, 8) << pair);
    } else {
      add_bits(matrix, at.block + place * 4 + at.word, run_bits(block, run, 0, 15, 4) << at.half);
    }
    if (bits - base == 1) {
      add_bits(matrix, high + by_group, run_bits(block, run, base, 1, 8) << column);
    } else if (bits - base == 2) {
      add_bits(matrix, high + by_group * 2 + at.column / 4,
               run_bits(block, run, base, 3, 8) << pair);
    }
  }
}

// What every block has of what multiplies d and m.
void store_parts(std::span<std::byte> matrix, const StoredPlace& at, const WeightBlock& block,
                 MatrixFormat format) {
  const BlockTraits of = block_traits(format);
  const size_t first = at.block + size_t{kBlockSteps} * 2 * of.bits + at.group * of.scale_words;
  const size_t place = first + at.column / 4, byte = 8 * at.word;
  if (of.scale_words == 3) {
    const auto minimum = static_cast<uint32_t>(block.minimum_parts[0]);
    add_bits(matrix, place, (static_cast<uint32_t>(block.parts[0]) | (minimum & 3u) << 6u) << byte);
    add_bits(matrix, first + 2, (minimum >> 2u) << (4 * at.column));
    return;
  }
  for (size_t h = 0; h < of.scale_words / 2; ++h) {
    const auto part = static_cast<uint32_t>(block.parts[h]);
    const auto minimum = static_cast<uint32_t>(block.minimum_parts[h]);
    add_bits(matrix, place + 2 * h,
             (super_minima(format) ? minimum << 4u | part : part & 255u) << byte);
  }
}

void store_scales(std::span<std::byte> matrix, const StoredPlace& at, const WeightBlock& block,
                  MatrixFormat format) {
  const BlockTraits of = block_traits(format);
  const size_t scales = at.block + size_t{kBlockSteps} * 2 * of.bits;
  if (format == MatrixFormat::kMxfp4) {
    const auto exponent = static_cast<uint32_t>(std::ilogb(block.scale) + 128);
    add_bits(matrix, scales + at.group * 2 + at.column / 4, exponent << (8 * at.word));
    return;
  }
  const bool shared = has_supers(format);
  const size_t place = (shared ? at.super : scales) + at.group * 4 + at.word;
  add_bits(matrix, place, scale_bits(block.scale, format) << at.half);
  if (of.minima || super_minima(format)) {
    add_bits(matrix, place + 32, scale_bits(block.minimum, format) << at.half);
  }
  if (shared) store_parts(matrix, at, block, format);
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

WeightBlock quantize_block(std::span<const float> weights, MatrixFormat format) {
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
  if (format == MatrixFormat::kIq4Nl) return nearest_iq4(weights, format);
  block = of.minima ? search_minimum(weights, format) : search_signed(weights, format);
  // What fills a block up stands for 0 where the format can say so.
  std::fill(block.values.begin() + static_cast<std::ptrdiff_t>(weights.size()), block.values.end(),
            static_cast<int32_t>(of.offset));
  return block;
}

void quantize_blocks(std::span<const float> weights, MatrixFormat format,
                     std::span<WeightBlock> blocks) {
  if (has_supers(format)) {
    quantize_super(weights, format, blocks);
  } else {
    blocks[0] = quantize_block(weights, format);
  }
}

void store_block(std::span<std::byte> matrix, const BlockPlace& place, const WeightBlock& block,
                 MatrixFormat format) {
  if (format == MatrixFormat::kMxfp4 && std::ilogb(block.scale) < kLeastMxfp4) return;
  const StoredPlace at(place, format);
  store_values(matrix, at, block, format);
  if (format == MatrixFormat::kBF16) return;
  // What 8 blocks share is in place after the first of them; adding the same bits changes nothing.
  store_scales(matrix, at, block, format);
}

void store_quantized(std::span<std::byte> matrix, const BlockPlace& first,
                     std::span<const float> weights, MatrixFormat format) {
  std::array<WeightBlock, kBlocksOfSuper> blocks;
  const size_t count = (weights.size() + kBlockSteps - 1) / kBlockSteps;
  quantize_blocks(weights, format, std::span(blocks).first(count));
  for (size_t b = 0; b < count; ++b) {
    store_block(matrix, {first.column, first.block_index + b, first.k}, blocks[b], format);
  }
}

}  // namespace vkformer
