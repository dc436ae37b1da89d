// Specialization constants, declared once for GLSL and C++. A list names those of a kernel in the
// order of their ids: id, name in GLSL, field in C++, default.
//
//   #define VKF_UNFOLD_CONSTANTS(constant) constant(0, kLocalSize, local_size, 64)
//   VKF_CONSTANTS_STRUCT(UnfoldConstants, VKF_UNFOLD_CONSTANTS)
//
// The shader declares its constants with VKF_CONSTANTS(VKF_UNFOLD_CONSTANTS). A lowering sets them
// with dispatch.set_constants(UnfoldConstants{.local_size = 32}). A field without a value keeps the
// default.
#ifndef VKFORMER_PARAMS_CONSTANTS_H
#define VKFORMER_PARAMS_CONSTANTS_H
#include "types.h"

#ifdef __cplusplus
#define VKF_CONSTANT_FIELD(id, name, field, otherwise) uint_t field = otherwise;
#define VKF_CONSTANT_ID(id, name, field, otherwise) name,
#define VKF_CONSTANT_CHECK(id, name, field, otherwise) \
  static_assert(id == name, "ids count from 0 in the order of the list");
// Its enumerators are the ids. The name of its list says which kernels take it.
#define VKF_CONSTANTS_STRUCT(Struct, list)                                   \
  struct Struct {                                                            \
    list(VKF_CONSTANT_FIELD) enum Id : uint_t { list(VKF_CONSTANT_ID) };     \
    list(VKF_CONSTANT_CHECK) static constexpr const char* kListName = #list; \
  };
#else
#define VKF_CONSTANT(id, name, field, otherwise) \
  layout(constant_id = id) const uint name = otherwise;
#define VKF_CONSTANTS(list) list(VKF_CONSTANT)
#define VKF_CONSTANTS_STRUCT(Struct, list)
#endif

// Of kernels without any, and of those whose workgroup is all that varies.
#define VKF_NO_CONSTANTS(constant)
#define VKF_WORKGROUP_CONSTANTS(constant) constant(0, kLocalSize, local_size, 64)
VKF_CONSTANTS_STRUCT(WorkgroupConstants, VKF_WORKGROUP_CONSTANTS)
#endif
