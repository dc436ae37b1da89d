// needs: nothing.
// f16 values packed two per 32-bit word, the lower address in the lower half: the baseline's way to
// read them without 16-bit storage. unpackHalf2x16 is core GLSL and keeps NaN and infinities.
#ifndef VKF_F16_WORDS_GLSL
#define VKF_F16_WORDS_GLSL
vec4 unpack_f16x4(uvec2 words) { return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)); }

// Element `index` of an array whose word index/2 is `word`.
float unpack_f16_at(uint word, uint index) {
  const vec2 pair = unpackHalf2x16(word);
  return (index & 1u) == 0u ? pair.x : pair.y;
}
#endif
