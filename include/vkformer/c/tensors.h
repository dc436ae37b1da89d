// c/tensors.h: arrays in host memory, by name.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_TENSORS_H
#define VKFORMER_C_TENSORS_H

#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vkf_dtype;
enum {
  VKF_F32 = 0,
  VKF_F64 = 1,
  VKF_F16 = 2,
  VKF_BF16 = 3,
  VKF_I64 = 4,
  VKF_I32 = 5,
  VKF_I16 = 6,
  VKF_I8 = 7,
  VKF_U64 = 8,
  VKF_U32 = 9,
  VKF_U16 = 10,
  VKF_U8 = 11,
  VKF_BOOL = 12
};

// A dense array in host memory: row-major, slowest dimension first, little-endian.
typedef struct vkf_tensor {
  uint32_t struct_size;
  vkf_dtype dtype;
  const int64_t* shape;  // of `rank` elements; null for a scalar
  size_t rank;
  const void* data;
  size_t bytes;
} vkf_tensor;

// Tensors by name: inputs and outputs of models and operators. Functions that only read them are
// [any] as long as nobody sets one.
typedef struct vkf_tensors vkf_tensors;
// [any]
VKFORMER_API vkf_status vkf_tensors_create(vkf_tensors** tensors, vkf_error* error);
// Every tensor of a safetensors file. [any]
VKFORMER_API vkf_status vkf_tensors_read(const char* path, vkf_tensors** tensors, vkf_error* error);
// Writes a safetensors file; an existing one is replaced whole or not at all. [any]
VKFORMER_API vkf_status vkf_tensors_write(const vkf_tensors* tensors, const char* path,
                                          vkf_error* error);
VKFORMER_API void vkf_tensors_free(vkf_tensors* tensors);
// Copies a tensor in; one of that name is replaced. [one]
VKFORMER_API vkf_status vkf_tensors_set(vkf_tensors* tensors, const char* name,
                                        const vkf_tensor* tensor, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_tensors_count(const vkf_tensors* tensors);
// In order of names; null beyond the last. [any]
VKFORMER_API const char* vkf_tensors_name(const vkf_tensors* tensors, size_t index);
// A look at one; it stays until the tensor is replaced or the tensors are freed. [any]
VKFORMER_API vkf_status vkf_tensors_get(const vkf_tensors* tensors, const char* name,
                                        vkf_tensor* tensor, vkf_error* error);
// Copies the elements of a tensor of any float type, widened to f32; `count` must be their number.
// [any]
VKFORMER_API vkf_status vkf_tensors_get_floats(const vkf_tensors* tensors, const char* name,
                                               float* values, size_t count, vkf_error* error);
// The same for integers and booleans. [any]
VKFORMER_API vkf_status vkf_tensors_get_ints(const vkf_tensors* tensors, const char* name,
                                             int64_t* values, size_t count, vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_TENSORS_H
