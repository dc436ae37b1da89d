// A stack of Transformer layers (Vaswani et al. 2017) with the switches that its families differ
// in, for full passes, for a generation's prompt and for its steps.
//
// Weight rows that it asks for, by layer i under the stack's prefix:
//   i.self.norm, i.self.qkv, i.self.out, i.ffn.norm, i.ffn.up, i.ffn.down
//   in layers with experts, in the place of up and down, those of expert_layer.h under i.ffn
//   with cross-attention i.cross.norm, i.cross.q, i.cross.kv, i.cross.out
//   with a final norm `norm`
//   with norms of queries and keys i.self.qk_norm (H + Hkv, E), or i.self.q_norm (1, H E) and
//   i.self.k_norm (1, Hkv E): tables of gains
//   in layers that carry states, in the place of i.self or beside it, those of state_layer.h
//   where positions are added to queries and keys alone (StackRun::placed) i.self.qk and i.self.v
//   in the place of qkv, and i.cross.k and i.cross.v in that of kv
// qkv is [q | k | v], heads side by side, with gates of what attention gives [q | k | v | gates]. A
// gated up is pairs of a column of the gate projection and one of the up projection
// (in_gate_pairs).
#pragma once

#include <functional>

#include "model/blocks/expert_layer.h"
#include "model/blocks/state_layer.h"
#include "model/model.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/rotary.h"
#include "ops/rotary_table.h"
#include "ops/score_terms.h"

namespace vkformer {

// What layers of one kind do in self-attention. Stacks that alternate have two.
struct AttentionKind {
  int64_t window_left = -1;   // keys before the query that it sees; -1: all
  int64_t window_right = -1;  // keys after it, where the stack is not causal; -1: all
  int rotary = -1;            // index into StackConfig::rotaries; -1: none
};

// Rotary positions.
struct RotarySetup {
  uint32_t width = 0;  // r, columns of each head that turn
  RotaryPairs pairs = RotaryPairs::kHalves;
  RotaryScaling scaling = {};
};

// A bias by the distance from query to key, added to scores: (H, 2 reach + 1).
struct DistanceBias {
  int64_t reach = 0;  // keys; farther ones count as this far; 0: no bias
  std::vector<float> values;
};

// Queries, keys and values out of narrow latents (multi-head latent attention; DeepSeek-AI, 2024,
// "DeepSeek-V2"). A head of queries and keys is what turns, which all heads of keys share, then the
// rest. Instead of i.self.qkv there are rows
//   i.self.q (H E, D), or i.self.q_a (query_rank, D), i.self.q_norm, i.self.q_b (H E, query_rank)
//   i.self.line (rotary + rank, D), the shared part of keys, then the latent
//   i.self.latent_norm (1, rank), a table of gains
//   i.self.kv (H (E - rotary) + H Ev, rank), keys of all heads, then values
// Caches hold lines, [shared part | latent], where caches_latents() says so. A step then attends to
// the lines: kv goes into its queries and into sums of latents, head by head:
//   i.self.absorbed_keys, matrices (rank, E - rotary) of H heads
//   i.self.absorbed_values, matrices (Ev, rank) of H heads
struct LatentSetup {
  int64_t rank = 0;        // of keys and values; 0: there is no latent
  int64_t query_rank = 0;  // 0: queries come from the layer's input
  int64_t rotary = 0;      // columns of a head that turn
  float epsilon = 1e-6f;   // of the latents' norms

  int64_t line() const { return rotary + rank; }
};

struct StackConfig {
  std::string rows;         // prefix of its weight rows: "encoder"
  std::string taps;         // prefix of its outputs: "encoder_", or empty
  int64_t first_tap = 0;    // the number of layer 0 in their names
  int64_t layers = 0;       // L
  int64_t width = 0;        // D
  int64_t heads = 0;        // H
  int64_t kv_heads = 0;     // Hkv; 0: H
  int64_t head_width = 0;   // E; 0: D / H
  int64_t value_width = 0;  // Ev; 0: E
  LatentSetup latent = {};
  int64_t ffn = 0;  // F; 0: layers have no feed-forward sublayer
  enum class Norm : uint8_t { kLayer, kRms } norm = Norm::kLayer;
  float epsilon = 1e-5f;
  // kPost: x = norm(x + f(x)); kPre: x = x + f(norm(x)); kParallel: x + attention(norm x) +
  // ffn(other norm x).
  enum class Order : uint8_t { kPost, kPre, kParallel } order = Order::kPost;
  // kNormed: norm(x) + f(norm(x)) where the order is kPre (BLOOM's
  // apply_residual_connection_post_layernorm); kNormedFfn: so in the feed-forward sublayer alone
  // (RT-DETR's normalize_before).
  enum class Residual : uint8_t { kInput, kNormed, kNormedFfn } residual = Residual::kInput;
  // kYes: with kPre, x + other norm(f(norm(x))), whose rows are i.self.after and i.ffn.after (Gemma
  // 2).
  enum class AfterNorm : uint8_t { kNo, kYes } after_norm = AfterNorm::kNo;
  enum class FinalNorm : uint8_t { kNo, kYes } final_norm = FinalNorm::kNo;
  // With kPre, norms before the sublayers. kNotFirst: layer 0 has none before its attention
  // (ModernBERT); kNo: there are none, only those after (OLMo 2).
  enum class BeforeNorm : uint8_t { kNo, kNotFirst, kYes } before_norm = BeforeNorm::kYes;
  // With kParallel, the feed-forward layer reads what the attention reads (Cohere).
  enum class SharedNorm : uint8_t { kNo, kYes } shared_norm = SharedNorm::kNo;
  // Multiplies what a sublayer adds to its residual, where no norm follows it (Granite). Biases of
  // `out` and `down` are as the file has them times this (WeightRow::bias_scale).
  float branch_scale = 1.0f;
  // Norms of queries and keys before rotary positions, of the same kind as `norm`, without biases.
  // kAlike: each head by itself, with gains that all heads share. kHeads: the same with separate
  // gains. kWhole: all heads of a row together.
  enum class QueryKeyNorm : uint8_t { kNo, kAlike, kHeads, kWhole } qk_norm = QueryKeyNorm::kNo;
  ActivationKind activation = ActivationKind::kRelu;         // of experts, too
  enum class Gate : uint8_t { kNo, kYes } gate = Gate::kNo;  // of the feed-forward layer
  ExpertSetup experts;                                       // of layers that have them
  StateSetup states;                                         // of layers that carry them
  // kYes: what attention gives is multiplied by the sigmoid of gates (Qiu et al., 2025).
  enum class OutputGate : uint8_t { kNo, kYes } output_gate = OutputGate::kNo;
  enum class Causal : uint8_t { kNo, kYes } causal = Causal::kNo;
  enum class Cross : uint8_t { kNo, kYes } cross = Cross::kNo;
  int64_t memory_width = 0;          // of what cross-attention reads; 0: D
  std::vector<float> scales;         // of q.k, by layer; empty: 1 / sqrt(E); one value: all layers
  float softcap = 0.0f;              // of scaled scores, as AttentionAttrs has it; 0: none
  std::vector<AttentionKind> kinds;  // empty: one kind without window and rotary positions
  std::vector<uint8_t> kind_of;      // index into kinds by layer; empty: 0
  std::vector<RotarySetup> rotaries;
  std::vector<float> slopes;  // (H): ALiBi; empty: none
  DistanceBias distance;
  std::vector<float> sinks;  // (L, H): scores that join each softmax without a value; empty: none
  // kGives: hidden_states.l is what layer l gives, not what it reads (Mamba-2).
  enum class Tapped : uint8_t { kReads, kGives } tapped = Tapped::kReads;
  std::vector<int64_t> rows_of;  // whose weight rows layer l uses, where layers share; empty: l
  // Devices among which the heads and feed-forward columns of every layer are divided
  // (stack_parts.h). What is between the layers' products is computed at each of them.
  int64_t parts = 1;
  std::string cache_name;  // of one part: what its caches have after the layer's number

  int64_t head() const { return head_width > 0 ? head_width : width / heads; }
  int64_t kv() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t values() const { return value_width > 0 ? value_width : head(); }
  // Columns of a merged projection.
  int64_t qkv_width() const { return heads * head() + line_width(); }
  // The same with the gates after them.
  int64_t projection_width() const {
    return qkv_width() + (output_gate == OutputGate::kYes ? heads * values() : 0);
  }
  // Columns of keys and values of a token.
  int64_t line_width() const { return kv() * (head() + values()); }
  // Whether caches of self-attention hold latents: where a step's attention takes their width.
  bool caches_latents() const {
    return latent.rank > 0 && latent.line() <= int64_t{kMaxStepHeadWidth};
  }
  // Columns of a line of such a cache, or of any.
  int64_t cache_width() const { return caches_latents() ? latent.line() : line_width(); }
  std::string layer_rows(int64_t layer) const;
};

// The self-attention terms of one pass: a key mask, if any, then slopes or distance biases.
struct StackTerms {
  TensorId words = kNoTensor;
  ScoreTermsParams params = no_score_terms();
  uint32_t sinks = VKF_NO_TERM;  // word of layer 0's sink scores; those of the others follow
  // Where kinds of attention have terms of their own: theirs, windows included; empty: `params`.
  std::vector<ScoreTermsParams> by_kind = {};
};

struct LayerSite;

// What a stack runs over.
struct StackRun {
  enum class Mode : uint8_t { kFull, kPrompt, kStep } mode = Mode::kFull;
  int64_t batch = 0;   // B; in a step the items
  int64_t tokens = 0;  // T; in a step 1
  StackTerms terms;    // of self-attention, in full and prompt passes
  // Positions that the host feeds to rotary layers (B, T); kNoTensor: they are counted.
  TensorId positions = kNoTensor;
  // Cosines and sines of every token instead of a table by position. They are (T, r), the same for
  // all rows of the batch, or (B T, r).
  TensorId turning = kNoTensor;
  ForwardTaps taps = {};
  // Positions that queries and keys see and values do not (DETR; Carion et al., 2020), in full
  // passes. `placed` (B, T, D) is added to what queries and keys of self-attention and queries of
  // cross-attention are made of. `memory_keys` (B, S, any) is what keys of cross-attention are made
  // of.
  TensorId placed = kNoTensor;
  TensorId memory_keys = kNoTensor;
  // Cross-attention: the encoder's output (B, S, any) in full and prompt passes, and its key mask.
  TensorId memory = kNoTensor;
  int64_t source = 0;  // S
  TensorId source_mask = kNoTensor;
  // Of a prompt or a step.
  StepShape step = {};
  TensorId state = kNoTensor;
  TensorId ancestry = kNoTensor;
  TensorId parents = kNoTensor;  // of parent_lines, where layers carry states; add_stack adds it
  // Self-attention of a family's own in full passes. It takes h (B, T, D) and its qkv (B, T, (H + 2
  // Hkv) E) -> (B, T, H E), before the output projection. Empty: the one that `terms` and kinds
  // describe.
  using Attend = std::function<Result<TensorId>(const LayerSite& site, TensorId h, TensorId qkv)>;
  Attend attend = {};
  // In full passes: the input and the output of layer `layer` (B, T, D) -> what goes on. Empty: the
  // output.
  using After = std::function<Result<TensorId>(int64_t layer, TensorId input, TensorId output)>;
  After after = {};
  // Which states hidden_states.l are: what layer l reads, or what layer l - 1 gave to `after`.
  enum class Tapped : uint8_t { kInputs, kOutputs } tapped = Tapped::kInputs;
};

// External tensors of a decoding step, with what the stack adds by distance after the ancestry.
struct StepTensors {
  TensorId ids = kNoTensor;
  TensorId state = kNoTensor;
  TensorId ancestry = kNoTensor;
};
StepTensors add_step_tensors(ModelBuilder& builder, const StackConfig& stack,
                             const StepShape& shape);
// The DecodeState and slot rows (words) of a generation's prompt or step.
TensorId add_decode_state(Graph& graph);

// The terms of a pass over `keys` tokens. `mask` feeds a key mask of that name; empty: all keys
// are seen.
StackTerms add_stack_terms(ModelBuilder& builder, const StackConfig& stack, const std::string& mask,
                           int64_t batch, int64_t keys);

// The same for tokens that attend to each other both ways (PicturePrompt), fed as span_masks. The
// key mask comes first. Each kind of attention follows with a mask (B, T, ceil(T/32)) of each
// query's keys.
StackTerms add_span_terms(ModelBuilder& builder, const StackConfig& stack, const std::string& mask,
                          int64_t batch, int64_t tokens);

// All layers and the final norm: x (B, T, D), or (slots, D) in a step -> the same shape.
Result<TensorId> add_stack(ModelBuilder& builder, const StackConfig& stack, const StackRun& run,
                           TensorId x);

// Keys and values of cross-attention for every layer, as outputs cross_kv.l (B, S, 2 Hkv E).
Status add_cross_keys(ModelBuilder& builder, const StackConfig& stack, TensorId memory);

// Short forms that fronts and heads use as well.
Result<TensorId> add_named_linear(ModelBuilder& builder, const std::string& name, TensorId x,
                                  LinearAttrs attrs = {});
Result<TensorId> add_named_norm(ModelBuilder& builder, const StackConfig& stack,
                                const std::string& name, TensorId x, TensorId residual = kNoTensor);

}  // namespace vkformer
