#version 450
#extension GL_GOOGLE_include_directive : require
// computes: Y = act(alpha A B + beta C + bias), or act(alpha A B + bias) + beta C, for a few rows
// shapes:   A (batch, M, K), B (batch, K, N) packed, C (batch, M, N) or (N) -> Y (batch, M, N)
// mapping:  a workgroup owns kRows rows x 64 columns, a panel of B, which it reads from end to end
//           by loads that all lanes share; an invocation every kLanes-th quad of columns; x counts
//           panels, y row tiles, z batches
// bounds:   M, N, K may be anything; B lies in whole panels, its offsets multiples of 64;
//           kAlignedA promises that offset and strides of A are multiples of 4; with VKF_BLOCKS B
//           is stored in kFormat
// requires: shaderInt64; kLanes is 4, 8 or 16; kRows <= 8
// variants: matmul_stream__f32_f32_f32_int64 FEATURES int64 software
//           matmul_stream__f32_f16_f32_int64 FEATURES int64 software DEFINES VKF_WEIGHT_F16=1
//           matmul_stream__f32_blocks_f32_int64 FEATURES int64 software DEFINES VKF_BLOCKS=1
#extension GL_EXT_control_flow_attributes : require
#include "matmul.h"
layout(local_size_x = 8, local_size_x_id = 0) in;
VKF_CONSTANTS(VKF_MATMUL_STREAM_CONSTANTS)

layout(push_constant) uniform Params { MatmulParams p; };
#include "matmul_operands.glsl"

layout(binding = 1) readonly buffer BStream { u64vec4 b_stream[]; };

const uint kQuadsOfPanel = kPanelColumns / 4u;
const uint kQuads = kQuadsOfPanel / kLanes;
#if VKF_BLOCKS
const uint kVectors = 16u;  // loads of a run of steps, at most
#elif VKF_WEIGHT_F16
const uint kVectors = 4u;  // loads of a step of K
#else
const uint kVectors = 8u;
#endif
// A bound that no binding reaches. It tells the compiler that an index has no sign, which saves a
// test for each of the four words of a load.
const uint kInside = 0x3ffffffu;
shared vec4 tile[kRows * kQuadsOfPanel];

u64vec4 step_words[kVectors];  // of one step of K, the same in all lanes

void load_vectors(uint at, uint count) {
  [[unroll]] for (uint i = 0u; i < kVectors; ++i) {
    if (i < count) step_words[i] = b_stream[(at + i) & kInside];
  }
}

// Word first + stride * lane of the step. Where the lane's number is constant to the compiler this
// is an assembly of scalars, no choice at run time.
uint64_t own_word(uint first, uint stride) {
  uint64_t word = step_words[first >> 2][first & 3u];
  [[unroll]] for (uint l = 1u; l < kLanes; ++l) {
    const uint i = first + stride * l;
    word = gl_LocalInvocationID.x == l ? step_words[i >> 2][i & 3u] : word;
  }
  return word;
}

#if VKF_BLOCKS
// Of the group that holds the j-th quad of an invocation, the 4 words from pair `first` of a
// group's `stride` pairs on. It is also the shift to the half of them that is the quad's.
uvec4 group_words(uint j, uint first, uint stride) {
  uvec4 words = uvec4(0u);
  [[unroll]] for (uint l = 0u; l < kLanes; ++l) {
    const uint i = (j * kLanes + l) / 2u * stride + first;
    const uvec4 of_lane = uvec4(unpackUint2x32(step_words[i >> 2][i & 3u]),
                                unpackUint2x32(step_words[i >> 2][(i & 3u) + 1u]));
    words = gl_LocalInvocationID.x == l ? of_lane : words;
  }
  return words;
}
uint own_half() { return (gl_LocalInvocationID.x & 1u) * 16u; }

vec4 own_bfloats(uint j, uint first, uint stride) {
  return uintBitsToFloat(group_words(j, first, stride) >> own_half() << 16);
}

// Values of one step, to be scaled, where the words of a run are loaded; of BF16 the weights.
vec4 own_values(uint j, uint s) {
  if (kFormat == kFormatBf16) return own_bfloats(j, 2u * s, 8u);
  if (kFormat == kFormatQ8) {
    const uvec4 words = uvec4(unpackUint2x32(own_word(2u * j * kLanes, 2u)),
                              unpackUint2x32(own_word(2u * j * kLanes + 1u, 2u)));
    return vec4(bitfieldExtract(ivec4(words), int(8u * s), 8));
  }
  return vec4(ivec4(group_words(j, 0u, 2u) >> (own_half() + 4u * s) & 15u));
}
#else
// The j-th quad of columns of an invocation.
vec4 own_quad(uint j) {
#if VKF_WEIGHT_F16
  return unpack_f16x4(unpackUint2x32(own_word(j * kLanes, 1u)));
#else
  return vec4(unpack_pair(own_word(2u * j * kLanes, 2u)),
              unpack_pair(own_word(2u * j * kLanes + 1u, 2u)));
#endif
}
#endif

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint row0 = gl_WorkGroupID.y * kRows;
  const uint b_panel =
      p.b_offset + gl_WorkGroupID.z * p.b_batch_stride + gl_WorkGroupID.x * p.b_panel_stride;
  // Rows beyond the matrix repeat the last one; nothing of theirs is stored.
  uint a_row[kRows];
  vec4 sum[kRows * kQuads];
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    const uint row = row0 + i < p.m ? row0 + i : p.m - 1u;
    a_row[i] = p.a_offset + gl_WorkGroupID.z * p.a_batch_stride + row * p.a_row_stride;
    [[unroll]] for (uint j = 0u; j < kQuads; ++j) sum[i * kQuads + j] = vec4(0.0);
  }

#if VKF_BLOCKS
  for (uint block = 0u; block * kBlockSteps < p.k; ++block) {
    const uint block_at = (b_panel >> 3) + block * (block_vectors() >> 1);
    vec4 scale[kQuads];
    vec4 offset[kQuads];
    if (kFormat != kFormatBf16) load_vectors(block_at + (scales_at() >> 1), 4u);
    [[unroll]] for (uint j = 0u; j < kQuads; ++j) {
      scale[j] = kFormat == kFormatBf16 ? vec4(1.0) : own_bfloats(j, 0u, 2u);
      offset[j] = -8.0 * scale[j];
    }
    if (kFormat == kFormatQ4M) {
      load_vectors(block_at + (scales_at() >> 1) + 4u, 4u);
      [[unroll]] for (uint j = 0u; j < kQuads; ++j) offset[j] = own_bfloats(j, 0u, 2u);
    }
    for (uint run = 0u; run < 8u && block * kBlockSteps + 4u * run < p.k; ++run) {
      load_vectors(block_at + run * 4u * run_vectors(), 4u * run_vectors());
      vec4 x[kRows];
      [[unroll]] for (uint i = 0u; i < kRows; ++i) {
        x[i] = load_row_inside(a_row[i], block * kBlockSteps + 4u * run);
      }
      [[unroll]] for (uint s = 0u; s < 4u; ++s) {
        [[unroll]] for (uint j = 0u; j < kQuads; ++j) {
          const vec4 value = own_values(j, s);
          const vec4 w = kFormat == kFormatBf16 ? value
                         : kFormat == kFormatQ8 ? value * scale[j]
                                                : fma(value, scale[j], offset[j]);
          [[unroll]] for (uint i = 0u; i < kRows; ++i) {
            sum[i * kQuads + j] = multiply_add(x[i][s], w, sum[i * kQuads + j]);
          }
        }
      }
    }
  }
#else
  uint b_at = b_panel / kPanelColumns * kVectors;
  const uint whole = p.k & ~3u;
  for (uint k = 0u; k < whole; k += 4u) {
    vec4 x[kRows];
    [[unroll]] for (uint i = 0u; i < kRows; ++i) x[i] = load_row(a_row[i], k);
    [[unroll]] for (uint s = 0u; s < 4u; ++s) {
      load_vectors(b_at + s * kVectors, kVectors);
      vec4 w[kQuads];
      [[unroll]] for (uint j = 0u; j < kQuads; ++j) w[j] = own_quad(j);
      [[unroll]] for (uint i = 0u; i < kRows; ++i) {
        [[unroll]] for (uint j = 0u; j < kQuads; ++j) {
          sum[i * kQuads + j] = multiply_add(x[i][s], w[j], sum[i * kQuads + j]);
        }
      }
    }
    b_at += 4u * kVectors;
  }
  for (uint k = whole; k < p.k; ++k) {
    load_vectors(b_at, kVectors);
    vec4 w[kQuads];
    [[unroll]] for (uint j = 0u; j < kQuads; ++j) w[j] = own_quad(j);
    [[unroll]] for (uint i = 0u; i < kRows; ++i) {
      const float x = load_row_at(a_row[i], k);
      [[unroll]] for (uint j = 0u; j < kQuads; ++j) {
        sum[i * kQuads + j] = multiply_add(x, w[j], sum[i * kQuads + j]);
      }
    }
    b_at += kVectors;
  }
#endif

  // The sums pass through shared memory, each lane to itself, so that what follows is a loop. The
  // epilogue unrolled over the tile would be more code than the product.
  [[unroll]] for (uint t = 0u; t < kRows * kQuads; ++t) tile[t * kLanes + lane] = sum[t];
  for (uint t = 0u; t < kRows * kQuads; ++t) {
    const uint row = row0 + t / kQuads;
    const uint column = gl_WorkGroupID.x * kPanelColumns + 4u * (t % kQuads * kLanes + lane);
    if (row < p.m && column < p.n) {
      store_quad(row, column,
                 finish(tile[t * kLanes + lane], load_bias(column), load_addend(row, column)));
    }
  }
}
