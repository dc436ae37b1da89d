#version 450
#extension GL_GOOGLE_include_directive : require
// computes: y = table[id] * scale * row scale + positions[position] + types[type], or its layer
//           norm; NaN where one has no row
// shapes:   Ids (planes, R): ids, positions, types, scales of rows; Table (V, D) by strides,
//           Positions (P + types, D), State, GainBias (2, D) -> Y (R, D)
// mapping:  one workgroup a row; an invocation takes every kLocalSize-th column
// bounds:   D and ids may be anything; rows beyond the last, or of another slice, are skipped;
//           Positions may be unused
// requires: nothing (baseline); VKF_TABLE_F16: halves in pairs, VKF_BLOCKS: a packed weight of
//           kFormat, VKF_STEP: position from State; VKF_NORM: the norm, D <= kNormWidth, as gain
//           and bias are a uniform block: phones have four storage buffers
// variants: embedding_row__u32_f32_f32
//           embedding_row__u32_f16_f32 DEFINES VKF_TABLE_F16=1
//           embedding_step__u32_f32_f32 DEFINES VKF_STEP=1
//           embedding_step__u32_f16_f32 DEFINES VKF_STEP=1 VKF_TABLE_F16=1
//           embedding_row__u32_blocks_f32 DEFINES VKF_BLOCKS=1
//           embedding_step__u32_blocks_f32 DEFINES VKF_STEP=1 VKF_BLOCKS=1
//           embedding_normed__u32_f32_f32 DEFINES VKF_NORM=1
//           embedding_normed__u32_f16_f32 DEFINES VKF_NORM=1 VKF_TABLE_F16=1
//           embedding_normed__u32_blocks_f32 DEFINES VKF_NORM=1 VKF_BLOCKS=1
//           embedding_normed_step__u32_f32_f32 DEFINES VKF_NORM=1 VKF_STEP=1
//           embedding_normed_step__u32_f16_f32 DEFINES VKF_NORM=1 VKF_STEP=1 VKF_TABLE_F16=1
//           embedding_normed_step__u32_blocks_f32 DEFINES VKF_NORM=1 VKF_STEP=1 VKF_BLOCKS=1
#include "embedding.h"
layout(local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_EMBEDDING_CONSTANTS)

#include "float_bits.glsl"
#include "matmul.h"
#include "rows.glsl"
#ifdef VKF_STEP
#include "decode_state.h"
#endif

layout(push_constant) uniform Params { EmbeddingParams p; };
layout(binding = 0) readonly buffer Ids { uint ids[]; };
layout(binding = 1) readonly buffer Table { uint table[]; };
layout(binding = 2) readonly buffer Positions { float positions[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
#ifdef VKF_STEP
layout(binding = 4) uniform State {
  DecodeState state;
  uvec4 slot_rows[VKF_SLOT_QUADS];
};
#endif

#if VKF_NORM
#ifdef VKF_STEP
layout(binding = 5) uniform GainBias { vec4 gain_bias[2u * kNormWidth / 4u]; };
#else
layout(binding = 4) uniform GainBias { vec4 gain_bias[2u * kNormWidth / 4u]; };
#endif
#endif

#if VKF_BLOCKS
layout(binding = 1) readonly buffer TableQuads { uvec4 table_quads[]; };
uint block_word(uint i) { return table[i]; }
uvec4 block_words(uint i) { return table_quads[i]; }
#include "weight_block_at.glsl"
#endif

// Column d of a row of the table.
float table_at(uint row, uint d) {
  const uint panel = row / kPanelColumns * p.panel_stride;
#if VKF_BLOCKS
  return block_weight(panel, d, row % kPanelColumns);
#else
  const uint index = panel + row % kPanelColumns * p.row_stride + d * p.col_stride;
#ifdef VKF_TABLE_F16
  const vec2 pair = unpackHalf2x16(table[index >> 1u]);
  return (index & 1u) == 0u ? pair.x : pair.y;
#else
  return uintBitsToFloat(table[index]);
#endif
#endif
}

uint row_position(uint row) {
#ifdef VKF_STEP
  if (ids[row] == p.pad_id) return p.position_offset - 1u;
  return p.position_offset + state.position - VKF_SLOT_START(slot_rows[row >> 2u][row & 3u]);
#else
  if (p.position_plane != 0u) return p.position_offset + ids[p.position_plane * p.rows + row];
  return p.position_offset + row % p.tokens;
#endif
}

// Of the row in hand.
uint slice_row, position, type;
float row_scale;
bool exists;

float row_value(uint d) {
  if (!exists) return make_nan();
  float value = table_at(slice_row, d) * row_scale;
  if (kHasPositions != 0u) value += positions[position * p.width + d];
  if (kHasTypes != 0u) value += positions[(p.type_row + type) * p.width + d];
  return value;
}
#if VKF_NORM
#include "reduce.glsl"
#include "layer_norm_row.glsl"
#endif

void main() {
  const uint row = row_group_index();
  if (row >= p.rows) return;
  const uint id = ids[row];
  // Another slice of the table has this row; ids without one are the first slice's.
  slice_row = id - p.first_id;
  if (id < p.vocabulary ? slice_row >= p.slice_rows : p.first_id != 0u) return;
  position = kHasPositions != 0u ? row_position(row) : 0u;
  // In a decoding step every token is of type 0.
  type = kHasTypes != 0u && p.type_plane != 0u ? ids[p.type_plane * p.rows + row] : 0u;
#ifdef VKF_STEP
  row_scale = p.scale;
#else
  row_scale =
      p.scale_plane == 0u ? p.scale : p.scale * uintBitsToFloat(ids[p.scale_plane * p.rows + row]);
#endif
  exists = id < p.vocabulary && (kHasPositions == 0u || position < p.positions) &&
           (kHasTypes == 0u || type < p.types);
#if VKF_NORM
  const RowMoments moments = row_moments(p.width, p.norm_epsilon);
#endif
  for (uint d = gl_LocalInvocationID.x; d < p.width; d += kLocalSize) {
    float value = row_value(d);
#if VKF_NORM
    const uint b = p.width + d;
    value = normed(value, moments) * gain_bias[d >> 2u][d & 3u] + gain_bias[b >> 2u][b & 3u];
#endif
    y[row * p.width + d] = value;
  }
}
