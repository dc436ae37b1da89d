/* Examples of maps of attention: grids, pages, overlays, and what heads do. */
#include <stdio.h>
#include <stdlib.h>

#include "examples.h"

static int show_maps(vkf_session* session, const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_maps_from vkf_maps_get vkf_maps_get_layer vkf_maps_free]
  // Takes the self-attention of the first text from a pass, and prints one weight of each layer.
  const vkf_run_options run = {.struct_size = sizeof run, .flags = VKF_RUN_ATTENTIONS};
  vkf_tensors* outputs = NULL;
  vkf_maps* maps = NULL;
  vkf_maps_info info = {.struct_size = sizeof info};
  int ok = vkf_session_run(session, inputs, &run, &outputs, error) == VKF_OK &&
           vkf_maps_from(outputs, "self", 0, &maps, error) == VKF_OK &&
           vkf_maps_get(maps, &info, error) == VKF_OK;
  for (size_t i = 0; ok && i < info.layers; ++i) {
    int32_t layer = 0;
    const float* weights = NULL;  // (H,T,S)
    ok = vkf_maps_get_layer(maps, i, &layer, &weights, error) == VKF_OK;
    if (ok) printf("layer %d: %.3f\n", layer, weights[0]);
  }
  vkf_maps_free(maps);
  vkf_tensors_free(outputs);
  //! [end]
  return ok;
}

static int show_pages(vkf_maps* maps, vkf_error* error) {
  //! [vkf_maps_set_labels vkf_maps_grid_png vkf_maps_html]
  // Names the four tokens, and draws all maps as one picture and as a page for a browser.
  const char* const tokens[4] = {"the", "cat", "sat", "."};
  const vkf_maps* const shown[1] = {maps};
  vkf_bytes* png = NULL;
  vkf_bytes* page = NULL;
  const int ok = vkf_maps_set_labels(maps, tokens, tokens, error) == VKF_OK &&
                 vkf_maps_grid_png(maps, NULL, &png, error) == VKF_OK &&
                 vkf_maps_html(shown, 1, "The cat", &page, error) == VKF_OK;
  printf("%zu and %zu bytes\n", vkf_bytes_size(png), vkf_bytes_size(page));
  vkf_bytes_free(page);
  vkf_bytes_free(png);
  //! [end]
  return ok;
}

static int show_summaries(const vkf_maps* maps, vkf_error* error) {
  //! [vkf_maps_mean vkf_maps_rollout]
  // The mean over heads, and how much of each input token is in each token of the output.
  vkf_maps* mean = NULL;
  vkf_maps* rollout = NULL;
  int32_t layer = 0;
  const float* shares = NULL;  // (1,T,T)
  const int ok = vkf_maps_mean(maps, &mean, error) == VKF_OK &&
                 vkf_maps_rollout(maps, &rollout, error) == VKF_OK &&
                 vkf_maps_get_layer(rollout, 0, &layer, &shares, error) == VKF_OK;
  if (ok) printf("%.3f of the first token is its own\n", shares[0]);
  vkf_maps_free(rollout);
  vkf_maps_free(mean);
  //! [end]
  return ok;
}

static int show_overlay(const vkf_picture* picture, vkf_error* error) {
  //! [vkf_overlay_png]
  // Draws a picture with red where weights on its 2 x 2 patches are high.
  const float patches[4] = {0, 1, 0.5f, 0.25f};
  const vkf_overlay overlay = {
      .struct_size = sizeof overlay, .rows = 2, .columns = 2, .values = patches};
  vkf_bytes* png = NULL;
  const int ok = vkf_overlay_png(picture, &overlay, &png, error) == VKF_OK;
  printf("%zu bytes\n", vkf_bytes_size(png));
  vkf_bytes_free(png);
  //! [end]
  return ok;
}

static int show_heads(const vkf_maps* scores, const float* const* entropies, vkf_error* error) {
  //! [vkf_heads_measure vkf_heads_count vkf_heads_get vkf_heads_free]
  // Lists heads that attend to everything alike. `scores` are the maps of a pass with
  // VKF_RUN_SCORES; `entropies` are of one with VKF_RUN_ENTROPY, a (H,T) for each layer.
  const vkf_measured_pass pass = {scores, entropies};
  vkf_heads* heads = NULL;
  int ok = vkf_heads_measure(&pass, 1, NULL, &heads, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_heads_count(heads); ++i) {
    vkf_head head = {.struct_size = sizeof head};
    ok = vkf_heads_get(heads, i, &head, error) == VKF_OK;
    if (ok && head.state == VKF_HEAD_COLLAPSED) printf("%d.%d\n", head.layer, head.head);
  }
  vkf_heads_free(heads);
  //! [end]
  return ok;
}

/* Entropies are of probabilities, so they come from a pass without VKF_RUN_SCORES. Both passes are
 * of layer 0 alone, which is all that the example needs. */
static int measure(vkf_session* session, const vkf_tensors* inputs, vkf_error* error) {
  vkf_run_options run = {.struct_size = sizeof run};
  vkf_tensors* with_scores = NULL;
  vkf_tensors* with_entropy = NULL;
  vkf_maps* scores = NULL;
  vkf_tensor entropy = {.struct_size = sizeof entropy};
  run.flags = VKF_RUN_ATTENTIONS | VKF_RUN_SCORES | VKF_RUN_ATTENTION_LAYER;
  int ok = vkf_session_run(session, inputs, &run, &with_scores, error) == VKF_OK &&
           vkf_maps_from(with_scores, "self", 0, &scores, error) == VKF_OK;
  run.flags = VKF_RUN_ENTROPY | VKF_RUN_ATTENTION_LAYER;
  ok = ok && vkf_session_run(session, inputs, &run, &with_entropy, error) == VKF_OK &&
       vkf_tensors_get(with_entropy, "attention_entropy.0", &entropy, error) == VKF_OK;
  const float* const entropies[1] = {entropy.data};
  ok = ok && show_heads(scores, entropies, error);
  vkf_maps_free(scores);
  vkf_tensors_free(with_entropy);
  vkf_tensors_free(with_scores);
  return ok;
}

static int show_all_maps(vkf_session* session, const vkf_tensors* inputs, vkf_error* error) {
  const vkf_run_options run = {.struct_size = sizeof run, .flags = VKF_RUN_ATTENTIONS};
  vkf_tensors* outputs = NULL;
  vkf_maps* maps = NULL;
  const int ok = show_maps(session, inputs, error) &&
                 vkf_session_run(session, inputs, &run, &outputs, error) == VKF_OK &&
                 vkf_maps_from(outputs, "self", 0, &maps, error) == VKF_OK &&
                 show_pages(maps, error) && show_summaries(maps, error) &&
                 measure(session, inputs, error);
  vkf_maps_free(maps);
  vkf_tensors_free(outputs);
  return ok;
}

int show_c_attention(const c_setting* setting) {
  static const int64_t kIds[4] = {1, 5, 7, 2};
  const int64_t shape[2] = {1, 4};
  const vkf_tensor tensor = {sizeof tensor, VKF_I64, shape, 2, kIds, sizeof kIds};
  char path[PATH_BYTES];
  vkf_error* error = setting->error;
  vkf_tensors* inputs = NULL;
  vkf_model* model = NULL;
  vkf_session* session = NULL;
  vkf_picture* picture = NULL;
  path_in(path, setting->goldens, "bert-sentiment/model");
  int ok = vkf_tensors_create(&inputs, error) == VKF_OK &&
           vkf_tensors_set(inputs, "input_ids", &tensor, error) == VKF_OK &&
           vkf_model_load(setting->device, path, NULL, &model, error) == VKF_OK &&
           vkf_session_create(model, NULL, &session, error) == VKF_OK &&
           show_all_maps(session, inputs, error);
  path_in(path, setting->tasks, "picture-0.png");
  ok = ok && vkf_picture_load(path, &picture, error) == VKF_OK && show_overlay(picture, error);
  vkf_picture_free(picture);
  vkf_session_free(session);
  vkf_model_free(model);
  vkf_tensors_free(inputs);
  return ok;
}
