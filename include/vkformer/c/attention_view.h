// c/attention_view.h: maps of attention, and pages and pictures of them.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_ATTENTION_VIEW_H
#define VKFORMER_C_ATTENTION_VIEW_H

#include "vkformer/c/picture.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// Maps of one kind of attention. Functions that only read them are [any].
typedef struct vkf_maps vkf_maps;
typedef struct vkf_maps_info {
  uint32_t struct_size;
  int32_t heads;
  int32_t first_head;  // -1: the only one is a mean over heads
  int32_t rows;        // T
  int32_t columns;     // S
  uint32_t reserved;
  size_t layers;
  const char* kind;
} vkf_maps_info;
enum { VKF_ZERO_TO_ONE = 0, VKF_ZERO_TO_MAX = 1 };
typedef struct vkf_view_options {
  uint32_t struct_size;
  int32_t cell_size;  // pixels a side; 0: chosen
  int32_t range;      // which weights get the lightest and darkest color
  uint32_t reserved;
  const char* title;
  const char* row_axis;     // heat maps only; null: "generated"
  const char* column_axis;  // heat maps only; null: "source"
} vkf_view_options;
typedef struct vkf_heat_map {
  uint32_t struct_size;
  uint32_t reserved;
  const float* values;  // row-major; rows are queries (T,S)
  int32_t rows;
  int32_t columns;
  const char* const* row_labels;     // `rows` of them, or null for numbers
  const char* const* column_labels;  // `columns` of them, or null for numbers
} vkf_heat_map;
typedef struct vkf_overlay {
  uint32_t struct_size;
  int32_t rows;          // patches from top to bottom
  int32_t columns;       // patches from left to right
  uint32_t zero_to_one;  // 1: the full color is weight 1, not the largest one
  const float* values;   // one weight a patch (rows*columns)
  double left;           // what the patches cover, in pixels; a width of 0: the whole picture
  double top;
  double width;
  double height;
  double strength;  // of the color where the weight is highest; 0: 0.75
} vkf_overlay;

// Those that vkf_session_run handed out: "self", "encoder", "decoder" or "cross", of one item of
// the batch. [any]
VKFORMER_API vkf_status vkf_maps_from(const vkf_tensors* outputs, const char* kind, int64_t item,
                                      vkf_maps** maps, vkf_error* error);
// The mean over heads. [any]
VKFORMER_API vkf_status vkf_maps_mean(const vkf_maps* maps, vkf_maps** mean, vkf_error* error);
// Attention rollout (Abnar and Zuidema 2020). [any]
VKFORMER_API vkf_status vkf_maps_rollout(const vkf_maps* maps, vkf_maps** rollout,
                                         vkf_error* error);
// Names the tokens: as many as there are rows and columns, or null for numbers. [one]
VKFORMER_API vkf_status vkf_maps_set_labels(vkf_maps* maps, const char* const* rows,
                                            const char* const* columns, vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_maps_get(const vkf_maps* maps, vkf_maps_info* info, vkf_error* error);
// The number of the layer, and its weights (H,T,S). [any]
VKFORMER_API vkf_status vkf_maps_get_layer(const vkf_maps* maps, size_t index, int32_t* layer,
                                           const float** values, vkf_error* error);
VKFORMER_API void vkf_maps_free(vkf_maps* maps);
// All maps as one picture of small heat maps: a PNG file. [any]
VKFORMER_API vkf_status vkf_maps_grid_png(const vkf_maps* maps, const vkf_view_options* options,
                                          vkf_bytes** png, vkf_error* error);
// A page for a browser, complete in itself. [any]
VKFORMER_API vkf_status vkf_maps_html(const vkf_maps* const* maps, size_t count, const char* title,
                                      vkf_bytes** page, vkf_error* error);
// One matrix as a PNG file. [any]
VKFORMER_API vkf_status vkf_heat_map_png(const vkf_heat_map* map, const vkf_view_options* options,
                                         vkf_bytes** png, vkf_error* error);
// The picture with red where weights are high: a PNG file of its size. [any]
VKFORMER_API vkf_status vkf_overlay_png(const vkf_picture* picture, const vkf_overlay* overlay,
                                        vkf_bytes** png, vkf_error* error);

// What one pass says about its heads. Never changes.
typedef struct vkf_measured_pass {
  const vkf_maps* scores;         // of a pass with VKF_RUN_SCORES
  const float* const* entropies;  // of each layer of these maps, as VKF_RUN_ENTROPY gives it (H,T)
} vkf_measured_pass;
typedef struct vkf_head_options {
  uint32_t struct_size;
  uint32_t reserved;
  double temperature;  // of the passes; 0: 1
  double collapsed;    // above this share of ln n a head attends to everything alike; 0: 0.98
  double saturated;    // below this share of ln n it attends to single keys; 0: 0.05
} vkf_head_options;
enum { VKF_HEAD_USUAL = 0, VKF_HEAD_COLLAPSED = 1, VKF_HEAD_SATURATED = 2 };
// One head, in means over the query rows that may attend to more than one key.
typedef struct vkf_head {
  uint32_t struct_size;
  int32_t state;
  int32_t layer;
  int32_t head;
  int64_t rows;              // that count
  double entropy;            // measured, in nats
  double most_entropy;       // ln n, the entropy of equal weights
  double score_variance;     // of a row's scaled scores before the temperature
  double predicted_entropy;  // ln n - v / (2 temperature^2), in nats
} vkf_head;
typedef struct vkf_heads vkf_heads;
// Judges every head over all passes, which must have the same kind, layers and heads. [any]
VKFORMER_API vkf_status vkf_heads_measure(const vkf_measured_pass* passes, size_t count,
                                          const vkf_head_options* options, vkf_heads** heads,
                                          vkf_error* error);
// [any]
VKFORMER_API size_t vkf_heads_count(const vkf_heads* heads);
// [any]
VKFORMER_API vkf_status vkf_heads_get(const vkf_heads* heads, size_t index, vkf_head* head,
                                      vkf_error* error);
VKFORMER_API void vkf_heads_free(vkf_heads* heads);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_ATTENTION_VIEW_H
