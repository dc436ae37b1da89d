// needs: kFormat; with VKF_DOT8 integer dot products (includes weight_blocks.glsl, byte_rows.h).
// Products of bytes. A word has four values of a weight along K, as signed bytes. Sums of their
// products with those of a row (byte_rows.h) are scaled to what they stand for.
#ifndef VKF_BLOCK_DOTS_GLSL
#define VKF_BLOCK_DOTS_GLSL
#include "byte_rows.h"
#include "weight_blocks.glsl"

#if VKF_DOT8
#extension GL_EXT_spirv_intrinsics : require
// OpSDotKHR of four packed bytes. GLSL's own function for it is younger than most compilers of
// GLSL.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [ 6018, 6019 ],
                  id = 4450) int dot_of_bytes(uint a, uint b, spirv_literal int packed);
int dot4(uint a, uint b) { return dot_of_bytes(a, b, 0); }
#else
int signed_byte(uint word, int at) { return bitfieldExtract(int(word), at, 8); }
int dot4(uint a, uint b) {
  return signed_byte(a, 0) * signed_byte(b, 0) + signed_byte(a, 8) * signed_byte(b, 8) +
         signed_byte(a, 16) * signed_byte(b, 16) + signed_byte(a, 24) * signed_byte(b, 24);
}
#endif
ivec4 dots4(uvec4 a, uint b) {
  return ivec4(dot4(a.x, b), dot4(a.y, b), dot4(a.z, b), dot4(a.w, b));
}

// Bytes of the four nibbles in the lower half of each word.
uvec4 spread_nibbles(uvec4 words) {
  const uvec4 pairs = (words | words << 8) & 0x00ff00ffu;
  return (pairs | pairs << 4) & 0x0f0f0f0fu;
}
// Where a mask has ones, bits of `set`, else of `clear`. Of constants the compiler leaves two
// operations.
uint select_bits(uint mask, uint clear, uint set) { return clear ^ (clear ^ set) & mask; }
// The bytes that codes of 4 bits stand for; of MXFP4 doubled, as doubled_e2m1 has them.
uvec4 code_table() {
  if (kFormat == kFormatMxfp4) return uvec4(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);
  return kIq4Values;
}
// Four codes of 4 bits in bytes to what they stand for, which is a signed byte. It is done by
// selections from the 16 bytes of a table. Of one word at a time: compilers keep the order, and
// registers.
uint coded_word(uint codes) {
  const uvec4 table = code_table();
  uint mask[4];
  [[unroll]] for (uint bit = 0u; bit < 4u; ++bit) mask[bit] = (codes >> bit & 0x01010101u) * 255u;
  uint quarter[4];
  [[unroll]] for (uint q = 0u; q < 4u; ++q) {
    const uvec4 four = (uvec4(table[q]) >> uvec4(0u, 8u, 16u, 24u) & 255u) * 0x01010101u;
    quarter[q] = select_bits(mask[1], select_bits(mask[0], four.x, four.y),
                             select_bits(mask[0], four.z, four.w));
  }
  return select_bits(mask[3], select_bits(mask[2], quarter[0], quarter[1]),
                     select_bits(mask[2], quarter[2], quarter[3]));
}
uvec4 coded_bytes(uvec4 codes) {
  if (kFormat != kFormatMxfp4 && !values_in_table()) return codes;
  return uvec4(coded_word(codes.x), coded_word(codes.y), coded_word(codes.z), coded_word(codes.w));
}
// The values of a run, of columns c to c + 3 (quad 0) or of the others (quad 1). A word has four
// steps of one column.
uvec4 packed_quad(WeightRun run, uint quad) {
  const uvec4 pairs = uvec4(0u, 2u, 4u, 6u), bits = uvec4(0u, 1u, 2u, 3u);
  if (values_in_bytes()) return run.words[quad];
  uvec4 values;
  if (values_in_pairs()) {
    values = uvec4(run.words[0][quad]) >> pairs & 0x03030303u;
  } else {
    values = coded_bytes(spread_nibbles(run.words[0] >> 16u * quad & 0xffffu));
  }
  const uint base = values_in_pairs() ? 2u : 4u;  // bits that came from there
  if (high_words() == 1u) {
    values |= (uvec4(run.words[1].x) >> bits + 4u * quad & 0x01010101u) << base;
  } else if (high_words() == 2u) {
    values |= (uvec4(run.words[1][quad]) >> pairs & 0x03030303u) << base;
  }
  return values;
}

// Parts of a block whose products are added as integers, and runs of one.
const uint kBlockRuns = kBlockSteps / kRunSteps;
uint dot_parts() { return scales_by_half() ? 2u : 1u; }

// Of a block of a row: its scale and the sums of its values.
struct RowFacts {
  float scale;
  int low_sum;   // of the first 16 steps
  int high_sum;  // of the others
};
RowFacts row_facts(uvec2 words) {
  return RowFacts(uintBitsToFloat(words.x), bitfieldExtract(int(words.y), 0, 16),
                  int(words.y) >> 16);
}
// Of the steps of a part.
int sum_of_part(RowFacts row, uint part) {
  return scales_by_half() ? part == 0u ? row.low_sum : row.high_sum : row.low_sum + row.high_sum;
}

// Adds what the products of a part's bytes stand for, of four columns. A minimum is multiplied by
// the sum of the row's values; what is taken off a value is taken off as an integer, exactly.
vec4 add_dots(vec4 sum, ivec4 dots, vec4 scale, vec4 offset, float row_scale, int row_sum) {
  vec4 terms;
  if (has_minima() || minima_of_supers()) {
    terms = fma(scale, vec4(dots), offset * float(row_sum));
  } else {
    terms = scale * vec4(dots - int(value_offset()) * row_sum);
  }
  return fma(vec4(row_scale), terms, sum);
}
#endif
