// needs: kFormat.
// Weights in blocks of 32 steps of K (weight_blocks.h), in pieces: what the words of a group of 8
// columns stand for. Addresses count vectors of 4 words from the panel on.
#ifndef VKF_WEIGHT_BLOCKS_GLSL
#define VKF_WEIGHT_BLOCKS_GLSL
#include "weight_blocks.h"

const uint kRunSteps = 4u;  // steps of K whose values lie together
const uint kGroups8 = 8u;   // groups of a panel

bool values_in_bytes() { return kFormat == kFormatQ8 || kFormat == kFormatQ8_0; }
bool values_in_table() { return kFormat == kFormatIq4Nl || kFormat == kFormatIq4Xs; }
// Values whose lower 2 bits lie as the upper ones of others.
bool values_in_pairs() { return kFormat == kFormatQ2K || kFormat == kFormatQ3K; }
bool scales_of_supers() { return kFormat >= kFormatQ2K; }
bool minima_of_supers() {
  return kFormat == kFormatQ2K || kFormat == kFormatQ4K || kFormat == kFormatQ5K;
}
// Scales in signed bytes that d multiplies.
bool signed_parts() {
  return kFormat == kFormatQ3K || kFormat == kFormatQ6K || kFormat == kFormatIq4Xs;
}
// Whether the halves of a block have scales of their own.
bool scales_by_half() { return signed_parts() && kFormat != kFormatIq4Xs || kFormat == kFormatQ2K; }
bool has_minima() {
  return kFormat == kFormatQ4M || kFormat == kFormatQ4_1 || kFormat == kFormatQ5_1;
}
// What is taken off a value without a sign; 0 with a minimum.
float value_offset() {
  return kFormat == kFormatQ4 || kFormat == kFormatQ4_0 ? 8.0
         : kFormat == kFormatQ5_0                       ? 16.0
         : kFormat == kFormatQ6K                        ? 32.0
         : kFormat == kFormatQ3K                        ? 4.0
                                                        : 0.0;
}

uint run_vectors() { return kFormat == kFormatBf16 ? 4u : values_in_bytes() ? 2u : 1u; }
// Words of a run and group with the upper bits of values.
uint high_words() {
  return kFormat == kFormatQ6K ? 2u
         : kFormat == kFormatQ5_0 || kFormat == kFormatQ5_1 || kFormat == kFormatQ5K ||
                 kFormat == kFormatQ3K
             ? 1u
             : 0u;
}
uint high_at() { return values_in_pairs() ? 4u * kGroups8 : 8u * kGroups8 * run_vectors(); }
uint scales_at() { return high_at() + 2u * kGroups8 * high_words(); }
// Words of a group's scales and minima.
uint scale_words() {
  return kFormat == kFormatBf16                               ? 0u
         : kFormat == kFormatMxfp4 || kFormat == kFormatIq4Xs ? 2u
         : kFormat == kFormatQ4K || kFormat == kFormatQ5K     ? 3u
         : has_minima()                                       ? 8u
                                                              : 4u;
}
uint block_vectors() { return scales_at() + kGroups8 / 4u * scale_words(); }
uint super_vectors() { return minima_of_supers() ? 16u : scales_of_supers() ? 8u : 0u; }
// Where a block begins.
uint block_at(uint block) {
  const uint supers = scales_of_supers() ? block / kBlocksOfSuper + 1u : 0u;
  return block * block_vectors() + supers * super_vectors();
}
// Where what multiplies its scales begins.
uint super_at(uint block) {
  return block / kBlocksOfSuper * (kBlocksOfSuper * block_vectors() + super_vectors());
}
uint panel_vectors(uint blocks) {
  const uint supers = (blocks + kBlocksOfSuper - 1u) / kBlocksOfSuper;
  return blocks * block_vectors() + supers * super_vectors();
}

vec4 low_bfloats(uvec4 words) { return uintBitsToFloat(words << 16); }
vec4 high_bfloats(uvec4 words) { return uintBitsToFloat(words & 0xffff0000u); }

// Finite halves by integers: a driver may take the small ones, whose exponent is 0, for zeros.
vec4 finite_halves(uvec4 bits) {
  const uvec4 size = bits & 0x7fffu;
  const vec4 whole = uintBitsToFloat((size << 13) + 0x38000000u);
  const vec4 small = vec4(size) * 5.9604644775390625e-8;  // 2^-24
  const uvec4 found = floatBitsToUint(mix(whole, small, lessThan(size, uvec4(0x400u))));
  return uintBitsToFloat(found | (bits & 0x8000u) << 16);
}
vec4 low_scales(uvec4 words) {
  return kFormat <= kFormatQ4M ? low_bfloats(words) : finite_halves(words & 0xffffu);
}
vec4 high_scales(uvec4 words) {
  return kFormat <= kFormatQ4M ? high_bfloats(words) : finite_halves(words >> 16);
}
// Powers of 2 by their exponents plus 128, 4 bytes of a word.
vec4 exponent_scales(uint word) {
  return uintBitsToFloat(max(uvec4(word) >> uvec4(0u, 8u, 16u, 24u) & 255u, uvec4(2u)) - 1u << 23);
}
vec4 signed_bytes(uint word) {
  return vec4(bitfieldExtract(int(word), 0, 8), bitfieldExtract(int(word), 8, 8),
              bitfieldExtract(int(word), 16, 8), bitfieldExtract(int(word), 24, 8));
}

uvec4 low_bytes(uint word) { return uvec4(word) >> uvec4(0u, 8u, 16u, 24u) & 255u; }

// Of a block and the columns of a group: a weight is offset + scale * value.
struct BlockScales {
  vec4 low, high;
  vec4 low_offset, high_offset;
  uvec4 parts;  // of scales that differ between the halves of a block, which run_scales multiplies
};
// From the words of a group's scales, and its minima where the format has them.
BlockScales block_scales(uvec4 scales, uvec4 minima) {
  BlockScales s;
  if (kFormat == kFormatMxfp4) {
    s.low = exponent_scales(scales.x);
    s.high = exponent_scales(scales.y);
  } else {
    s.low = low_scales(scales);
    s.high = high_scales(scales);
  }
  s.low_offset = has_minima() ? low_scales(minima) : -value_offset() * s.low;
  s.high_offset = has_minima() ? high_scales(minima) : -value_offset() * s.high;
  s.parts = uvec4(0u);
  return s;
}
// The same of formats whose `parts` multiply d and m.
BlockScales super_scales(uvec4 parts, uvec4 d, uvec4 m) {
  BlockScales s;
  s.low = low_scales(d);
  s.high = high_scales(d);
  s.low_offset = -low_scales(m);
  s.high_offset = -high_scales(m);
  s.parts = parts;
  if (kFormat == kFormatQ4K || kFormat == kFormatQ5K) {
    const uvec4 low = low_bytes(parts.x), high = low_bytes(parts.y);
    const uvec4 upper = uvec4(parts.z) >> uvec4(0u, 4u, 8u, 12u);
    s.low *= vec4(low & 63u);
    s.high *= vec4(high & 63u);
    s.low_offset *= vec4(low >> 6 | (upper & 15u) << 2);
    s.high_offset *= vec4(high >> 6 | (upper >> 16 & 15u) << 2);
  }
  return s;
}
// The scales of a run's steps.
BlockScales run_scales(BlockScales s, uint run) {
  const uvec2 parts = run < 4u ? s.parts.xy : s.parts.zw;
  if (signed_parts()) {
    s.low *= signed_bytes(parts.x);
    s.high *= signed_bytes(parts.y);
    s.low_offset = -value_offset() * s.low;
    s.high_offset = -value_offset() * s.high;
  } else if (kFormat == kFormatQ2K) {
    const uvec4 low = low_bytes(parts.x), high = low_bytes(parts.y);
    s.low *= vec4(low & 15u);
    s.high *= vec4(high & 15u);
    s.low_offset *= vec4(low >> 4);
    s.high_offset *= vec4(high >> 4);
  }
  return s;
}

// The words of 4 steps, as many of them as the format has; upper bits are in words[1].
struct WeightRun {
  uvec4 words[4];
};

// Twice what codes of E2M1 stand for.
ivec4 doubled_e2m1(uvec4 codes) {
  const uvec4 exponent = codes >> 1 & 3u;
  const uvec4 small = codes & 1u;
  const uvec4 size = mix(small | 2u, small, equal(exponent, uvec4(0u)))
                     << max(exponent, uvec4(1u)) - 1u;
  return mix(ivec4(size), -ivec4(size), notEqual(codes & 8u, uvec4(0u)));
}

vec4 table_values(uvec4 codes) {
  const uvec4 low = mix(uvec4(kIq4Values.x), uvec4(kIq4Values.y), notEqual(codes & 4u, uvec4(0u)));
  const uvec4 high = mix(uvec4(kIq4Values.z), uvec4(kIq4Values.w), notEqual(codes & 4u, uvec4(0u)));
  const uvec4 words = mix(low, high, notEqual(codes & 8u, uvec4(0u)));
  return vec4(ivec4(words << 24u - 8u * (codes & 3u)) >> 24);
}
// What values of 4 bits stand for, to be scaled.
vec4 coded_values(uvec4 codes) {
  if (kFormat == kFormatMxfp4) return vec4(doubled_e2m1(codes));
  return values_in_table() ? table_values(codes) : vec4(ivec4(codes));
}

// The weights of step s of a run. Every one is exact, or rounded once.
void weights_of(WeightRun run, BlockScales scales, uint s, out vec4 low, out vec4 high) {
  if (kFormat == kFormatBf16) {
    low = low_bfloats(run.words[s]);
    high = high_bfloats(run.words[s]);
    return;
  }
  if (values_in_bytes()) {
    const int at = int(8u * s);
    low = scales.low * vec4(bitfieldExtract(ivec4(run.words[0]), at, 8));
    high = scales.high * vec4(bitfieldExtract(ivec4(run.words[1]), at, 8));
    return;
  }
  const uvec4 pairs = 8u * s + uvec4(0u, 2u, 4u, 6u);
  const uvec4 bits = 8u * s + uvec4(0u, 1u, 2u, 3u);
  const uvec4 shifted = run.words[0] >> (4u * s);
  uvec4 low_values = values_in_pairs() ? uvec4(run.words[0].x) >> pairs & 3u : shifted & 15u;
  uvec4 high_values =
      values_in_pairs() ? uvec4(run.words[0].y) >> pairs & 3u : (shifted >> 16) & 15u;
  const uint base = values_in_pairs() ? 2u : 4u;  // bits that came from there
  if (high_words() == 1u) {
    low_values |= (uvec4(run.words[1].x) >> bits & 1u) << base;
    high_values |= (uvec4(run.words[1].x) >> bits + 4u & 1u) << base;
  } else if (high_words() == 2u) {
    low_values |= (uvec4(run.words[1].x) >> pairs & 3u) << base;
    high_values |= (uvec4(run.words[1].y) >> pairs & 3u) << base;
  }
  if (kFormat == kFormatMxfp4 || values_in_table()) {
    low = scales.low * coded_values(low_values);
    high = scales.high * coded_values(high_values);
    return;
  }
  low = fma(vec4(ivec4(low_values)), scales.low, scales.low_offset);
  high = fma(vec4(ivec4(high_values)), scales.high, scales.high_offset);
}
#endif
