// vkformer_conformance.h: conformance.h for C, in the library vkformer_conformance, in the shape of
// vkformer.h (handles, versioned structs, errors).
#ifndef VKFORMER_VKFORMER_CONFORMANCE_H
#define VKFORMER_VKFORMER_CONFORMANCE_H

#include "vkformer/vkformer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vkf_conformance_options {
  uint32_t struct_size;
  uint32_t full;    // 1: all sizes, up to half an hour on a processor; 0: a choice, a minute
  uint32_t demote;  // 1: kernels of failed checks are omitted on this device and driver from now on
  int32_t repeats;  // runs of every check, which must give the same bits; 0: 3 or, in full, 25
  // Parts of names, of which a check's must have one, or the whole name; none: all checks.
  const char* const* filters;
  size_t filter_count;
  const char* failure_folder;  // a folder in it for every failed check; null: none
  // Called after every check with its name; null: nobody.
  void (*progress)(void* data, const char* name, int32_t done, int32_t all);
  void* progress_data;
} vkf_conformance_options;

// Checks what vkformer computes on the device, which it wants for itself. `json` gets the report
// (docs/conformance.md has the schema), `failed`, unless it is null, how many checks failed. [any]
VKFORMER_API vkf_status vkf_conformance_run(const vkf_device* device,
                                            const vkf_conformance_options* options,
                                            vkf_bytes** json, size_t* failed, vkf_error* error);
// A report as one HTML page that needs nothing else. [any]
VKFORMER_API vkf_status vkf_conformance_page(const char* json, vkf_bytes** html, vkf_error* error);

#ifdef __cplusplus
}
#endif
#endif
