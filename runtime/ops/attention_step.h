// attention in a decoding step: the one query of every live slot over a key/value cache.
//
//   self:  keys 0 ... own position of the slot's row (params/decode_state.h), each in the row that
//          owns it (beam ancestry), kv (R, C, Hkv * (E + Ev))
//   cross: the encoder's keys of the slot's batch item, kv (B, S, Hkv * (E + Ev))
//
// A line of kv holds the keys of all heads, then the values of all heads.
#pragma once

#include <variant>

#include "ops/attention.h"
#include "params/decode_state.h"
#include "plan/device_caps.h"

namespace vkformer {

struct AttentionStepInputs {
  TensorId q = kNoTensor;      // (slots, any row width)
  TensorId kv = kNoTensor;     // (R, C, Hkv * (E + Ev)) or (B, S, Hkv * (E + Ev))
  TensorId aux = kNoTensor;    // self: words, U32: ancestry (R, C), needed where beams > 1, and
                               // what slopes_offset and distance_offset point at; cross: key mask
                               // (B, ceil(S/32)), U32, or none
  TensorId state = kNoTensor;  // DecodeState and slot rows (words), U32
};

struct AttentionStepAttrs {
  enum class Source : uint8_t { kSelf, kCross };
  Source source = Source::kSelf;
  uint32_t heads = 1;          // H
  uint32_t kv_heads = 1;       // Hkv, a divisor of H
  uint32_t head_width = 1;     // E
  uint32_t value_width = 1;    // Ev
  uint32_t q_offset = 0;       // column of the first query head in a row of q, in elements
  uint32_t beams = 1;          // rows of a batch item
  std::optional<float> scale;  // of q.k; absent: 1 / sqrt(E)
  uint32_t window = 0;         // keys that a query sees, its own the last; 0: all
  // Words in aux, self only: ALiBi slopes (H); a bias by distance: reach R, then (H, 2R + 1).
  uint32_t slopes_offset = VKF_NO_TERM;
  uint32_t distance_offset = VKF_NO_TERM;
};

// What a node of operator attention carries.
using AttentionNodeAttrs = std::variant<AttentionAttrs, AttentionStepAttrs>;

// y's description, or why the inputs do not fit; aux may be null.
Result<TensorDesc> check_attention_step(const TensorDesc& q, const TensorDesc& kv,
                                        const TensorDesc* aux, const TensorDesc& state,
                                        const AttentionStepAttrs& attrs);

// Adds the node to a decoding step's graph and returns y (slots, H * Ev).
Result<TensorId> add_attention_step(Graph& graph, const AttentionStepInputs& inputs,
                                    const AttentionStepAttrs& attrs);

Status lower_attention_step(LowerContext& context, const Node& node,
                            const AttentionStepAttrs& attrs);

// Invocations of a workgroup that owns rows of `value_width` columns.
uint32_t attention_local_size(const DeviceCaps& caps, uint32_t value_width);

}  // namespace vkformer
