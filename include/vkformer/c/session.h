// c/session.h: forward passes of a model.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_SESSION_H
#define VKFORMER_C_SESSION_H

#include "vkformer/c/model.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vkf_session vkf_session;

typedef struct vkf_session_options {
  uint32_t struct_size;
  int32_t recordings;        // kept per kind of pass; 0: 8
  int32_t steps_per_submit;  // decoding steps per submit; 0: 8
  uint32_t prefix_reuse;     // 1: only what follows the longest cached prefix is computed
  const char* cache;         // a generation's keys and values: "f32" (the default), "f16" or "q8"
  uint32_t round_lengths;  // 1: passes over texts run on a few padded lengths; results are cut back
  uint32_t reserved;       // 0
} vkf_session_options;

// Bits of vkf_run_options::flags.
enum {
  VKF_RUN_ATTENTIONS = 1,        // attentions.l, encoder_attentions.l and so on (B,H,T,S)
  VKF_RUN_SCORES = 2,            // these are scaled scores, -inf where masked, not probabilities
  VKF_RUN_ENTROPY = 4,           // attention_entropy.l and so on, in nats (B,H,T)
  VKF_RUN_HIDDEN_STATES = 8,     // hidden_states.l and so on: the input of layer l (B,T,D)
  VKF_RUN_ATTENTION_LAYER = 16,  // attentions and entropy of layer attention_layer only
  VKF_RUN_ATTENTION_HEAD = 32,   // attentions and entropy of head attention_head only
  VKF_RUN_CLAMP_POSITIONS = 64   // tokens beyond the model's last position take that one
};
typedef struct vkf_run_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t attention_layer;  // counts with VKF_RUN_ATTENTION_LAYER
  int32_t attention_head;   // counts with VKF_RUN_ATTENTION_HEAD
  double temperature;       // divides the scores of every attention; 0: 1
} vkf_run_options;

// [any]
VKFORMER_API vkf_status vkf_session_create(const vkf_model* model,
                                           const vkf_session_options* options,
                                           vkf_session** session, vkf_error* error);
VKFORMER_API void vkf_session_free(vkf_session* session);
// One full pass. A tensor of another name is an error that names the nearest one, and so is a mask
// with values other than 0 and 1. Inputs by name are input_ids (B,S), attention_mask (B,S),
// token_type_ids and position_ids (B,S). Decoders read decoder_input_ids (B,T) and
// decoder_attention_mask (B,T); images are pixel_values (B,C,height,width), audio is input_features
// (B,mel,frames). A family may add others. Outputs: last_hidden_state (B,T,D), what the model's
// head gives, and what the options ask for. [one]
VKFORMER_API vkf_status vkf_session_run(vkf_session* session, const vkf_tensors* inputs,
                                        const vkf_run_options* options, vkf_tensors** outputs,
                                        vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_SESSION_H
