// c/source.h: where a model's files come from.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_SOURCE_H
#define VKFORMER_C_SOURCE_H

#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where a model's files come from. Bytes in memory, and whatever a reader refers to, must stay
// until loading has returned; the loaded model does not need them.
typedef struct vkf_source vkf_source;
// A file by the name that it has in a model directory. Never changes.
typedef struct vkf_file {
  const char* name;
  const void* data;
  size_t size;
} vkf_file;
// The host's own files, read by the thread that loads.
typedef struct vkf_file_reader {
  uint32_t struct_size;
  uint32_t reserved;
  // Stores a file's size and returns 1, or returns 0 where there is none of that name.
  int (*size)(void* data, const char* name, uint64_t* size);
  // Fills `out` with the file's bytes from `offset` on; 0 if that failed, else 1.
  int (*read)(void* data, const char* name, uint64_t offset, void* out, size_t bytes);
  void* data;
} vkf_file_reader;
// A model directory. [any]
VKFORMER_API vkf_status vkf_source_directory(const char* path, vkf_source** source,
                                             vkf_error* error);
// A packed model (`vkformer pack`), mapped and verified: the file `path` from the byte `offset` on,
// 0 where the file is nothing else. The file must stay as it is until loading has returned. [any]
VKFORMER_API vkf_status vkf_source_pack(const char* path, uint64_t offset, vkf_source** source,
                                        vkf_error* error);
// Files in memory, not copied; `name` stands for them in messages. They must stay valid until
// loading has returned; with vkf_model_options::adapters, as long as the model. [any]
VKFORMER_API vkf_status vkf_source_memory(const vkf_file* files, size_t count, const char* name,
                                          vkf_source** source, vkf_error* error);
// Files that the host reads. [any]
VKFORMER_API vkf_status vkf_source_reader(const vkf_file_reader* reader, const char* name,
                                          vkf_source** source, vkf_error* error);
VKFORMER_API void vkf_source_free(vkf_source* source);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_SOURCE_H
