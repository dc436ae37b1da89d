#include "model/blocks/stack_attention.h"

#include <algorithm>

#include <numeric>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/adapted_linear.h"
#include "ops/attention_step.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/expand_keys.h"
#include "ops/head_linear.h"
#include "ops/head_norm.h"
#include "ops/kv_append.h"
#include "ops/latent_queries.h"
#include "ops/move_columns.h"
#include "ops/rms_norm.h"
#include "ops/rotary_append.h"

namespace vkformer {
namespace {

using Mode = StackRun::Mode;

size_t kind_index(const LayerSite& site) {
  const std::vector<uint8_t>& kinds = site.c.kind_of;
  return kinds.empty() ? 0 : kinds[static_cast<size_t>(site.layer)];
}

AttentionKind kind_of(const LayerSite& site) {
  const StackConfig& c = site.c;
  return c.kinds.empty() ? AttentionKind{} : c.kinds[kind_index(site)];
}

std::optional<float> scale_of(const LayerSite& site) {
  const std::vector<float>& scales = site.c.scales;
  if (scales.empty()) return std::nullopt;
  return scales[scales.size() == 1 ? 0 : static_cast<size_t>(site.layer)];
}

// The cache of one layer: its lines, and how many of the first positions stay in it.
struct CacheLines {
  int64_t lines = 0;
  int64_t sinks = 0;
};

// A line for every position, or as many as the context has, or as a window that never reaches a
// sink once keys are omitted.
CacheLines cache_lines(const LayerSite& site) {
  const StepShape& s = site.run.step;
  const int64_t window = kind_of(site).window_left + 1;
  const int64_t seen = s.context > 0 ? std::min(s.context, s.capacity) : s.capacity;
  if (window > 0 && window <= seen - s.sinks) {
    return {.lines = std::min(window + s.ahead, s.capacity)};
  }
  return {.lines = std::min(seen + s.ahead, s.capacity), .sinks = s.sinks};
}

// In a generation the positions end with the cache's, and the prompt is the first pass.
Result<std::vector<float>> turning_table(const StackRun& run, const RotarySetup& rotary) {
  const bool full = run.mode == Mode::kFull;
  const int64_t context = full ? 0 : run.step.context;
  if (context == 0) {
    return rotary_table(rotary.scaling, {.positions = full ? run.tokens : run.step.capacity,
                                         .rotary_width = rotary.width,
                                         .sequence_length = full ? run.tokens : run.step.prompt});
  }
  const int64_t steady = steady_positions(rotary.scaling);
  if (steady > 0 && context > steady) {
    return invalid_argument(
        message({"[context] is ", context, " keys, but beyond ", steady,
                 " tokens this model's rotary frequencies change with every token, and keys that "
                 "stay would have old ones; use no more than that"}));
  }
  // Differences of positions stay within the context, whatever the positions are.
  VKF_ASSIGN(const RotaryFrequencies frequencies,
             rotary_frequencies(rotary.scaling, rotary.width, context));
  std::vector<int64_t> positions(static_cast<size_t>(run.step.capacity));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  return rotary_rows(frequencies, positions);
}

Result<TensorId> table_of(const LayerSite& site, int index) {
  const RotarySetup& rotary = site.c.rotaries[static_cast<size_t>(index)];
  const std::string name = site.c.rows + ".rotary." + std::to_string(index);
  const TensorId known = site.b.graph().find_external(name);
  if (known != kNoTensor) return known;
  VKF_ASSIGN(std::vector<float> values, turning_table(site.run, rotary));
  const Shape shape = {static_cast<int64_t>(values.size()) / rotary.width, rotary.width};
  return site.b.host_floats(name, shape, values);
}

TensorId cache_of(const LayerSite& site) {
  const StepShape& s = site.run.step;
  const auto words = cache_line_words(s.cache, u32(site.c.cache_width()));
  return site.b.graph().add_external("self_kv." + site.number(),
                                     s.cache == CacheFormat::kF32 ? DType::kF32 : DType::kU32,
                                     {s.batch * s.beams, cache_lines(site).lines, words});
}

// Heads at the beginning of rows, of which all turn.
struct TurnedHeads {
  int64_t count = 0;
  int64_t width = 0;  // columns
};

// x (.., W) with these heads turned.
Result<TensorId> turn(const LayerSite& site, int index, TensorId x, const TurnedHeads& heads) {
  const RotarySetup& rotary = site.c.rotaries[static_cast<size_t>(index)];
  const bool by_token = site.run.turning != kNoTensor;
  TensorId table = site.run.turning;
  if (!by_token) {
    VKF_ASSIGN(table, table_of(site, index));
  }
  const int64_t rows = by_token ? site.b.graph().tensor(table).shape[0] : site.run.tokens;
  site.b.graph().set_scope(site.rows() + ".self.rotary");
  return add_rotary(site.b.graph(), {.x = x, .table = table, .positions = site.run.positions},
                    {.heads = u32(heads.count),
                     .head_width = u32(heads.width),
                     .rotary_width = rotary.width,
                     .pairs = rotary.pairs,
                     .tokens = u32(rows)});
}

// Heads as a step attends to them in the cache.
struct CachedHeads {
  uint32_t count = 1;                    // Hkv
  uint32_t width = 1;                    // E
  uint32_t values = 1;                   // Ev
  std::optional<uint32_t> value_column;  // of a key, where values are columns of it
};

CachedHeads cached_heads(const StackConfig& c) {
  if (!c.caches_latents()) return {u32(c.kv()), u32(c.head()), u32(c.values()), std::nullopt};
  return {1, u32(c.latent.line()), u32(c.latent.rank), u32(c.latent.rotary)};
}

// The same in a step: the queries alone, turned, for a layer with sinks once more for them. Keys
// and values are in the cache then.
Result<TensorId> turn_step(const LayerSite& site, int index, TensorId qkv) {
  const StackConfig& c = site.c;
  const StepShape& s = site.run.step;
  const RotarySetup& rotary = c.rotaries[static_cast<size_t>(index)];
  VKF_ASSIGN(const TensorId table, table_of(site, index));
  const CacheLines kept = cache_lines(site);
  const CachedHeads cached = cached_heads(c);
  using Values = RotaryAppendAttrs::Values;
  site.b.graph().set_scope(site.rows() + ".self.rotary");
  return add_rotary_append(
      site.b.graph(), {.x = qkv, .table = table, .state = site.run.state, .cache = cache_of(site)},
      {.heads = u32(c.heads),
       .kv_heads = cached.count,
       .head_width = cached.width,
       .value_width = cached.values,
       .has_values = cached.value_column ? Values::kNo : Values::kYes,
       .rotary_width = rotary.width,
       .pairs = rotary.pairs,
       .again_heads = kept.sinks > 0 ? u32(c.heads) : 0u,
       .again_limit = kept.sinks > 0 ? u32(s.context - 1) : 0u,
       .positions = u32(s.capacity),
       .sinks = u32(kept.sinks)});
}

// qkv with the heads of one table of gains normed, from column `first` on.
Result<TensorId> norm_heads(const LayerSite& site, const std::string& table, int64_t first,
                            TensorId qkv) {
  const std::string name = site.rows() + ".self." + table;
  site.b.graph().set_scope(name);
  VKF_ASSIGN(const TensorId gains, site.b.table(name));
  HeadNormAttrs attrs{.first = u32(first), .epsilon = site.c.epsilon};
  if (site.c.norm == StackConfig::Norm::kLayer) attrs.kind = HeadNormAttrs::Kind::kCentered;
  return add_head_norm(site.b.graph(), qkv, gains, attrs);
}

Result<TensorId> norm_queries_keys(const LayerSite& site, TensorId qkv) {
  using QueryKeyNorm = StackConfig::QueryKeyNorm;
  const StackConfig& c = site.c;
  if (c.qk_norm == QueryKeyNorm::kNo) return qkv;
  if (c.qk_norm != QueryKeyNorm::kWhole) return norm_heads(site, "qk_norm", 0, qkv);
  VKF_ASSIGN(qkv, norm_heads(site, "q_norm", 0, qkv));
  return norm_heads(site, "k_norm", c.heads * c.head(), qkv);
}

// Queries (..., H E) out of the layer's input or its latent.
Result<TensorId> add_latent_q(const LayerSite& site, TensorId h) {
  const std::string name = site.rows() + ".self.";
  if (site.c.latent.query_rank == 0) return add_named_linear(site.b, name + "q", h);
  VKF_ASSIGN(const TensorId x, add_named_linear(site.b, name + "q_a", h));
  site.b.graph().set_scope(name + "q_norm");
  VKF_ASSIGN(const TensorId gain, site.b.norm(name + "q_norm"));
  VKF_ASSIGN(const TensorId latent,
             add_rms_norm(site.b.graph(), x, gain, {.epsilon = site.c.latent.epsilon}));
  return add_named_linear(site.b, name + "q_b", latent);
}

// [what all keys share | the latent] (..., rotary + rank), not yet turned.
Result<TensorId> add_latent_line(const LayerSite& site, TensorId h) {
  const LatentSetup& latent = site.c.latent;
  const std::string name = site.rows() + ".self.";
  VKF_ASSIGN(const TensorId line, add_named_linear(site.b, name + "line", h));
  site.b.graph().set_scope(name + "latent_norm");
  VKF_ASSIGN(const TensorId gain, site.b.table(name + "latent_norm"));
  return add_head_norm(site.b.graph(), line, gain,
                       {.first = u32(latent.rotary), .epsilon = latent.epsilon});
}

// [q | k | v], the keys and values that a line expands to.
Result<TensorId> expand_latents(const LayerSite& site, TensorId q, TensorId line) {
  const StackConfig& c = site.c;
  Graph& g = site.b.graph();
  g.set_scope(site.rows() + ".self");
  Shape shape = g.tensor(line).shape;
  shape.back() = c.latent.rank;
  VKF_ASSIGN(const TensorId latent,
             add_columns(g, line, {u32(c.latent.rotary), u32(c.latent.line())}, shape));
  VKF_ASSIGN(const TensorId kv, add_named_linear(site.b, site.rows() + ".self.kv", latent));
  g.set_scope(site.rows() + ".self");
  return add_expand_keys(g, {.q = q, .shared = line, .kv = kv},
                         {.heads = u32(c.heads),
                          .value_width = u32(c.values()),
                          .shared_width = u32(c.latent.rotary)});
}

// A product of every head with its own matrix, of N columns, with what adapters of requests add.
Result<TensorId> add_named_heads(ModelBuilder& b, const std::string& name, int64_t n, TensorId x,
                                 const HeadLinearAttrs& attrs) {
  b.graph().set_scope(name);
  VKF_ASSIGN(const std::optional<LinearAdapters> adapters, b.adapters(name));
  VKF_ASSIGN(LinearWeight all, b.linear_without_adapters(name));
  const ExpertWeight weight = weight_by_head(std::move(all), u32(n));
  if (adapters) return add_adapted_heads(b.graph(), x, weight, *adapters, attrs);
  return add_head_linear(b.graph(), x, weight, attrs);
}

// [q | line], queries that meet lines as they are.
Result<TensorId> absorb_keys(const LayerSite& site, TensorId q, TensorId line) {
  const StackConfig& c = site.c;
  const std::string name = site.rows() + ".self";
  VKF_ASSIGN(const TensorId absorbed,
             add_named_heads(site.b, name + ".absorbed_keys", c.latent.rank, q,
                             {.first = u32(c.latent.rotary), .stride = u32(c.head())}));
  site.b.graph().set_scope(name);
  return add_latent_queries(site.b.graph(), {.q = q, .absorbed = absorbed, .line = line},
                            {.heads = u32(c.heads)});
}

// Values (slots, H Ev) out of the heads' sums of latents (slots, H rank).
Result<TensorId> absorb_values(const LayerSite& site, TensorId y) {
  return add_named_heads(site.b, site.rows() + ".self.absorbed_values", site.c.values(), y,
                         {.stride = u32(site.c.latent.rank)});
}

// [q | k | v], of which queries and keys see positions.
Result<TensorId> project_placed(const LayerSite& site, TensorId h) {
  const std::string name = site.rows() + ".self.";
  site.b.graph().set_scope(name + "placed");
  VKF_ASSIGN(const TensorId placed, add_combine(site.b.graph(), h, site.run.placed, {}));
  VKF_ASSIGN(const TensorId qk, add_named_linear(site.b, name + "qk", placed));
  VKF_ASSIGN(const TensorId v, add_named_linear(site.b, name + "v", h));
  return add_concat_columns(site.b.graph(), qk, v);
}

Result<TensorId> project(const LayerSite& site, TensorId h) {
  if (site.run.placed != kNoTensor) return project_placed(site, h);
  return add_named_linear(site.b, site.rows() + ".self.qkv", h);
}

// What attention gives, times the sigmoid of the gates after q, k and v.
Result<TensorId> add_output_gate(const LayerSite& site, TensorId projected, TensorId y) {
  site.b.graph().set_scope(site.rows() + ".self.gate");
  return add_gated_norm(site.b.graph(), y, projected, kNoTensor,
                        {.activation = ActivationKind::kSigmoid, .first = u32(site.c.qkv_width())});
}

Result<TensorId> attend_own(const LayerSite& site, TensorId qkv) {
  return attend(site, {.q = qkv, .kv = qkv, .terms = site.run.terms.words}, own_attrs(site),
                tap_of(site, site.c.taps));
}

AttentionStepAttrs step_sizes(const LayerSite& site, AttentionStepAttrs::Source source) {
  const CachedHeads cached = cached_heads(site.c);
  AttentionStepAttrs attrs;
  attrs.source = source;
  attrs.heads = u32(site.c.heads);
  attrs.kv_heads = cached.count;
  attrs.head_width = cached.width;
  attrs.value_width = cached.values;
  attrs.value_column = cached.value_column;
  attrs.beams = u32(site.run.step.beams);
  attrs.scale = scale_of(site);
  attrs.softcap = site.c.softcap;
  return attrs;
}

Result<TensorId> step_own(const LayerSite& site, TensorId qkv) {
  const StackConfig& c = site.c;
  const StackRun& run = site.run;
  AttentionStepAttrs attrs = step_sizes(site, AttentionStepAttrs::Source::kSelf);
  const AttentionKind kind = kind_of(site);
  if (kind.window_left >= 0) attrs.window = u32(kind.window_left + 1);
  const uint32_t ancestry_end = u32(run.step.batch * run.step.beams * run.step.capacity);
  if (!c.slopes.empty()) attrs.slopes_offset = ancestry_end;
  if (c.distance.reach > 0) attrs.distance_offset = ancestry_end;
  if (!c.sinks.empty()) {
    attrs.sink_scores_offset =
        ancestry_end + u32(static_cast<int64_t>(distance_words(c).size()) + site.layer * c.heads);
  }
  attrs.positions = u32(run.step.capacity);
  attrs.context = u32(run.step.context);
  attrs.sinks = u32(cache_lines(site).sinks);
  if (kind.rotary >= 0 && attrs.sinks > 0) attrs.sink_q_offset = attrs.heads * attrs.head_width;
  const TensorId cache = site.b.graph().find_external("self_kv." + site.number());
  VKF_ASSIGN(
      const TensorId y,
      add_attention_step(site.b.graph(),
                         {.q = qkv, .kv = cache, .aux = run.ancestry, .state = run.state}, attrs));
  return c.caches_latents() ? absorb_values(site, y) : y;
}

// What of rows of x goes into the cache: columns from `first` on.
Status append(const LayerSite& site, TensorId x, uint32_t first, uint32_t keys) {
  const StepShape& s = site.run.step;
  Graph& g = site.b.graph();
  const CacheLines kept = cache_lines(site);
  site.b.graph().set_scope(site.rows() + ".self");
  return add_kv_append(g, x, add_decode_state(g), cache_of(site),
                       {.k_offset = first,
                        .v_offset = first + keys,
                        .k_width = keys,
                        .v_width = u32(site.c.cache_width()) - keys,
                        .beams = u32(s.beams),
                        .positions = u32(s.capacity),
                        .sinks = u32(kept.sinks)});
}

// A prompt's lines into the cache.
Status append_line(const LayerSite& site, TensorId line) {
  const int rotary = kind_of(site).rotary;
  if (rotary >= 0) {
    VKF_ASSIGN(line, turn(site, rotary, line, {1, site.c.latent.line()}));
  }
  return append(site, line, 0, u32(site.c.latent.rotary));
}

}  // namespace

AttentionTap tap_of(const LayerSite& site, const std::string& kind) {
  const ForwardTaps& taps = site.run.taps;
  const int64_t layer = site.c.first_tap + site.layer;
  const std::vector<int64_t>& cross = taps.cross_layers;
  const bool chosen = cross.empty() ? taps.attention_layer < 0 || taps.attention_layer == layer
                                    : kind == "cross_" && std::find(cross.begin(), cross.end(),
                                                                    layer) != cross.end();
  if (taps.attentions == ForwardTaps::Tap::kOff || !chosen) return {};
  AttentionTap tap{.name = kind + "attentions." + std::to_string(layer),
                   .head = taps.attention_head};
  if (taps.raw_scores == ForwardTaps::Tap::kOn) tap.result = AttentionWeightsAttrs::Result::kScores;
  return tap;
}

Result<TensorId> add_map(const LayerSite& site, const AttentionInputs& inputs,
                         const AttentionAttrs& attrs, const AttentionTap& tap) {
  AttentionWeightsAttrs weights{.attention = attrs};
  weights.first_head = tap.head < 0 ? 0 : u32(tap.head);
  weights.head_count = tap.head < 0 ? 0 : 1;
  weights.result = tap.result;
  return add_attention_weights(site.b.graph(), inputs, weights);
}

Result<TensorId> attend(const LayerSite& site, const AttentionInputs& inputs,
                        const AttentionAttrs& attrs, const AttentionTap& tap) {
  if (!tap.name.empty()) {
    VKF_ASSIGN(TensorId map, add_map(site, inputs, attrs, tap));
    site.b.mark_output(map, tap.name);
  }
  return add_attention(site.b.graph(), inputs, attrs);
}

AttentionAttrs sizes_of(const LayerSite& site, int64_t keys) {
  const StackConfig& c = site.c;
  AttentionAttrs attrs;
  attrs.batch = u32(site.run.batch);
  attrs.heads = u32(c.heads);
  attrs.kv_heads = u32(c.kv());
  attrs.queries = u32(site.run.tokens);
  attrs.keys = u32(keys);
  attrs.head_width = u32(c.head());
  attrs.value_width = u32(c.values());
  attrs.scale = scale_of(site);
  attrs.softcap = c.softcap;
  return attrs;
}

AttentionAttrs own_attrs(const LayerSite& site) {
  AttentionAttrs attrs = sizes_of(site, site.run.tokens);
  const uint32_t e = attrs.head_width;
  const uint32_t row = u32(site.c.projection_width());
  attrs.q = merged_rows(attrs.queries, row, 0, e);
  attrs.k = merged_rows(attrs.keys, row, attrs.heads * e, e);
  attrs.v = merged_rows(attrs.keys, row, (attrs.heads + attrs.kv_heads) * e, attrs.value_width);
  attrs.terms = site.run.terms.params;
  if (!site.run.terms.by_kind.empty()) {
    attrs.terms = site.run.terms.by_kind[kind_index(site)];
    return attrs;
  }
  if (!site.c.sinks.empty()) {
    attrs.terms.flags |= VKF_TERM_SINKS;
    attrs.terms.sparse_offset = site.run.terms.sinks + u32(site.layer) * attrs.heads;
  }
  const AttentionKind kind = kind_of(site);
  if (kind.window_left >= 0) {
    attrs.terms.flags |= VKF_TERM_WINDOW_LEFT;
    attrs.terms.window_left = static_cast<int32_t>(kind.window_left);
  }
  if (kind.window_right >= 0) {
    attrs.terms.flags |= VKF_TERM_WINDOW_RIGHT;
    attrs.terms.window_right = static_cast<int32_t>(kind.window_right);
  }
  return attrs;
}

std::vector<uint32_t> distance_words(const StackConfig& stack) {
  if (!stack.slopes.empty()) return float_words(stack.slopes);
  if (stack.distance.reach == 0) return {};
  std::vector<uint32_t> words = {u32(stack.distance.reach)};
  const std::vector<uint32_t> values = float_words(stack.distance.values);
  words.insert(words.end(), values.begin(), values.end());
  return words;
}

Result<LayerProjection> add_projection(const LayerSite& site, TensorId h) {
  const StackConfig& c = site.c;
  const bool step = site.run.mode == Mode::kStep, prompt = site.run.mode == Mode::kPrompt;
  LayerProjection result;
  if (c.latent.rank > 0) {
    VKF_ASSIGN(const TensorId q, add_latent_q(site, h));
    VKF_ASSIGN(const TensorId line, add_latent_line(site, h));
    if (prompt && c.caches_latents()) VKF_CHECK(append_line(site, line));
    const auto join = step && c.caches_latents() ? absorb_keys : expand_latents;
    VKF_ASSIGN(result.all, join(site, q, line));
  } else {
    VKF_ASSIGN(result.all, project(site, h));
  }
  VKF_ASSIGN(result.qkv, norm_queries_keys(site, result.all));
  const AttentionKind kind = kind_of(site);
  if (kind.rotary >= 0 && step) {
    VKF_ASSIGN(result.qkv, turn_step(site, kind.rotary, result.qkv));
    return result;
  }
  if (kind.rotary >= 0) {
    VKF_ASSIGN(result.qkv, turn(site, kind.rotary, result.qkv, {c.heads + c.kv(), c.head()}));
  }
  const bool appends = step || (prompt && !c.caches_latents());
  if (appends) {
    VKF_CHECK(append(site, result.qkv, u32(c.heads * c.head()), u32(c.kv() * c.head())));
  }
  return result;
}

Status add_cached(const LayerSite& site, TensorId h) {
  if (!site.c.caches_latents()) {
    VKF_CHECK(add_projection(site, h));
    return {};
  }
  VKF_ASSIGN(const TensorId line, add_latent_line(site, h));
  return append_line(site, line);
}

Result<TensorId> add_self_attention(const LayerSite& site, TensorId h, LinearAttrs out) {
  VKF_ASSIGN(const LayerProjection projected, add_projection(site, h));
  const TensorId qkv = projected.qkv;
  TensorId y = kNoTensor;
  if (site.run.mode == Mode::kFull && site.run.attend) {
    VKF_ASSIGN(y, site.run.attend(site, h, qkv));
  } else {
    VKF_ASSIGN(y, site.run.mode == Mode::kStep ? step_own(site, qkv) : attend_own(site, qkv));
  }
  if (site.c.output_gate == StackConfig::OutputGate::kYes) {
    VKF_ASSIGN(y, add_output_gate(site, projected.all, y));
  }
  return add_named_linear(site.b, site.rows() + ".self.out", y, out);
}

Result<TensorId> add_cross_projection(const LayerSite& site) {
  if (site.run.memory_keys != kNoTensor) {
    const std::string name = site.rows() + ".cross.";
    VKF_ASSIGN(const TensorId k, add_named_linear(site.b, name + "k", site.run.memory_keys));
    VKF_ASSIGN(const TensorId v, add_named_linear(site.b, name + "v", site.run.memory));
    return add_concat_columns(site.b.graph(), k, v);
  }
  VKF_ASSIGN(TensorId kv, add_named_linear(site.b, site.rows() + ".cross.kv", site.run.memory));
  if (site.run.mode == Mode::kPrompt) site.b.mark_output(kv, "cross_kv." + site.number());
  return kv;
}

Result<TensorId> add_cross_attention(const LayerSite& site, TensorId h, LinearAttrs out) {
  const StackRun& run = site.run;
  Graph& g = site.b.graph();
  const std::string name = site.rows() + ".cross";
  if (run.placed != kNoTensor) {
    g.set_scope(name + ".placed");
    VKF_ASSIGN(h, add_combine(g, h, run.placed, {}));
  }
  VKF_ASSIGN(TensorId q, add_named_linear(site.b, name + ".q", h));
  TensorId y = kNoTensor;
  if (run.mode == Mode::kStep) {
    const TensorId kv = g.add_external("cross_kv." + site.number(), DType::kF32,
                                       {run.step.batch, run.source, site.c.line_width()});
    g.set_scope(name);
    VKF_ASSIGN(y,
               add_attention_step(g, {.q = q, .kv = kv, .aux = run.source_mask, .state = run.state},
                                  step_sizes(site, AttentionStepAttrs::Source::kCross)));
  } else {
    VKF_ASSIGN(TensorId kv, add_cross_projection(site));
    AttentionAttrs attrs = sizes_of(site, run.source);
    const uint32_t e = attrs.head_width;
    attrs.q = merged_rows(attrs.queries, attrs.heads * e, 0, e);
    attrs.k = merged_rows(attrs.keys, u32(site.c.line_width()), 0, e);
    attrs.v = merged_rows(attrs.keys, u32(site.c.line_width()), attrs.kv_heads * e, e);
    if (run.source_mask != kNoTensor) attrs.terms.key_mask_offset = 0;
    g.set_scope(name);
    VKF_ASSIGN(y, attend(site, {.q = q, .kv = kv, .terms = run.source_mask}, attrs,
                         tap_of(site, "cross_")));
  }
  return add_named_linear(site.b, name + ".out", y, out);
}

}  // namespace vkformer
