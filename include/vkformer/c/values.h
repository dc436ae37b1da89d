// c/values.h: the version of the interface, results of calls, texts, bytes and lists.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_VALUES_H
#define VKFORMER_C_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "vkformer/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Grows by one when functions, fields or values are added; none is changed or taken away while the
// library's soname stays.
#define VKF_API_VERSION 1u

// The VKF_API_VERSION of the library that is linked. [any]
VKFORMER_API uint32_t vkf_api_version(void);
// Its version in words, "0.1.0". [any]
VKFORMER_API const char* vkf_version_text(void);

typedef int32_t vkf_status;
enum {
  VKF_OK = 0,
  VKF_INVALID_ARGUMENT = 1,  // the caller's value is outside what the call accepts
  VKF_NOT_FOUND = 2,         // a file, device, tensor or name does not exist
  VKF_INVALID_FILE = 3,      // a file's content is malformed, truncated or hostile
  VKF_UNSUPPORTED = 4,       // well-formed, but this build, model family or device cannot do it
  VKF_OUT_OF_MEMORY = 5,     // host or device memory, or a configured budget, is exhausted
  VKF_DEVICE_LOST = 6,       // the Vulkan device was lost; make a new device
  VKF_DRIVER = 7,            // a Vulkan call failed in another way
  VKF_CANCELLED = 8,         // the caller asked to stop
  VKF_INTERNAL = 9,          // a bug in vkformer; please report it
  VKF_QUEUE_FULL = 10  // a queue holds its maximum; try again after some of its work has ended
};
// "VKF_NOT_FOUND" and so on; "unknown" for a number that is no status. [any]
VKFORMER_API const char* vkf_status_name(vkf_status status);

// Holds the outcome of the last call that it was given to: make one per thread, and reuse it.
typedef struct vkf_error vkf_error;
// Null when memory is exhausted. [any]
VKFORMER_API vkf_error* vkf_error_create(void);
VKFORMER_API void vkf_error_free(vkf_error* error);
// VKF_OK after a success. [one]
VKFORMER_API vkf_status vkf_error_status(const vkf_error* error);
// One full sentence with the value, the limit and what to do; "" after a success. Stays until the
// next call that is given this error. [one]
VKFORMER_API const char* vkf_error_message(const vkf_error* error);

// A text or a file's bytes that a call made.
typedef struct vkf_bytes vkf_bytes;
// [any]
VKFORMER_API const void* vkf_bytes_data(const vkf_bytes* bytes);
// Without the zero byte that always follows. [any]
VKFORMER_API size_t vkf_bytes_size(const vkf_bytes* bytes);
// The same as a text. [any]
VKFORMER_API const char* vkf_bytes_text(const vkf_bytes* bytes);
VKFORMER_API void vkf_bytes_free(vkf_bytes* bytes);

typedef struct vkf_strings vkf_strings;
// [any]
VKFORMER_API size_t vkf_strings_count(const vkf_strings* strings);
// Null beyond the last. [any]
VKFORMER_API const char* vkf_strings_get(const vkf_strings* strings, size_t index);
VKFORMER_API void vkf_strings_free(vkf_strings* strings);

// Token ids, as token.h has them: 0 to 2^31 - 1, in 64 bits everywhere. Never changes.
typedef struct vkf_ids {
  const int64_t* ids;
  size_t count;
} vkf_ids;

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_VALUES_H
