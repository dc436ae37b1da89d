// attention in a decoding step: the one query of every live slot over a key/value cache.
//
//   self:  keys 0 ... own position of the slot's row (params/decode_state.h), each in the row that
//          owns it (beam ancestry), kv (R, lines, Hkv * (E + Ev))
//   cross: the encoder's keys of the slot's batch item, kv (B, S, Hkv * (E + Ev))
//
// A line of kv holds the keys of all heads, then the values of all heads. If all query heads share
// one key, its values may be columns of that key. Multi-head latent attention (DeepSeek-AI, 2024,
// "DeepSeek-V2", section 2.1) caches such lines: a rotated shared key and a latent. The line is
// attended to as key and as value. A cache with fewer lines than positions rolls (kv_append.h).
// Keys are summed up in the order of their positions, wherever they are stored. So a result has the
// same bits as with a line for every position.
//
// With a context of N keys, a query at position p >= N attends to the first `sinks` keys and the
// last N - sinks. It follows them, at position N - 1 (Xiao et al. 2023, "Efficient Streaming
// Language Models with Attention Sinks", section 3.2). Slopes, biases by distance and the window
// count from that position. Rotary scores depend on the difference of two positions only, so cached
// keys stay as they were rotated. The last ones meet the query rotated by p, and the sinks one
// rotated by N - 1.
#pragma once

#include <variant>

#include "base/matrix_format.h"
#include "ops/attention.h"
#include "params/decode_state.h"
#include "plan/device_caps.h"

namespace vkformer {

struct AttentionStepInputs {
  TensorId q = kNoTensor;      // (slots, any row width)
  TensorId kv = kNoTensor;     // (R, lines, Hkv * (E + Ev)) or (B, S, Hkv * (E + Ev))
  TensorId aux = kNoTensor;    // self: words, U32: ancestry (R, C), needed where beams > 1, and
                               // what the three offsets point at. Cross: key mask (B, ceil(S/32)),
                               // U32, or none
  TensorId state = kNoTensor;  // DecodeState and slot rows (words), U32
};

struct AttentionStepAttrs {
  enum class Source : uint8_t { kSelf, kCross };
  Source source = Source::kSelf;
  uint32_t heads = 1;        // H
  uint32_t kv_heads = 1;     // Hkv, a divisor of H
  uint32_t head_width = 1;   // E
  uint32_t value_width = 1;  // Ev
  // Column of the one key head where its Ev values begin; a line is the key alone, kv (R, lines,
  // E). Absent: values follow the keys.
  std::optional<uint32_t> value_column;
  uint32_t q_offset = 0;       // column of the first query head in a row of q, in elements
  uint32_t beams = 1;          // rows of a batch item
  std::optional<float> scale;  // of q.k; absent: 1 / sqrt(E)
  float softcap = 0.0f;        // as AttentionAttrs has it
  uint32_t window = 0;         // keys that a query sees, its own the last; 0: all
  // Words in aux, self only: ALiBi slopes (H); a bias by distance: reach R, then (H, 2R + 1).
  uint32_t slopes_offset = VKF_NO_TERM;
  uint32_t distance_offset = VKF_NO_TERM;
  // Likewise scores (H) that join the softmax, each as one more column without a value (OpenAI,
  // 2025, gpt-oss).
  uint32_t sink_scores_offset = VKF_NO_TERM;
  // Self only. C, positions of a row; 0: the cache's lines.
  uint32_t positions = 0;
  uint32_t context = 0;  // N, keys that a query sees at most, its own included; 0: all
  uint32_t sinks = 0;    // K, first keys that stay; fewer than the context
  // Column of the first query head that meets the sinks once keys are omitted; q_offset where
  // nothing is turned.
  std::optional<uint32_t> sink_q_offset;

  // Elements of a line of kv, and the first of its values.
  uint32_t line_width() const {
    return value_column ? head_width : kv_heads * (head_width + value_width);
  }
  uint32_t value_offset() const { return value_column.value_or(kv_heads * head_width); }
};

// What a step's kernels are launched with, besides its attributes.
struct AttentionStepLaunch {
  bool rolls = false;      // the cache has fewer lines than positions
  uint32_t heads = 1;      // query heads of a workgroup
  uint32_t part_keys = 0;  // keys of a part; 0: there is one part
  uint32_t parts = 1;
  CacheFormat format = CacheFormat::kF32;
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
