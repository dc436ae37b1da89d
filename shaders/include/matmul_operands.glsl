// needs: MatmulParams p, kAlignedA, kActivation, VKF_WEIGHT_F16, VKF_INT64,
//        VKF_FP16, VKF_STRIDED; with VKF_BLOCKS kFormat (includes matmul_finish_quad.glsl).
// Bindings and loads that matmul_wide, matmul_rows and matmul_stream share. A group is 8
// neighboring columns of one row of B, fetched in one load where the variant can. Software devices
// spend most of their time on loads and pay for them by the lane and component, not by the byte.
#ifndef VKF_MATMUL_OPERANDS_GLSL
#define VKF_MATMUL_OPERANDS_GLSL
#include "f16_words.glsl"
#if VKF_INT64
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#if VKF_FP16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif

layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) readonly buffer C { float c[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Y4 { vec4 y4[]; };

#if VKF_INT64
layout(binding = 0) readonly buffer A4 { u64vec2 a4[]; };
vec2 unpack_pair(uint64_t v) { return uintBitsToFloat(unpackUint2x32(v)); }
vec4 load_a4(uint i) {
  const u64vec2 v = a4[i];
  return vec4(unpack_pair(v.x), unpack_pair(v.y));
}
#else
layout(binding = 0) readonly buffer A4 { vec4 a4[]; };
vec4 load_a4(uint i) { return a4[i]; }
#endif

// Elements k..k+3 of the row of A that starts at `row`.
vec4 load_row(uint row, uint k) {
#if VKF_STRIDED
  const uint step = p.a_col_stride;
  const uint first = row + k * step;
  return vec4(a[first], a[first + step], a[first + 2u * step], a[first + 3u * step]);
#else
  const uint at = row + k;
  if (kAlignedA != 0u) return load_a4(at >> 2);
  return vec4(a[at], a[at + 1u], a[at + 2u], a[at + 3u]);
#endif
}
#if VKF_BLOCKS
// The same with zeros from step K on. No branch: software devices take both sides of one. Aligned
// rows that end within a vector go on after it, at the next row or the padding of the buffer.
vec4 load_row_inside(uint row, uint k) {
  vec4 x;
  if (kAlignedA != 0u) {
    x = load_a4((row + k) >> 2);
  } else {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) x[e] = a[row + min(k + e, p.k - 1u)];
  }
  return mix(vec4(0.0), x, lessThan(k + uvec4(0u, 1u, 2u, 3u), uvec4(p.k)));
}
#endif
float load_row_at(uint row, uint k) {
#if VKF_STRIDED
  return a[row + k * p.a_col_stride];
#else
  return a[row + k];
#endif
}

// Columns 8 * group .. 8 * group + 7 of row k of B: load_group(group_start(group),
// k * group_step(), ...).

#if VKF_STRIDED
layout(binding = 1) readonly buffer BWords { uint b_words[]; };
uint group_start(uint group) { return 8u * group; }
uint group_step() { return p.b_row_stride; }
float load_b(uint row, uint column) {
  const uint i = p.b_offset + gl_WorkGroupID.z * p.b_batch_stride + row +
                 min(column, p.n - 1u) * p.b_col_stride;
#if VKF_WEIGHT_F16
  return unpack_f16_at(b_words[i >> 1], i);
#else
  return b[i];
#endif
}
void load_group(uint start, uint row, out vec4 low, out vec4 high) {
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    low[e] = load_b(row, start + e);
    high[e] = load_b(row, start + 4u + e);
  }
}
#else
// Of row 0 of a group, in groups. Apart from what depends on k: it has divisions, which some
// compilers neither hoist nor turn into shifts.
uint group_start(uint group) {
  const uint g = min(group, (p.n + 7u) / 8u - 1u);
  return ((p.b_offset + gl_WorkGroupID.z * p.b_batch_stride) >> 3) +
         g / (kPanelColumns / 8u) * (p.b_panel_stride >> 3) + g % (kPanelColumns / 8u);
}
// From a row to the next: every stride is a multiple of 8.
uint group_step() { return p.b_row_stride >> 3; }
#if VKF_BLOCKS
#include "weight_blocks.glsl"
layout(binding = 1) readonly buffer BWords { uint b_words[]; };
#if VKF_INT64
layout(binding = 1) readonly buffer BVectors { u64vec2 b_vectors[]; };
uvec4 load_words(uint i) {
  const u64vec2 v = b_vectors[i];
  return uvec4(unpackUint2x32(v.x), unpackUint2x32(v.y));
}
#else
layout(binding = 1) readonly buffer BVectors { uvec4 b_vectors[]; };
uvec4 load_words(uint i) { return b_vectors[i]; }
#endif

// Where the first block of a group's panel lies, and which of the panel's groups it is.
struct GroupPlace {
  uint panel;
  uint group;
};
GroupPlace place_of(uint group) {
  const uint g = min(group, (p.n + 7u) / 8u - 1u);
  return GroupPlace(
      (p.b_offset + gl_WorkGroupID.z * p.b_batch_stride + g / kGroups8 * p.b_panel_stride) >> 2,
      g % kGroups8);
}
BlockScales load_scales(GroupPlace at, uint block) {
  if (kFormat == kFormatBf16) return block_scales(uvec4(0u), uvec4(0u));
  const uint first = at.panel + block_at(block) + scales_at();
  const uint word = 4u * first + scale_words() * at.group;
  if (kFormat == kFormatMxfp4) {
    return block_scales(uvec4(b_words[word], b_words[word + 1u], 0u, 0u), uvec4(0u));
  }
  if (scales_of_supers()) {
    const uint d = at.panel + super_at(block) + at.group;
    uvec4 parts;
    if (scale_words() == 4u) {
      parts = load_words(first + at.group);
    } else {
      const uvec2 two = uvec2(b_words[word], b_words[word + 1u]);
      parts = scale_words() == 3u ? uvec4(two, b_words[word + 2u], 0u) : two.xyxy;
    }
    return super_scales(parts, load_words(d), minima_of_supers() ? load_words(d + 8u) : uvec4(0u));
  }
  const uint i = first + at.group;
  return block_scales(load_words(i), has_minima() ? load_words(i + 8u) : uvec4(0u));
}
// Steps 4 * run .. 4 * run + 3 of a block.
WeightRun load_run(GroupPlace at, uint block, uint run) {
  const uint first = at.panel + block_at(block);
  const uint i = first + (run * kGroups8 + at.group) * run_vectors();
  WeightRun words;
  if (values_in_pairs()) {
    const uint pair = 4u * first + 2u * (8u * at.group + run);
    words.words[0] = uvec4(b_words[pair], b_words[pair + 1u], 0u, 0u);
  } else {
    words.words[0] = load_words(i);
  }
  if (run_vectors() > 1u) words.words[1] = load_words(i + 1u);
  if (kFormat == kFormatBf16) {
    words.words[2] = load_words(i + 2u);
    words.words[3] = load_words(i + 3u);
  }
  if (high_words() > 0u) {
    const uint high = 4u * (first + high_at()) + (8u * at.group + run) * high_words();
    words.words[1] = uvec4(b_words[high], high_words() > 1u ? b_words[high + 1u] : 0u, 0u, 0u);
  }
  return words;
}
#elif VKF_WEIGHT_F16 && VKF_INT64
layout(binding = 1) readonly buffer BGroup { u64vec2 b_group[]; };
void load_group(uint start, uint row, out vec4 low, out vec4 high) {
  const u64vec2 v = b_group[start + row];
  low = unpack_f16x4(unpackUint2x32(v.x));
  high = unpack_f16x4(unpackUint2x32(v.y));
}
#elif VKF_WEIGHT_F16
layout(binding = 1) readonly buffer BGroup { uvec4 b_group[]; };
void load_group(uint start, uint row, out vec4 low, out vec4 high) {
  const uvec4 v = b_group[start + row];
  low = unpack_f16x4(v.xy);
  high = unpack_f16x4(v.zw);
}
#elif VKF_INT64
layout(binding = 1) readonly buffer BGroup { u64vec4 b_group[]; };
void load_group(uint start, uint row, out vec4 low, out vec4 high) {
  const u64vec4 v = b_group[start + row];
  low = vec4(unpack_pair(v.x), unpack_pair(v.y));
  high = vec4(unpack_pair(v.z), unpack_pair(v.w));
}
#else
layout(binding = 1) readonly buffer BGroup { vec4 b_group[]; };
void load_group(uint start, uint row, out vec4 low, out vec4 high) {
  const uint at = 2u * (start + row);
  low = b_group[at];
  high = b_group[at + 1u];
}
#endif
#endif

// One step of K. The _fp16 variants round both factors and the product to f16; the sum stays f32.
// What is beyond 65,504, a factor or the product, or NaN, is multiplied in f32. A half would be
// infinite or, where conversions round towards zero, silently too small.
vec4 multiply_add(float x, vec4 w, vec4 sum) {
#if VKF_FP16
  const vec4 exact = x * w;
  uvec4 top = max(floatBitsToUint(w) & 0x7fffffffu, floatBitsToUint(exact) & 0x7fffffffu);
  top = max(top, uvec4(floatBitsToUint(x) & 0x7fffffffu));
  const bvec4 wide = greaterThan(top, uvec4(0x477fe000u));
  return sum + mix(vec4(float16_t(x) * f16vec4(w)), exact, wide);
#else
  return fma(vec4(x), w, sum);
#endif
}

#include "matmul_finish_quad.glsl"
#endif
