// c/picture.h: pictures as inputs of models.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_PICTURE_H
#define VKFORMER_C_PICTURE_H

#include "vkformer/c/session.h"
#include "vkformer/c/slices.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// Immutable: 8-bit RGB.
typedef struct vkf_picture vkf_picture;
typedef struct vkf_picture_processor vkf_picture_processor;

enum { VKF_RGB8 = 0, VKF_BGR8 = 1, VKF_RGBA8 = 2, VKF_BGRA8 = 3, VKF_GRAY8 = 4 };
// A raw frame, such as one of a video or a camera.
typedef struct vkf_pixels {
  uint32_t struct_size;
  int32_t format;     // VKF_RGB8 and so on; alpha is dropped
  const void* bytes;  // the rows, from the top
  size_t byte_count;
  int32_t width;   // pixels
  int32_t height;  // pixels
  int64_t stride;  // bytes from one row to the next; 0: rows follow each other without a gap
} vkf_pixels;

enum {
  VKF_FIT_STRETCH = 0,
  VKF_FIT_AS_IS = 1,
  VKF_FIT_SHORTEST_EDGE = 2,
  VKF_FIT_MOST_PATCHES = 3,
  VKF_FIT_LEAST_CHANGE = 4,
  VKF_FIT_LONGEST_EDGE = 5
};
// What happens to each picture, in this order: resize, crop, value * rescale, and
// (value - mean) / std.
typedef struct vkf_picture_settings {
  uint32_t struct_size;
  int32_t fit;
  int32_t width;          // of VKF_FIT_STRETCH; 0: 224
  int32_t height;         // of VKF_FIT_STRETCH; 0: 224
  int32_t shortest_edge;  // of VKF_FIT_SHORTEST_EDGE; 0: 224
  int32_t resampling;     // 1 Lanczos, 2 bilinear, 3 bicubic, 4 box, 5 Hamming, 6 nearest; 0: 2
  int32_t crop_width;     // of the center crop; 0: none
  int32_t crop_height;
  double rescale;         // factor of every byte; 0: 1/255
  double mean[3];         // of red, green and blue
  double std[3];          // of red, green and blue; all three 0: mean and std are 0.5
  int32_t longest_edge;   // of VKF_FIT_SHORTEST_EDGE; 0: no limit
  int32_t side_multiple;  // what both sides of VKF_FIT_SHORTEST_EDGE are multiples of; 0: 1
  int32_t max_patches;    // of side_multiple squared pixels, of VKF_FIT_MOST_PATCHES; 0: 256
  int32_t reserved;
} vkf_picture_settings;

// Reads a PNG, JPEG, BMP, GIF or PNM file. [any]
VKFORMER_API vkf_status vkf_picture_load(const char* path, vkf_picture** picture, vkf_error* error);
// The same from memory; `name` stands for the file in messages. [any]
VKFORMER_API vkf_status vkf_picture_decode(const void* data, size_t size, const char* name,
                                           vkf_picture** picture, vkf_error* error);
// Copies a raw frame. [any]
VKFORMER_API vkf_status vkf_picture_from_pixels(const vkf_pixels* pixels, vkf_picture** picture,
                                                vkf_error* error);
// The picture's own pixels, VKF_RGB8. [any]
VKFORMER_API vkf_status vkf_picture_get(const vkf_picture* picture, vkf_pixels* pixels,
                                        vkf_error* error);
VKFORMER_API void vkf_picture_free(vkf_picture* picture);
// Reads preprocessor_config.json of a model directory. [any]
VKFORMER_API vkf_status vkf_picture_processor_load(const char* directory,
                                                   vkf_picture_processor** processor,
                                                   vkf_error* error);
// For models without that file. [any]
VKFORMER_API vkf_status vkf_picture_processor_create(const vkf_picture_settings* settings,
                                                     vkf_picture_processor** processor,
                                                     vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_picture_processor_settings(const vkf_picture_processor* processor,
                                                       vkf_picture_settings* settings,
                                                       vkf_error* error);
// Which part of a picture of this size the model sees: left, top, width, height; it may reach
// beyond the edges. [any]
VKFORMER_API vkf_status vkf_picture_processor_seen(const vkf_picture_processor* processor,
                                                   int32_t width, int32_t height, double region[4],
                                                   vkf_error* error);
// Tensors with the "pixel_values" of a batch (B,3,height,width). [any]
VKFORMER_API vkf_status vkf_picture_processor_run(const vkf_picture_processor* processor,
                                                  const vkf_picture* const* pictures, size_t count,
                                                  vkf_tensors** tensors, vkf_error* error);
VKFORMER_API void vkf_picture_processor_free(vkf_picture_processor* processor);

// A picture in one of the application's images; see ImageInput in vulkan_interop.h. Never changes.
typedef struct vkf_image_input {
  uint64_t image;   // VkImage
  uint32_t format;  // VkFormat: R8G8B8A8 or B8G8R8A8, UNORM or SRGB
  uint32_t layout;  // VkImageLayout in which it is when it is read, and is left
  uint32_t width;   // pixels, of that level
  uint32_t height;
  uint32_t mip_level;
  uint32_t array_layer;
} vkf_image_input;
typedef struct vkf_image_inputs {
  uint32_t struct_size;
  uint32_t reserved;
  const vkf_image_input* images;  // one for each picture of the batch
  size_t count;
  const vkf_picture_processor* processor;
  const vkf_buffer_range* ranges;  // other tensors, as for vkf_session_start_on_buffers
  size_t range_count;
} vkf_image_inputs;
// Begins a pass of a vision model whose "pixel_values" are made of images by the GPU, to the bits
// that vkf_picture_processor_run gives. `inputs` holds what the model reads besides; it may be
// null. [one]
VKFORMER_API vkf_status vkf_session_start_on_images(vkf_session* session, const vkf_tensors* inputs,
                                                    const vkf_image_inputs* images,
                                                    const vkf_run_options* options,
                                                    vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_PICTURE_H
