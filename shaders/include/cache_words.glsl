// needs: kCacheFormat, a readonly storage block with `uint kv_words[]` over the cache. Keys and
// values in 32-bit words: halves in pairs, or bytes in fours. An f32 scale for every 32 bytes of a
// line follows them. A line is filled up to whole runs of 32 (base/matrix_format.h).
#ifndef VKF_CACHE_WORDS_GLSL
#define VKF_CACHE_WORDS_GLSL
const uint kCacheF16 = 1u;

// Elements column .. column + 3, a multiple of 4, of the line that begins at word `line`.
vec4 cached_quad(uint line, uint column) {
  if (kCacheFormat == kCacheF16) {
    const uint at = line + (column >> 1u);
    return vec4(unpackHalf2x16(kv_words[at]), unpackHalf2x16(kv_words[at + 1u]));
  }
  const float scale = uintBitsToFloat(kv_words[line + p.line / 9u * 8u + (column >> 5u)]);
  const int word = int(kv_words[line + (column >> 2u)]);
  return scale * vec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8),
                      bitfieldExtract(word, 16, 8), bitfieldExtract(word, 24, 8));
}

float cached(uint line, uint column) { return cached_quad(line, column & ~3u)[column & 3u]; }
#endif
