// The examples of the C headers' reference, one function for each subject. It returns 1 if all of
// its calls succeeded, else 0 with the reason in `error`.
//
// Threading: one thread. Lifetime: an example frees what it makes; files go to `scratch`.
#ifndef REFERENCE_C_EXAMPLES_H
#define REFERENCE_C_EXAMPLES_H

#include <vkformer/vkformer.h>

#ifdef __cplusplus
extern "C" {
#endif

// What the examples work with; folders are those of Setting (examples.h of the folder above).
typedef struct c_setting {
  vkf_device* device;
  const char* models;
  const char* goldens;
  const char* tasks;
  const char* scratch;
  vkf_error* error;
} c_setting;

enum { PATH_BYTES = 1024 };
// Writes folder/name to `path`, of PATH_BYTES, and gives it.
const char* path_in(char* path, const char* folder, const char* name);
// The bytes of a file, with their number, or null. The caller frees them.
void* read_whole_file(const char* path, size_t* size);

int show_c_attention(const c_setting* setting);
int show_c_conformance(const c_setting* setting);
int show_c_device(const c_setting* setting);
int show_c_generation(const c_setting* setting);
int show_c_measurements(const c_setting* setting);
int show_c_media(const c_setting* setting);
int show_c_model(const c_setting* setting);
int show_c_operators(const c_setting* setting);
int show_c_session(const c_setting* setting);
int show_c_slices(const c_setting* setting);
int show_c_tasks(const c_setting* setting);
int show_c_text(const c_setting* setting);
int show_c_values(const c_setting* setting);

#ifdef __cplusplus
}
#endif

#endif  // REFERENCE_C_EXAMPLES_H
