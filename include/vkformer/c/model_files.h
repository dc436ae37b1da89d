// c/model_files.h: writing models: with smaller matrices, as GGUF, and packed into one file.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_MODEL_FILES_H
#define VKFORMER_C_MODEL_FILES_H

#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vkf_quantize_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* weights;  // "q8" (the default), "q4", "q4m", "bf16", "f16"
} vkf_quantize_options;
typedef struct vkf_quantize_report {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t tensors;   // of the model
  int64_t matrices;  // of them in the new format
  uint64_t bytes_before;
  uint64_t bytes_after;
} vkf_quantize_report;
// Writes the model of the directory `model`, with smaller matrices, into the directory `target`.
// The directory is made where it is missing, and then loads as the model did. `report` may be null.
// [any]
VKFORMER_API vkf_status vkf_quantize_model(const char* model, const char* target,
                                           const vkf_quantize_options* options,
                                           vkf_quantize_report* report, vkf_error* error);

typedef struct vkf_gguf_options {
  uint32_t struct_size;
  uint32_t reserved;
  // "q8_0" (the default), or another of vkf_model_options but "stored", "q8", "q4" and "q4m"
  const char* weights;
  // Adapters to merge, and what multiplies each, as in vkf_model_options.
  const char* const* adapters;  // adapter_count of them
  const float* adapter_scales;  // likewise, or null: 1
  size_t adapter_count;
} vkf_gguf_options;
// Writes the model, a directory or a GGUF file, as the GGUF file `target` with llama.cpp's names.
// What the format cannot say of a model is refused. `report` may be null. [any]
VKFORMER_API vkf_status vkf_write_gguf(const char* model, const char* target,
                                       const vkf_gguf_options* options, vkf_quantize_report* report,
                                       vkf_error* error);

typedef struct vkf_pack_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* weights;  // "q8", "q4", "q4m", "bf16", "f16"; null: as they are
  // Adapters, and what multiplies each: merged where weights are quantized, else packed beside
  // them.
  const char* const* adapters;  // adapter_count of them
  const float* adapter_scales;  // likewise, or null: 1
  size_t adapter_count;
  // 1: weights lie in the pack as GPUs read them, in place of the tensors they are made of.
  uint32_t device_layout;
  uint32_t reserved2;
} vkf_pack_options;
typedef struct vkf_pack_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t size;       // bytes of the pack
  uint64_t files;      // in it
  uint8_t sha256[32];  // of its header, which names all files with theirs
} vkf_pack_report;
// Writes the files of a model, a directory or a GGUF file, that loading uses into one file, which
// vkf_source_pack loads. The file is whole or not there. `report` may be null. [any]
VKFORMER_API vkf_status vkf_pack_model(const char* model, const char* target,
                                       const vkf_pack_options* options, vkf_pack_report* report,
                                       vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_MODEL_FILES_H
