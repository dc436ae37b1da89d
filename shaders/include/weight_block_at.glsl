// needs: kFormat, block_word(i): word i of the weight's binding (includes weight_blocks.glsl).
// One weight of a packed matrix in blocks, for kernels that take them one at a time.
#ifndef VKF_WEIGHT_BLOCK_AT_GLSL
#define VKF_WEIGHT_BLOCK_AT_GLSL
#include "weight_blocks.glsl"

float bfloat_of(uint word, uint half_word) {
  return uintBitsToFloat(half_word == 0u ? word << 16 : word & 0xffff0000u);
}

// Weight (k, column) of the panel whose words begin at `panel`; column < 64.
float block_weight(uint panel, uint k, uint column) {
  const uint block = panel + k / kBlockSteps * (4u * block_vectors());
  const uint group = column / 8u;
  const uint s = k % kRunSteps;
  const uint run = block + (k % kBlockSteps / kRunSteps * kGroups8 + group) * (4u * run_vectors());
  const uint word = column % 4u;
  const uint half_word = column / 4u % 2u;  // which half has it, of words for two columns
  if (kFormat == kFormatBf16) return bfloat_of(block_word(run + 4u * s + word), half_word);
  const uint scale_word = block + 4u * (scales_at() + group) + word;
  const float scale = bfloat_of(block_word(scale_word), half_word);
  if (kFormat == kFormatQ8) {
    const int value = bitfieldExtract(int(block_word(run + column % 8u)), int(8u * s), 8);
    return scale * float(value);
  }
  const uint value = block_word(run + word) >> (16u * half_word + 4u * s) & 15u;
  const float offset =
      kFormat == kFormatQ4M ? bfloat_of(block_word(scale_word + 32u), half_word) : -8.0 * scale;
  return fma(float(value), scale, offset);
}
#endif
