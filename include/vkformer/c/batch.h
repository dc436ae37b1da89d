// c/batch.h: many generations at once.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_BATCH_H
#define VKFORMER_C_BATCH_H

#include "vkformer/c/generation.h"
#include "vkformer/c/model.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// Requests that join and leave a running batch; see generation_batch.h.
typedef struct vkf_batch vkf_batch;
typedef struct vkf_updates vkf_updates;
typedef struct vkf_batch_options {
  uint32_t struct_size;
  int32_t rows;               // requests that run together; 0: 8
  int32_t capacity;           // tokens of a row; 0: the model's positions, at most 1,024
  int32_t step_tokens;        // of one step, at least `rows`; 0: 16
  int32_t waiting;            // requests that wait at most; 0: 64
  int32_t waiting_of_client;  // of one client; 0: all
  int32_t running_of_client;  // rows of one client; 0: all
  uint32_t forget;            // 1: keys of earlier texts are not reused
  int32_t draft_tokens;       // proposed for a row in a step at most; 0: 4
  int32_t lookup;             // last tokens that are looked up in a text; 0: none
  int32_t context;            // keys that a row keeps; 0: all
  int32_t sinks;              // first keys of a context that stay; 0: 4, -1: none
  const vkf_model* draft;     // a smaller model that proposes them; null: none
  // Tokens of an encoder's input; 0: as many as the model takes, at most 512 of a text.
  int32_t source;
  int32_t reserved;
} vkf_batch_options;
typedef struct vkf_batch_request {
  uint32_t struct_size;
  uint32_t reserved;
  // Or the input of an encoder-decoder; of one that describes a picture, the text's beginning.
  vkf_ids prompt;
  const vkf_generate_options* options;  // null: the model's own, with one beam
  const char* client;                   // the client that asks; null: none in particular
  // Of a decoder that reads images: the tensors of the images in the prompt. Of an encoder that
  // reads pictures: the pixel_values of one. What vkf_image_prompts_read gives has the prompt as
  // well, as input_ids (1, T); `prompt` is then empty. Null: none.
  const vkf_tensors* inputs;
} vkf_batch_request;
enum {
  VKF_REQUEST_RUNS = 0,
  VKF_REQUEST_FINISHED = 1,
  VKF_REQUEST_CANCELLED = 2,
  VKF_REQUEST_FAILED = 3
};
typedef struct vkf_batch_update {
  uint32_t struct_size;
  int32_t state;  // VKF_REQUEST_*
  uint64_t request;
  vkf_ids tokens;         // that came, an end token included
  double score;           // sum of the log-probabilities of all tokens so far
  int64_t steps;          // that had tokens of it, so far, like all that follows
  int64_t prompt_tokens;  // read
  int64_t reused_tokens;  // of the prompt, whose keys were there already
  int64_t new_tokens;
  int64_t draft_tokens;
  int64_t accepted_tokens;  // of the draft tokens
  const char* error;        // why it failed, or null
  uint64_t sequence;        // of the request's, each of which runs and ends by itself
} vkf_batch_update;
typedef struct vkf_batch_counters {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t steps;
  int64_t prompt_tokens;
  int64_t reused_tokens;
  int64_t new_tokens;
  int64_t draft_tokens;
  int64_t accepted_tokens;
  int64_t draft_steps;
  int64_t waiting;  // sequences in the queue; a canceled one counts until a step reports its end
  int64_t running;  // requests
  int64_t cache_bytes;
} vkf_batch_counters;
// [any]
VKFORMER_API vkf_status vkf_batch_create(const vkf_model* model, const vkf_batch_options* options,
                                         vkf_batch** batch, vkf_error* error);
VKFORMER_API void vkf_batch_free(vkf_batch* batch);
// The request's number, at least 1. VKF_QUEUE_FULL: take steps, then submit it again. A request of
// more sequences than a queue holds never fits: VKF_INVALID_ARGUMENT. [any]
VKFORMER_API vkf_status vkf_batch_submit(vkf_batch* batch, const vkf_batch_request* given,
                                         uint64_t* request, vkf_error* error);
// Ends a request that waits or runs; the next step tells of it. [any]
VKFORMER_API vkf_status vkf_batch_cancel(vkf_batch* batch, uint64_t request, vkf_error* error);
// Lets requests join, takes one step, and tells what came of it. [one]
VKFORMER_API vkf_status vkf_batch_step(vkf_batch* batch, vkf_updates** updates, vkf_error* error);
// 1: nobody waits, runs or has an update left. [any]
VKFORMER_API uint32_t vkf_batch_idle(const vkf_batch* batch);
VKFORMER_API vkf_status vkf_batch_count(const vkf_batch* batch, vkf_batch_counters* counters,
                                        vkf_error* error);
VKFORMER_API size_t vkf_updates_count(const vkf_updates* updates);
// What it points to stays as long as the updates. [one]
VKFORMER_API vkf_status vkf_updates_get(const vkf_updates* updates, size_t index,
                                        vkf_batch_update* update, vkf_error* error);
VKFORMER_API void vkf_updates_free(vkf_updates* updates);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_BATCH_H
