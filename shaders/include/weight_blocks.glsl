// needs: kFormat.
// Weights in blocks of 32 steps of K (weight_blocks.h), in pieces: what the words of a group of 8
// columns stand for. Addresses count vectors of 4 words from the panel on.
#ifndef VKF_WEIGHT_BLOCKS_GLSL
#define VKF_WEIGHT_BLOCKS_GLSL
#include "weight_blocks.h"

const uint kRunSteps = 4u;  // steps of K whose values lie together
const uint kGroups8 = 8u;   // groups of a panel

uint run_vectors() { return kFormat == kFormatBf16 ? 4u : kFormat == kFormatQ8 ? 2u : 1u; }
uint scales_at() { return 8u * kGroups8 * run_vectors(); }
uint block_vectors() {
  return scales_at() + (kFormat == kFormatBf16 ? 0u : kFormat == kFormatQ4M ? 16u : 8u);
}

vec4 low_bfloats(uvec4 words) { return uintBitsToFloat(words << 16); }
vec4 high_bfloats(uvec4 words) { return uintBitsToFloat(words & 0xffff0000u); }

// Of a block and the columns of a group: a weight is offset + scale * value.
struct BlockScales {
  vec4 low, high;
  vec4 low_offset, high_offset;
};
BlockScales block_scales(uvec4 scales, uvec4 minima) {
  BlockScales s;
  s.low = low_bfloats(scales);
  s.high = high_bfloats(scales);
  s.low_offset = kFormat == kFormatQ4M ? low_bfloats(minima) : -8.0 * s.low;
  s.high_offset = kFormat == kFormatQ4M ? high_bfloats(minima) : -8.0 * s.high;
  return s;
}

// The words of 4 steps, as many of them as the format has.
struct WeightRun {
  uvec4 words[4];
};

// The weights of step s of a run. Every one is exact, or rounded once (Q4M).
void weights_of(WeightRun run, BlockScales scales, uint s, out vec4 low, out vec4 high) {
  if (kFormat == kFormatBf16) {
    low = low_bfloats(run.words[s]);
    high = high_bfloats(run.words[s]);
  } else if (kFormat == kFormatQ8) {
    const int at = int(8u * s);
    low = scales.low * vec4(bitfieldExtract(ivec4(run.words[0]), at, 8));
    high = scales.high * vec4(bitfieldExtract(ivec4(run.words[1]), at, 8));
  } else {
    const uvec4 shifted = run.words[0] >> (4u * s);
    low = fma(vec4(ivec4(shifted & 15u)), scales.low, scales.low_offset);
    high = fma(vec4(ivec4((shifted >> 16) & 15u)), scales.high, scales.high_offset);
  }
}
#endif
