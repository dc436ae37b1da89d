// Scalar names that mean the same in GLSL and C++, for the structs of params/.
#ifndef VKFORMER_PARAMS_TYPES_H
#define VKFORMER_PARAMS_TYPES_H
#ifdef __cplusplus
#include <cstdint>
using uint_t = uint32_t;
using int_t = int32_t;
using float_t = float;
// Four words, aligned as a uniform block's array elements are.
struct alignas(16) uvec4_t {
  uint32_t word[4];
};
#else
#define uint_t uint
#define int_t int
#define float_t float
#define uvec4_t uvec4
#endif
#endif
