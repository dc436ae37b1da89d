// needs: kFormat, block_word(i): word i of the weight's binding, block_words(i): words 4 i to 4 i +
// 3
//        (includes weight_blocks.glsl).
// Weights of a packed matrix in blocks by step and column, for kernels that take few at a time.
#ifndef VKF_WEIGHT_BLOCK_AT_GLSL
#define VKF_WEIGHT_BLOCK_AT_GLSL
#include "weight_blocks.glsl"

// Scales and minima, as halves or bfloat16, of one half of the words for 8 columns.
vec4 half_of_scales(uvec4 words, uint half_word) {
  if (kFormat > kFormatQ4M) return finite_halves(words >> 16u * half_word & 0xffffu);
  return half_word == 0u ? low_bfloats(words) : high_bfloats(words);
}

// Of four columns: a weight is offset + scale * value.
struct QuadScales {
  vec4 scale;
  vec4 offset;
};
// `block` and `super`: the vectors where the block, and what multiplies its scales, begin; `late`:
// whether it is one of the last 16 steps.
QuadScales quad_scales(uint block, uint super, uint group, uint half_word, bool late) {
  QuadScales of;
  const uint first = block + scales_at();
  // Where the format has no minima apart. Of 3 words by 4 less 1: a loop holds no product then.
  const uint word =
      scale_words() == 3u ? 4u * (first + group) - group : 4u * first + scale_words() * group;
  if (kFormat == kFormatMxfp4) {
    of.scale = exponent_scales(block_word(word + half_word));
  } else if (scales_of_supers()) {
    of.scale = half_of_scales(block_words(super + group), half_word);
  } else {
    of.scale = half_of_scales(block_words(first + group), half_word);
  }
  const uint half_of_block = late && scale_words() == 4u ? 2u : 0u;
  if (minima_of_supers()) {
    const uvec4 parts = low_bytes(block_word(word + half_of_block + half_word));
    of.offset = -half_of_scales(block_words(super + group + 8u), half_word);
    if (kFormat == kFormatQ2K) {
      of.scale *= vec4(parts & 15u);
      of.offset *= vec4(parts >> 4);
      return of;
    }
    // Words are shifted before their parts are: four shifts that a loop holds are four registers.
    const uint upper = block_word(word + 2u) >> 16u * half_word;
    of.scale *= vec4(parts & 63u);
    of.offset *= vec4(parts >> 6 | (uvec4(upper) >> uvec4(0u, 4u, 8u, 12u) & 15u) << 2);
    return of;
  }
  if (signed_parts()) of.scale *= signed_bytes(block_word(word + half_of_block + half_word));
  of.offset = has_minima() ? half_of_scales(block_words(first + group + 8u), half_word)
                           : -value_offset() * of.scale;
  return of;
}

// Weights (k, column) to (k, column + 3) of the panel whose words begin at `panel`; column < 64 is
// a multiple of 4.
vec4 block_quad(uint panel, uint k, uint column) {
  const uint block = (panel >> 2) + block_at(k / kBlockSteps);
  const uint group = column / 8u;
  const uint half_word = column / 4u % 2u;  // which half has it, of words for two columns
  const uint s = k % kRunSteps;
  const uint run = k % kBlockSteps / kRunSteps;
  const uint first = block + (run * kGroups8 + group) * run_vectors();
  if (kFormat == kFormatBf16) {
    const uvec4 words = block_words(first + s);
    return half_word == 0u ? low_bfloats(words) : high_bfloats(words);
  }
  const QuadScales of =
      quad_scales(block, (panel >> 2) + super_at(k / kBlockSteps), group, half_word, run >= 4u);
  if (values_in_bytes()) {
    return of.scale * vec4(bitfieldExtract(ivec4(block_words(first + half_word)), int(8u * s), 8));
  }
  const uint columns = 8u * group + run;  // of words that lie by group and then by run
  const uvec4 pairs = uvec4(0u, 2u, 4u, 6u);
  uvec4 values =
      values_in_pairs()
          ? uvec4(block_word(4u * block + 2u * columns + half_word) >> 8u * s) >> pairs & 3u
          : block_words(first) >> 16u * half_word + 4u * s & 15u;
  const uint base = values_in_pairs() ? 2u : 4u;
  const uint high = 4u * (block + high_at()) + columns * high_words();
  if (high_words() == 1u) {
    const uint bits = block_word(high) >> 8u * s + 4u * half_word;
    values |= (uvec4(bits) >> uvec4(0u, 1u, 2u, 3u) & 1u) << base;
  } else if (high_words() == 2u) {
    values |= (uvec4(block_word(high + half_word) >> 8u * s) >> pairs & 3u) << base;
  }
  if (kFormat == kFormatMxfp4 || values_in_table()) return of.scale * coded_values(values);
  return fma(vec4(ivec4(values)), of.scale, of.offset);
}

// One weight; column < 64.
float block_weight(uint panel, uint k, uint column) {
  return block_quad(panel, k, column & ~3u)[column & 3u];
}
#endif
