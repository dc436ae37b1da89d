// Gato (Reed et al., "A Generalist Agent", 2022). It is one causal stack over text, image patches,
// continuous and discrete observations and actions. They are all in one sequence, and it chooses
// actions.
#include <limits>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/heads.h"
#include "model/blocks/picture_embedding.h"
#include "model/blocks/stack_attention.h"
#include "model/blocks/text_embedding.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/gato_sequence.h"
#include "model/weight_rows.h"
#include "ops/argmax.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

using SlotKind = GatoSlot::Kind;

struct GatoConfig {
  GatoTokens tokens;
  StackConfig stack;
  TextEmbedding embedding = {.words = "words"};
  int64_t intervals = 0;  // of patch positions
};

// What tokens add to their words or patches, on the host: one addend by position is made of them.
struct GatoTables {
  std::vector<float> positions, seen, rows, columns, action;
};

class Gato : public ModelFamily {
 public:
  Gato(ModelFacts facts, GatoConfig config)
      : facts_(std::move(facts)), config_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  // One pass: its sizes, and by layer the rows [q | k | v] of all tokens and of chosen actions.
  struct Pass {
    ModelBuilder& b;
    GatoSizes sizes;
    std::vector<TensorId> caches;
    int64_t cached() const { return sizes.context() + sizes.actions - 1; }
  };

  std::vector<float> addend(const std::vector<GatoSlot>& slots, const GatoSizes& sizes) const;
  std::vector<float> action_addend(int64_t position) const;
  void add_row_of(const std::vector<float>& table, int64_t row, std::span<float> to) const;
  Result<TensorId> embed(const Pass& pass) const;
  Result<TensorId> embed_patches(const Pass& pass, const std::vector<GatoSlot>& slots) const;
  Result<TensorId> keep_rows(Pass& pass, const LayerSite& site, TensorId qkv) const;
  Result<TensorId> attend_action(const Pass& pass, const LayerSite& site, TensorId qkv,
                                 int64_t position) const;
  Result<TensorId> embed_action(const Pass& pass, TensorId logits, int64_t position) const;
  Result<TensorId> bin_logits(const Pass& pass, TensorId states) const;
  Status add_actions(const Pass& pass, TensorId states) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  GatoConfig config_;
  GatoTables tables_;
};

Status Gato::prepare(const Checkpoint& checkpoint) {
  const int64_t d = config_.stack.width;
  VKF_ASSIGN(tables_.positions,
             read_floats(checkpoint, "position_embeddings.weight", {facts_.max_source, d}));
  VKF_ASSIGN(tables_.seen, read_floats(checkpoint, "observation_embeddings.weight",
                                       {config_.tokens.most_seen, d}));
  VKF_ASSIGN(tables_.rows,
             read_floats(checkpoint, "patch_row_embeddings.weight", {config_.intervals, d}));
  VKF_ASSIGN(tables_.columns,
             read_floats(checkpoint, "patch_col_embeddings.weight", {config_.intervals, d}));
  VKF_ASSIGN(tables_.action, read_floats(checkpoint, "action_embedding", {d}));
  return {};
}

Result<WeightTable> Gato::weight_table(const Checkpoint&) const {
  WeightTable table;
  const StackConfig& s = config_.stack;
  const GatoTokens& t = config_.tokens;
  const int64_t d = s.width;
  table.rows.push_back(embedding_row("words", "token_embeddings.weight", t.vocabulary(), d));
  table.rows.push_back(
      linear_row("patches", {"patch_projection"}, d, t.channels * t.patch * t.patch));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = "layers." + std::to_string(i) + ".";
    table.rows.push_back(norm_row(to + ".self.norm", from + "attention_norm", d));
    table.rows.push_back(
        linear_row(to + ".self.qkv", {from + "query", from + "key", from + "value"}, 3 * d, d));
    table.rows.push_back(linear_row(to + ".self.out", {from + "out"}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", from + "ffn_norm", d));
    table.rows.push_back(in_gate_pairs(linear_row(to + ".ffn.up", {from + "up"}, 2 * s.ffn, d)));
    table.rows.push_back(linear_row(to + ".ffn.down", {from + "down"}, d, s.ffn));
  }
  table.rows.push_back(norm_row(s.rows + ".norm", "final_norm", d));
  table.rows.push_back(plain_linear_row("head", {"lm_head"}, t.vocabulary(), d));
  // Read by prepare.
  table.ignored = {"position_embeddings.weight", "observation_embeddings.weight",
                   "patch_row_embeddings.weight", "patch_col_embeddings.weight",
                   "action_embedding"};
  return table;
}

std::vector<std::string> Gato::input_names() const {
  return gato_input_names();
}

Status Gato::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  VKF_ASSIGN(const GatoSizes sizes,
             read_gato_inputs(config_.tokens, facts_.max_source, inputs, result.words));
  result.shape.batch = sizes.batch;
  result.shape.source = sizes.tokens();
  result.shape.more = sizes.words();
  return {};
}

void Gato::add_row_of(const std::vector<float>& table, int64_t row, std::span<float> to) const {
  const size_t first = static_cast<size_t>(row) * to.size();
  for (size_t i = 0; i < to.size(); ++i) to[i] += table[first + i];
}

// (N, D).
std::vector<float> Gato::addend(const std::vector<GatoSlot>& slots, const GatoSizes& sizes) const {
  const auto d = static_cast<size_t>(config_.stack.width);
  std::vector<float> values(slots.size() * d, 0.0f);
  // The middle of the intervals that patch `index` of `count` covers.
  const auto middle = [&](int64_t index, int64_t count) {
    return (config_.intervals * index / count + config_.intervals * (index + 1) / count) / 2;
  };
  for (size_t n = 0; n < slots.size(); ++n) {
    const GatoSlot& slot = slots[n];
    const std::span<float> to(values.data() + n * d, d);
    if (slot.kind == SlotKind::kPatch) {
      add_row_of(tables_.rows, middle(slot.index / sizes.columns, sizes.rows), to);
      add_row_of(tables_.columns, middle(slot.index % sizes.columns, sizes.columns), to);
    }
    if (slot.seen >= 0) add_row_of(tables_.seen, slot.seen, to);
    if (slot.kind == SlotKind::kAction) add_row_of(tables_.action, 0, to);
    add_row_of(tables_.positions, static_cast<int64_t>(n), to);
  }
  return values;
}

// (D), of an action that is fed back.
std::vector<float> Gato::action_addend(int64_t position) const {
  std::vector<float> values = tables_.action;
  add_row_of(tables_.positions, position, values);
  return values;
}

// Projected patches where they stand, zeros elsewhere: (B, N, D).
Result<TensorId> Gato::embed_patches(const Pass& pass, const std::vector<GatoSlot>& slots) const {
  const GatoSizes& s = pass.sizes;
  const TensorId pixels =
      add_pixel_values(pass.b, config_.tokens.channels,
                       {.batch = s.batch * s.steps, .height = s.height, .width = s.width});
  PatchConv conv{.rows = "patches"};
  conv.window.kernel_height = conv.window.stride_height = u32(config_.tokens.patch);
  conv.window.kernel_width = conv.window.stride_width = u32(config_.tokens.patch);
  VKF_ASSIGN(const TensorId patches, add_patch_conv(pass.b, pixels, {}, conv));
  std::vector<uint32_t> order;
  for (int64_t row = 0; row < s.batch; ++row) {
    for (const GatoSlot& slot : slots) {
      const int64_t patch = (row * s.steps + slot.step) * s.patches() + slot.index;
      order.push_back(slot.kind == SlotKind::kPatch ? u32(patch) : ~0u);
    }
  }
  const TensorId indices =
      pass.b.host_tensor("patches.order", DType::kU32, {s.batch, s.tokens()}, std::move(order));
  return add_gather_rows(pass.b.graph(), {.x = patches, .indices = indices});
}

// (B, N, D).
Result<TensorId> Gato::embed(const Pass& pass) const {
  const GatoSizes& s = pass.sizes;
  const std::vector<GatoSlot> slots = gato_slots(s);
  const int64_t patches = s.steps * s.patches();
  const int64_t words = s.tokens() - patches;
  VKF_ASSIGN(const EmbeddedTokens embedded,
             add_text_embedding(pass.b, config_.stack, config_.embedding, {}, {s.batch, words}));
  std::vector<uint32_t> order;
  uint32_t next = 0;
  for (int64_t row = 0; row < s.batch; ++row) {
    for (const GatoSlot& slot : slots)
      order.push_back(slot.kind == SlotKind::kPatch ? ~0u : next++);
  }
  const TensorId indices =
      pass.b.host_tensor("words.order", DType::kU32, {s.batch, s.tokens()}, std::move(order));
  const TensorId table =
      pass.b.host_floats("embedding.addend", {s.tokens(), config_.stack.width}, addend(slots, s));
  VKF_ASSIGN(
      const TensorId x,
      add_gather_rows(pass.b.graph(), {.x = embedded.x, .indices = indices, .addend = table}));
  if (patches == 0) return x;
  VKF_ASSIGN(const TensorId seen, embed_patches(pass, slots));
  return add_combine(pass.b.graph(), x, seen, {});
}

// --- Actions
// --------------------------------------------------------------------------------------

// The rows of a layer up to the last separator, with room for those of actions: (B, C, 3 D).
Result<TensorId> Gato::keep_rows(Pass& pass, const LayerSite& site, TensorId qkv) const {
  const GatoSizes& s = pass.sizes;
  if (s.acts() && s.actions > 1) {
    std::vector<uint32_t> rows;
    for (int64_t row = 0; row < s.batch; ++row) {
      for (int64_t t = 0; t < pass.cached(); ++t) {
        rows.push_back(t < s.context() ? u32(row * s.tokens() + t) : ~0u);
      }
    }
    const TensorId indices = pass.b.host_tensor("actions.context", DType::kU32,
                                                {s.batch, pass.cached()}, std::move(rows));
    VKF_ASSIGN(const TensorId cache,
               add_gather_rows(pass.b.graph(), {.x = qkv, .indices = indices}));
    pass.caches.push_back(cache);
  }
  return attend(site, {.q = qkv, .kv = qkv, .terms = site.run.terms.words}, own_attrs(site),
                tap_of(site, site.c.taps));
}

// Attention of one action (B, 1, 3 D) at `position` to all before it and to itself.
Result<TensorId> Gato::attend_action(const Pass& pass, const LayerSite& site, TensorId qkv,
                                     int64_t position) const {
  Graph& g = pass.b.graph();
  const TensorId cache = pass.caches[static_cast<size_t>(site.layer)];
  const uint32_t row = u32(site.c.qkv_width());
  const uint32_t cached = u32(pass.cached());
  VKF_CHECK(
      add_place_columns(g, qkv, cache, {.offset = u32(position) * row, .stride = cached * row}));
  AttentionAttrs attrs = sizes_of(site, position + 1);
  const uint32_t d = u32(site.c.width);
  attrs.q = merged_rows(1, row, 0, attrs.head_width);
  attrs.k = merged_rows(cached, row, d, attrs.head_width);
  attrs.v = merged_rows(cached, row, 2 * d, attrs.head_width);
  return add_attention(g, {.q = qkv, .kv = cache}, attrs);
}

// What is fed back of the best bin of logits (B, V): (B, 1, D).
Result<TensorId> Gato::embed_action(const Pass& pass, TensorId logits, int64_t position) const {
  ModelBuilder& b = pass.b;
  VKF_ASSIGN(const TensorId ids, add_argmax(b.graph(), logits));
  VKF_ASSIGN(const TensorId x,
             add_step_embedding(b, config_.stack, config_.embedding, {.ids = ids}));
  const int64_t d = config_.stack.width;
  std::vector<float> rows;
  const std::vector<float> one = action_addend(position);
  for (int64_t i = 0; i < pass.sizes.batch; ++i) rows.insert(rows.end(), one.begin(), one.end());
  const TensorId addend =
      b.host_floats("actions.addend." + std::to_string(position), {pass.sizes.batch, d}, rows);
  VKF_ASSIGN(const TensorId y, add_combine(b.graph(), x, addend, {}));
  b.graph().tensor(y).shape = {pass.sizes.batch, 1, d};
  return y;
}

// Logits (B, V) of states (B, D), -inf where a token is no bin.
Result<TensorId> Gato::bin_logits(const Pass& pass, TensorId states) const {
  ModelBuilder& b = pass.b;
  VKF_ASSIGN(const TensorId logits, add_named_linear(b, "head", states));
  const GatoTokens& t = config_.tokens;
  const int64_t batch = pass.sizes.batch;
  std::vector<float> hidden;
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t v = 0; v < t.vocabulary(); ++v) {
      const bool bin = v >= t.text && v < t.separator();
      hidden.push_back(bin ? 0.0f : -std::numeric_limits<float>::infinity());
    }
  }
  const TensorId mask = b.host_floats("actions.bins", {batch, t.vocabulary()}, hidden);
  b.graph().set_scope("actions");
  return add_combine(b.graph(), logits, mask, {});
}

// action_ids and actions (B, A), greedily after the last separator: states (B, N, D).
Status Gato::add_actions(const Pass& pass, TensorId states) const {
  const GatoSizes& s = pass.sizes;
  if (!s.acts()) return {};
  ModelBuilder& b = pass.b;
  Graph& g = b.graph();
  const int64_t vocabulary = config_.tokens.vocabulary();
  VKF_ASSIGN(TensorId last, add_token_states(b, states, s.context() - 1));
  const TensorId all =
      g.add_temporary("actions.logits", DType::kF32, {s.batch, s.actions, vocabulary});
  for (int64_t k = 0; k < s.actions; ++k) {
    VKF_ASSIGN(const TensorId logits, bin_logits(pass, last));
    VKF_CHECK(add_place_columns(
        g, logits, all, {.offset = u32(k * vocabulary), .stride = u32(s.actions * vocabulary)}));
    if (k + 1 == s.actions) break;
    const int64_t position = s.context() + k;
    VKF_ASSIGN(const TensorId x, embed_action(pass, logits, position));
    StackRun run{.batch = s.batch, .tokens = 1};
    run.attend = [&](const LayerSite& site, TensorId, TensorId qkv) {
      return attend_action(pass, site, qkv, position);
    };
    VKF_ASSIGN(last, add_stack(b, config_.stack, run, x));
    g.tensor(last).shape = {s.batch, config_.stack.width};
  }
  g.set_scope("actions");
  VKF_ASSIGN(const TensorId ids, add_argmax(g, all));
  b.mark_output(ids, "action_ids");
  std::vector<float> values(static_cast<size_t>(vocabulary), 0.0f);
  const auto bins = static_cast<double>(config_.tokens.law.bins);
  for (int64_t i = 0; i < config_.tokens.law.bins; ++i) {
    values[static_cast<size_t>(config_.tokens.text + i)] =
        static_cast<float>((static_cast<double>(i) + 0.5) / bins * 2.0 - 1.0);
  }
  const TensorId table = b.host_floats("actions.values", {vocabulary, 1}, values);
  // (B, A, 1), then as rows of A.
  VKF_ASSIGN(TensorId actions, add_gather_rows(g, {.x = table, .indices = ids}));
  VKF_ASSIGN(actions, add_columns(g, actions, {.stride = u32(s.actions)}, {s.batch, s.actions}));
  b.mark_output(actions, "actions");
  return {};
}

Status Gato::build_forward(ModelBuilder& b, const ForwardShape& shape,
                           const ForwardTaps& taps) const {
  // A plan says no more than how many tokens there are: text.
  GatoSizes sizes{.batch = shape.batch, .text = std::min(shape.source, facts_.max_source)};
  if (!shape.more.empty()) sizes = GatoSizes::from_words(shape.more, shape.batch);
  Pass pass{b, sizes, {}};
  const TensorId shown =
      b.graph().add_external("token_ids", DType::kI32, {shape.batch, pass.sizes.tokens()});
  b.feed("token_ids", shown);
  VKF_ASSIGN(const TensorId x, embed(pass));
  StackRun run{.batch = shape.batch, .tokens = pass.sizes.tokens(), .taps = taps};
  run.terms.params.flags = VKF_TERM_CAUSAL;
  run.attend = [&](const LayerSite& site, TensorId, TensorId qkv) {
    return keep_rows(pass, site, qkv);
  };
  VKF_ASSIGN(const TensorId states, add_stack(b, config_.stack, run, x));
  b.mark_output(states, "last_hidden_state");
  VKF_ASSIGN(const TensorId logits, add_named_linear(b, "head", states));
  b.mark_output(logits, "logits");
  return add_actions(pass, states);
}

// --- Configuration
// --------------------------------------------------------------------------------

Status read_tokens(const JsonConfig& config, GatoTokens& t) {
  VKF_ASSIGN(t.text, get_size(config, "text_vocab_size", kMostVocabulary / 2));
  VKF_ASSIGN(t.law.bins, get_size(config, "num_bins", kMostVocabulary / 4));
  VKF_ASSIGN(t.law.mu, config.get_double_or("mu", 100.0));
  VKF_ASSIGN(t.law.m, config.get_double_or("M", 256.0));
  const Status law = check_mu_law(t.law);
  if (!law) return law.error().with_context("[mu] and [M] in " + config.where());
  VKF_ASSIGN(t.channels, get_size_or(config, "num_channels", 3, 4096));
  VKF_ASSIGN(t.patch, get_size_or(config, "patch_size", 16, 1024));
  VKF_ASSIGN(t.most_seen, get_size_or(config, "max_observation_tokens", 512, kMostPositions));
  return {};
}

Status read_gato_stack(const JsonConfig& config, StackConfig& s) {
  s.rows = "layers";
  s.order = StackConfig::Order::kPre;
  s.final_norm = StackConfig::FinalNorm::kYes;
  s.causal = StackConfig::Causal::kYes;
  s.gate = StackConfig::Gate::kYes;
  s.activation = ActivationKind::kGelu;
  VKF_ASSIGN(s.width, get_size(config, "hidden_size", kMostWidth));
  VKF_ASSIGN(s.layers, get_size(config, "num_hidden_layers", kMostLayers));
  VKF_ASSIGN(s.heads, get_size(config, "num_attention_heads", kMostWidth));
  VKF_CHECK(head_width(config, s.width, s.heads));
  VKF_ASSIGN(s.ffn, get_size(config, "intermediate_size", 4 * kMostWidth));
  VKF_ASSIGN(s.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(const std::string activation, config.get_string_or("hidden_act", "geglu"));
  if (activation == "geglu") return {};
  return unsupported(message({"[hidden_act] in ", config.where(), " is '", activation,
                              "'; the gato family supports geglu"}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_gato(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  GatoConfig gato;
  VKF_CHECK(read_tokens(config, gato.tokens));
  VKF_CHECK(read_gato_stack(config, gato.stack));
  VKF_ASSIGN(gato.intervals, get_size_or(config, "patch_position_intervals", 128, kMostPositions));
  ModelFacts facts{.family = "gato",
                   .kind = ModelKind::kEncoder,
                   .source = SourceKind::kArrays,
                   .head = HeadKind::kLanguage};
  VKF_ASSIGN(facts.architecture, get_architecture(config, "Gato"));
  facts.width = gato.stack.width;
  facts.encoder_layers = gato.stack.layers;
  facts.encoder_heads = gato.stack.heads;
  facts.source_vocab = facts.target_vocab = gato.tokens.vocabulary();
  VKF_ASSIGN(facts.max_source, get_size(config, "max_position_embeddings", kMostPositions));
  facts.max_target = facts.max_source;
  return std::unique_ptr<ModelFamily>(new Gato(std::move(facts), std::move(gato)));
}

}  // namespace vkformer
