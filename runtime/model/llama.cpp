// LLaMA (Touvron et al., 2023), Mistral (Jiang et al., 2023), Qwen2 (Yang et al., 2024). Also
// Gemma, Gemma 2 and Gemma 3 (Gemma Team, 2024 and 2025). They have rotary positions, RMSNorm,
// grouped keys and values, and a gated feed-forward layer.
#include "model/llama.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/rope_reading.h"
#include "model/weight_rows.h"
#include "ops/attention.h"
#include "weights/head_matrix.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

// The columns that turn, and a check of the whole.
Status finish_rotary(const JsonConfig& config, const StackConfig& stack, double part,
                     RotarySetup& setup) {
  VKF_ASSIGN(setup.width, read_rotary_width(config, stack.head(), part));
  if (setup.width == 0) {
    return invalid_file(message({"[partial_rotary_factor] in ", config.where(),
                                 " leaves no column of the heads, which are ", stack.head(),
                                 " wide, with positions; it must leave at least 2"}));
  }
  return check_rotary_scaling(setup.scaling, setup.width, config.where());
}

// [q | k | v | gates] out of [q and its gates by head | k | v], as WeightRow::row_order.
std::vector<uint32_t> gated_qkv_order(const StackConfig& s) {
  const int64_t e = s.head(), queries = s.heads * e;
  std::vector<uint32_t> order;
  for (int64_t i = 0; i < queries; ++i)
    order.push_back(static_cast<uint32_t>(i / e * 2 * e + i % e));
  for (int64_t i = 2 * queries; i < s.projection_width(); ++i) {
    order.push_back(static_cast<uint32_t>(i));
  }
  for (int64_t i = 0; i < queries; ++i) {
    order.push_back(static_cast<uint32_t>(i / e * 2 * e + e + i % e));
  }
  return order;
}

class Llama : public NamedDecoder {
 public:
  Llama(ModelFacts facts, GenerationFacts generation, DecoderConfig block, DecoderNames names,
        const LlamaKind& kind)
      : NamedDecoder(std::move(facts), std::move(generation), std::move(block), std::move(names)),
        kind_(kind) {}

  Status prepare(const Checkpoint& checkpoint) override;

 protected:
  void add_rows(const std::string& prefix, WeightTable& table) const override;

 private:
  // Norms of one layer: our name and the file's.
  void add_norms(const std::string& to, const std::string& from, WeightTable& table) const;
  void add_query_key_norms(const std::string& to, const std::string& attn,
                           WeightTable& table) const;
  WeightRow norms_apart(const std::string& to, const std::string& attn) const;
  void add_latents(const std::string& to, const std::string& attn, WeightTable& table) const;
  void add_projection(const std::string& to, const std::string& attn, WeightTable& table) const;
  void add_attention(const std::string& to, const std::string& attn, WeightTable& table) const;
  void add_feed_forward(const std::string& to, const std::string& mlp, WeightTable& table) const;
  WeightRow gain(std::string name, const std::string& module) const {
    const bool biased = kind_.norm_bias == LlamaKind::NormBias::kYes;
    const auto make = biased ? norm_row : gain_row;
    WeightRow row = make(std::move(name), module, block().stack.width);
    row.gain_offset = kind_.gain_offset;
    return row;
  }

  LlamaKind kind_;
};

Status Llama::prepare(const Checkpoint& checkpoint) {
  VKF_CHECK(NamedDecoder::prepare(checkpoint));
  StackConfig& stack = block().stack;
  stack.sinks.clear();
  for (int64_t i = 0; kind_.sinks != nullptr && i < stack.layers; ++i) {
    const std::string name = message({prefix(), "layers.", i, ".", kind_.sinks});
    VKF_ASSIGN(const std::vector<float> scores, read_floats(checkpoint, name, {stack.heads}));
    stack.sinks.insert(stack.sinks.end(), scores.begin(), scores.end());
  }
  // Configurations say null, which is as good as nothing, where queries have no latent.
  const std::string attn = prefix() + "layers.0.self_attn.";
  if (stack.latent.rank > 0 && checkpoint.find(attn + "q_proj.weight") != nullptr) {
    stack.latent.query_rank = 0;
  }
  const ExpertSetup& experts = stack.experts;
  for (int64_t i = 0; i < stack.layers; ++i) {
    if (!experts.of_layer(i)) continue;
    kind_.experts.resolve(checkpoint, prefix() + "layers." + std::to_string(i) + ".");
    break;
  }
  return {};
}

void Llama::add_norms(const std::string& to, const std::string& from, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const bool before = s.before_norm != StackConfig::BeforeNorm::kNo;
  const bool after = s.after_norm == StackConfig::AfterNorm::kYes;
  if (before) table.rows.push_back(gain(to + ".self.norm", from + kind_.names.norm));
  if (!after) {
    if (s.shared_norm == StackConfig::SharedNorm::kYes) return;
    table.rows.push_back(gain(to + ".ffn.norm", from + kind_.names.ffn_norm));
    return;
  }
  table.rows.push_back(gain(to + ".self.after", from + "post_attention_layernorm"));
  if (before) table.rows.push_back(gain(to + ".ffn.norm", from + "pre_feedforward_layernorm"));
  table.rows.push_back(gain(to + ".ffn.after", from + "post_feedforward_layernorm"));
}

WeightRow Llama::norms_apart(const std::string& to, const std::string& attn) const {
  const StackConfig& s = block().stack;
  std::vector<std::string> sources;
  for (int64_t h = 0; h < s.heads + s.kv(); ++h) {
    const bool query = h < s.heads;
    sources.push_back(attn + (query ? "q_layernorm.norms." : "k_layernorm.norms.") +
                      std::to_string(query ? h : h - s.heads) + ".weight");
  }
  const std::vector<int64_t> each(sources.size(), 1);
  return table_row(to + ".self.qk_norm", std::move(sources), each, s.head());
}

// The gains of queries and keys: of every head the same ones, or of each its own, or of the whole
// projections.
void Llama::add_query_key_norms(const std::string& to, const std::string& attn,
                                WeightTable& table) const {
  using QueryKeyNorm = StackConfig::QueryKeyNorm;
  const StackConfig& s = block().stack;
  const std::string q = message({attn, kind_.names.q_norm, ".weight"});
  const std::string k = message({attn, kind_.names.k_norm, ".weight"});
  WeightRow row;
  switch (s.qk_norm) {
    case QueryKeyNorm::kNo:
      return;
    case QueryKeyNorm::kAlike: {
      std::vector<std::string> sources(static_cast<size_t>(s.heads), q);
      sources.resize(static_cast<size_t>(s.heads + s.kv()), k);
      const std::vector<int64_t> each(sources.size(), 1);
      row = table_row(to + ".self.qk_norm", std::move(sources), each, s.head());
      break;
    }
    case QueryKeyNorm::kHeads:
      row = kind_.head_norms == LlamaKind::HeadNorms::kApart
                ? norms_apart(to, attn)
                : table_row(to + ".self.qk_norm", {q, k}, {s.heads, s.kv()}, s.head());
      break;
    case QueryKeyNorm::kWhole:
      table.rows.push_back(table_row(to + ".self.q_norm", {q}, {1}, s.heads * s.head()));
      row = table_row(to + ".self.k_norm", {k}, {1}, s.kv() * s.head());
      break;
  }
  row.gain_offset = kind_.gain_offset;
  table.rows.push_back(std::move(row));
}

void Llama::add_feed_forward(const std::string& to, const std::string& mlp,
                             WeightTable& table) const {
  const StackConfig& s = block().stack;
  const bool bias = kind_.biases.ffn;
  const bool gated = kind_.gate == LlamaKind::Gate::kYes;
  if (gated) {
    std::vector<std::string> modules;
    for (const std::string& name : kind_.names.gate_up) modules.push_back(mlp + name);
    table.rows.push_back(
        in_gate_pairs(biased_row(bias, to + ".ffn.up", modules, 2 * s.ffn, s.width)));
  } else {
    table.rows.push_back(biased_row(bias, to + ".ffn.up", {mlp + "c_fc"}, s.ffn, s.width));
  }
  const std::string down = mlp + (gated ? kind_.names.down : "c_proj");
  table.rows.push_back(biased_row(bias, to + ".ffn.down", {down}, s.width, s.ffn));
  table.rows.back().bias_scale = s.branch_scale;
}

// A row with a matrix for each head, as head_linear takes them.
WeightRow head_rows(std::string name, HeadMatrix matrix) {
  WeightRow row = expert_row(std::move(name), matrix.heads, matrix.outputs(), matrix.inputs());
  row.sources = {matrix.file};
  row.source_shapes = {{matrix.heads * matrix.rows, matrix.width}};
  row.make = std::move(matrix);
  return row;
}

// Rows of LatentSetup. A file's head has what turns last; here it is first.
void Llama::add_latents(const std::string& to, const std::string& attn, WeightTable& table) const {
  const StackConfig& s = block().stack;
  const LatentSetup& latent = s.latent;
  const bool bias = kind_.biases.qkv;
  const int64_t e = s.head(), own = e - latent.rotary;
  WeightRow q =
      latent.query_rank > 0
          ? plain_linear_row(to + ".self.q_b", {attn + "q_b_proj"}, s.heads * e, latent.query_rank)
          : plain_linear_row(to + ".self.q", {attn + "q_proj"}, s.heads * e, s.width);
  for (int64_t i = 0; i < s.heads * e; ++i) {
    q.row_order.push_back(static_cast<uint32_t>(i / e * e + (i % e + own) % e));
  }
  table.rows.push_back(std::move(q));
  if (latent.query_rank > 0) {
    table.rows.push_back(
        biased_row(bias, to + ".self.q_a", {attn + "q_a_proj"}, latent.query_rank, s.width));
    table.rows.push_back(gain_row(to + ".self.q_norm", attn + "q_a_layernorm", latent.query_rank));
  }
  WeightRow line =
      biased_row(bias, to + ".self.line", {attn + "kv_a_proj_with_mqa"}, latent.line(), s.width);
  for (int64_t i = 0; i < latent.line(); ++i) {
    line.row_order.push_back(static_cast<uint32_t>((i + latent.rank) % latent.line()));
  }
  table.rows.push_back(std::move(line));
  table.rows.push_back(
      table_row(to + ".self.latent_norm", {attn + "kv_a_layernorm.weight"}, {1}, latent.rank));
  const int64_t values = s.values(), each = own + values;
  WeightRow kv =
      plain_linear_row(to + ".self.kv", {attn + "kv_b_proj"}, s.heads * each, latent.rank);
  for (const bool value : {false, true}) {
    const int64_t width = value ? values : own;
    for (int64_t i = 0; i < s.heads * width; ++i) {
      kv.row_order.push_back(
          static_cast<uint32_t>(i / width * each + (value ? own : 0) + i % width));
    }
  }
  table.rows.push_back(std::move(kv));
  if (!s.caches_latents() || facts().head != HeadKind::kLanguage) return;
  HeadMatrix matrix{.file = attn + "kv_b_proj.weight",
                    .heads = s.heads,
                    .rows = each,
                    .width = latent.rank,
                    .count = own,
                    .transposed = HeadMatrix::Transposed::kYes};
  table.rows.push_back(head_rows(to + ".self.absorbed_keys", matrix));
  matrix.first = own;
  matrix.count = values;
  matrix.transposed = HeadMatrix::Transposed::kNo;
  table.rows.push_back(head_rows(to + ".self.absorbed_values", std::move(matrix)));
}

void Llama::add_projection(const std::string& to, const std::string& attn,
                           WeightTable& table) const {
  const StackConfig& s = block().stack;
  const bool fused = kind_.projections == LlamaKind::Projections::kFused;
  using Modules = std::vector<std::string>;
  WeightRow qkv = biased_row(kind_.biases.qkv, to + ".self.qkv",
                             fused ? Modules{attn + "qkv_proj"}
                                   : Modules{attn + "q_proj", attn + "k_proj", attn + "v_proj"},
                             s.projection_width(), s.width);
  if (!fused) qkv.source_rows = {s.heads * s.head(), s.kv() * s.head(), s.kv() * s.head()};
  if (s.output_gate == StackConfig::OutputGate::kYes) {
    // A head of the file's queries has its gates after it.
    qkv.source_rows[0] *= 2;
    qkv.row_order = gated_qkv_order(s);
  }
  table.rows.push_back(std::move(qkv));
}

void Llama::add_attention(const std::string& to, const std::string& attn,
                          WeightTable& table) const {
  const StackConfig& s = block().stack;
  add_query_key_norms(to, attn, table);
  s.latent.rank > 0 ? add_latents(to, attn, table) : add_projection(to, attn, table);
  table.rows.push_back(biased_row(kind_.biases.out, to + ".self.out", {attn + kind_.names.out},
                                  s.width, s.heads * s.values()));
  table.rows.back().bias_scale = s.branch_scale;
}

void Llama::add_rows(const std::string& prefix, WeightTable& table) const {
  const StackConfig& s = block().stack;
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string from = prefix + "layers." + std::to_string(i) + ".";
    add_norms(to, from, table);
    if (s.states.of_layer(i)) kind_.add_states(s, to, from, table);
    if (!s.states.replaces_attention(i))
      add_attention(to, from + kind_.names.attention + ".", table);
    if (s.experts.of_layer(i)) {
      add_expert_rows(s, kind_.experts, to + ".ffn", from, table);
    } else {
      add_feed_forward(to, from + kind_.names.ffn + ".", table);
    }
  }
  for (WeightRow& row : table.rows) {
    if (kind_.adjust_row) kind_.adjust_row(row);
  }
  table.ignored.insert(table.ignored.end(), kind_.ignored.begin(), kind_.ignored.end());
  table.rows.push_back(gain(s.rows + ".norm", prefix + kind_.names.final_norm));
  // Layers that predict further tokens (DeepSeek-V3).
  if (s.latent.rank > 0) table.ignored.push_back(message({prefix, "layers.", s.layers, ".*"}));
  if (kind_.sinks != nullptr) table.ignored.push_back(prefix + "layers.*." + kind_.sinks);
  // Frequencies that older versions of the library saved.
  table.ignored.push_back(prefix + "*.rotary_emb.inv_freq");
}

Status read_heads(const JsonConfig& config, const LlamaKind& kind, StackConfig& stack) {
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", kind.heads, kMostWidth));
  VKF_ASSIGN(stack.kv_heads,
             get_size_or(config, "num_key_value_heads",
                         kind.kv_heads > 0 ? kind.kv_heads : stack.heads, kMostWidth));
  VKF_ASSIGN(stack.head_width, get_size_or(config, "head_dim", kind.head_width, kMostHeadWidth));
  if (stack.head_width == 0) {
    VKF_ASSIGN(stack.head_width, head_width(config, stack.width, stack.heads));
  }
  if (stack.heads % stack.kv_heads == 0) return {};
  return invalid_file(message({"[num_key_value_heads] in ", config.where(), " is ", stack.kv_heads,
                               ", but must divide the ", stack.heads, " attention heads"}));
}

Status read_stack(const JsonConfig& config, const LlamaKind& kind, StackConfig& stack) {
  stack.rows = "decoder";
  stack.norm = StackConfig::Norm::kRms;
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  if (kind.gate == LlamaKind::Gate::kYes) stack.gate = StackConfig::Gate::kYes;
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", kind.width, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", kind.layers, kMostLayers));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", kind.ffn, kMostWidth));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, kind.epsilon_key, kind.epsilon));
  // Gemma's newer key is the one that its models were trained with.
  const bool own = config.has(kind.activation_key);
  VKF_ASSIGN(stack.activation,
             get_activation(config, own ? kind.activation_key : "hidden_act", kind.activation));
  return read_heads(config, kind, stack);
}

Status read_one_rotary(const JsonConfig& config, const LlamaKind& kind, int64_t max_positions,
                       StackConfig& stack) {
  RotaryDefaults defaults = kind.rotary;
  defaults.max_positions = max_positions;
  stack.kinds = {AttentionKind{.rotary = 0}};
  RotarySetup setup;
  VKF_ASSIGN(setup.scaling, read_model_rotary(config, defaults));
  VKF_CHECK(finish_rotary(config, stack, kind.partial_rotary, setup));
  stack.rotaries = {setup};
  return {};
}

// A cap of scores or logits; a missing one or null: none.
Result<float> read_cap(const JsonConfig& config, const std::string& key) {
  VKF_ASSIGN(double given, config.get_double_or(key, 0.0));
  const auto cap = static_cast<float>(given);
  if (!config.has(key) || (cap > 0 && softcap_error(cap).empty())) return cap;
  return invalid_file(message({"[", key, "] in ", config.where(), " is ", given,
                               ", but must be above 0 and a normal number, or null for none"}));
}

// A prompt that sees itself both ways is what pictures are spliced into (PaliGemma).
Status refuse_both_ways(const JsonConfig& config, const DecoderConfig& block) {
  const bool wanted = block.pictures && block.pictures->spans() == PicturePrompt::Spans::kPrompts;
  VKF_ASSIGN(bool both, config.get_bool_or("use_bidirectional_attention", wanted));
  if (both == wanted) return {};
  if (wanted) {
    return unsupported(message({"[use_bidirectional_attention] in ", config.where(),
                                " is false; this family's prompts see themselves both ways "
                                "(true)"}));
  }
  return unsupported(message({"[use_bidirectional_attention] in ", config.where(),
                              " is true; this family runs as a causal decoder (false)"}));
}

Status read_gemma(const JsonConfig& config, DecoderConfig& block) {
  VKF_CHECK(refuse_both_ways(config, block));
  block.embedding.scale = static_cast<float>(std::sqrt(static_cast<double>(block.stack.width)));
  return {};
}

// What Gemma 2 and 3 share: norms after attention and feed-forward layer, capped logits, and a
// scale of scores that the file gives.
Status read_gemma_scores(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.after_norm = StackConfig::AfterNorm::kYes;
  VKF_ASSIGN(block.logit_cap, read_cap(config, "final_logit_softcapping"));
  VKF_ASSIGN(double scalar, config.get_double_or("query_pre_attn_scalar", 256.0));
  if (!(scalar > 0) || !std::isfinite(scalar)) {
    return invalid_file(message(
        {"[query_pre_attn_scalar] in ", config.where(), " is ", scalar, ", but must be above 0"}));
  }
  stack.scales = {static_cast<float>(1.0 / std::sqrt(scalar))};
  return {};
}

// Gemma 2 has capped scores, and windows on every other layer. The library reads no cap of scores
// for Gemma 3.
Status read_gemma2(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_CHECK(read_gemma(config, block));
  VKF_CHECK(read_gemma_scores(config, block));
  VKF_ASSIGN(stack.softcap, read_cap(config, "attn_logit_softcapping"));
  VKF_CHECK(read_layer_types(config, stack, [](int64_t i) { return i % 2 == 0; }));
  VKF_ASSIGN(int64_t window, get_size_or(config, "sliding_window", 4096, INT32_MAX));
  add_llama_window(stack, window);
  return {};
}

LlamaKind gemma_kind(const char* family, const char* architecture) {
  LlamaKind kind{.family = family, .architecture = architecture};
  kind.vocabulary = 256000;
  kind.head_width = 256;
  kind.max_positions = 8192;
  kind.activation_key = "hidden_activation";
  kind.activation = "gelu_pytorch_tanh";
  kind.tied = true;
  kind.gain_offset = 1.0f;
  return kind;
}

// Gemma 3: a rotary base for layers that slide and one for the others, and norms of queries and
// keys. EmbeddingGemma sees both ways.
Status read_gemma3_positions(const JsonConfig& config, const LlamaKind& kind, int64_t max_positions,
                             StackConfig& stack) {
  const JsonConfig parameters = config.object("rope_parameters");
  VKF_CHECK(parameters.status());
  const JsonConfig scaling = config.object("rope_scaling");
  VKF_CHECK(scaling.status());
  RotaryDefaults defaults = kind.rotary;
  defaults.max_positions = max_positions;
  const JsonConfig full = parameters.object("full_attention");
  VKF_ASSIGN(defaults.theta, config.get_double_or("rope_theta", 1e6));
  VKF_ASSIGN(defaults.theta, full.get_double_or("rope_theta", defaults.theta));
  // What older files state once is of the layers that see all.
  const bool older = scaling.keys().size() > 0;
  VKF_ASSIGN(RotarySetup global,
             read_llama_rotary(config, older ? scaling : full, defaults, stack));
  VKF_ASSIGN(defaults.theta, config.get_double_or("rope_local_base_freq", 1e4));
  VKF_ASSIGN(RotarySetup local,
             read_llama_rotary(config, parameters.object("sliding_attention"), defaults, stack));
  stack.rotaries = {global, local};
  stack.kinds = {AttentionKind{.rotary = 0}};
  return {};
}

Status read_gemma3(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  block.embedding.scale = static_cast<float>(std::sqrt(static_cast<double>(stack.width)));
  stack.qk_norm = StackConfig::QueryKeyNorm::kAlike;
  VKF_CHECK(read_gemma_scores(config, block));
  VKF_ASSIGN(int64_t pattern, get_size_or(config, "_sliding_window_pattern", 6, kMostLayers));
  VKF_ASSIGN(pattern, get_size_or(config, "sliding_window_pattern", pattern, kMostLayers));
  VKF_CHECK(read_layer_types(config, stack, [&](int64_t i) { return (i + 1) % pattern != 0; }));
  VKF_ASSIGN(int64_t window, get_size_or(config, "sliding_window", 4096, INT32_MAX));
  VKF_ASSIGN(bool both, config.get_bool_or("use_bidirectional_attention", false));
  if (both) {
    if (!block.head.empty()) return refuse_both_ways(config, block);
    window = window / 2 + 1;
    stack.causal = StackConfig::Causal::kNo;
  }
  add_llama_window(stack, window, 1);
  if (both) stack.kinds.back().window_right = window - 1;
  return {};
}

}  // namespace

Result<LlamaBiases> read_attention_biases(const JsonConfig& config) {
  LlamaBiases biases;
  VKF_ASSIGN(biases.qkv, config.get_bool_or("attention_bias", false));
  biases.out = biases.qkv;
  return biases;
}

Result<RotarySetup> read_llama_rotary(const JsonConfig& config, const JsonConfig& scope,
                                      const RotaryDefaults& defaults, const StackConfig& stack) {
  RotarySetup setup;
  VKF_ASSIGN(setup.scaling, read_rotary(scope, defaults));
  VKF_CHECK(finish_rotary(config, stack, 1.0, setup));
  return setup;
}

Result<float> read_multiplier(const JsonConfig& config, const std::string& key, double fallback) {
  VKF_ASSIGN(const double given, config.get_double_or(key, fallback));
  const auto value = static_cast<float>(given);
  if (std::isfinite(value)) return value;
  return invalid_file(
      message({"[", key, "] in ", config.where(), " is ", given, ", but must be a finite number"}));
}

void add_llama_window(StackConfig& stack, int64_t window, int rotary) {
  stack.kinds.push_back({.window_left = window - 1, .rotary = rotary});
}

Status read_one_window(const JsonConfig& config, DecoderConfig& block) {
  if (!config.has("sliding_window")) return {};
  VKF_ASSIGN(int64_t window, get_size(config, "sliding_window", INT32_MAX));
  block.stack.kinds.clear();
  add_llama_window(block.stack, window);
  return {};
}

Status read_layer_types(const JsonConfig& config, StackConfig& stack,
                        const std::function<bool(int64_t)>& slides) {
  std::vector<std::string> counted;
  for (int64_t i = 0; i < stack.layers; ++i) {
    counted.emplace_back(slides(i) ? "sliding_attention" : "full_attention");
  }
  VKF_ASSIGN(std::vector<std::string> types, config.get_string_list_or("layer_types", counted));
  if (static_cast<int64_t>(types.size()) != stack.layers) {
    return invalid_file(message({"[layer_types] in ", config.where(), " has ", types.size(),
                                 " entries for ", stack.layers, " layers; they must be as many"}));
  }
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return unsupported(message({"[layer_types] in ", config.where(), " has '", type,
                                  "'; full_attention and sliding_attention are supported"}));
    }
    stack.kind_of.push_back(type == "sliding_attention" ? 1 : 0);
  }
  return {};
}

Status read_qwen2_windows(const JsonConfig& config, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  VKF_ASSIGN(bool uses, config.get_bool_or("use_sliding_window", false));
  const bool slides = uses && config.has("sliding_window");
  VKF_ASSIGN(int64_t first, config.get_int_or("max_window_layers", 28));
  VKF_CHECK(read_layer_types(config, stack, [&](int64_t i) { return slides && i >= first; }));
  if (!slides && std::count(stack.kind_of.begin(), stack.kind_of.end(), 1) > 0) {
    return invalid_file(message({"[layer_types] in ", config.where(),
                                 " has sliding_attention, but use_sliding_window is not true or "
                                 "sliding_window is missing; set both"}));
  }
  if (!slides) return {};
  VKF_ASSIGN(int64_t window, get_size(config, "sliding_window", INT32_MAX));
  add_llama_window(stack, window);
  return {};
}

Result<LlamaParts> read_llama_kind(const JsonConfig& outer, const JsonConfig& config,
                                   const LlamaKind& kind, std::shared_ptr<PicturePrompt> pictures,
                                   SentenceFacts sentence) {
  LlamaParts parts{.facts = {.family = kind.family, .sentence = std::move(sentence)},
                   .block = {},
                   .names = {},
                   .kind = kind};
  DecoderConfig& block = parts.block;
  block.pictures = std::move(pictures);
  VKF_CHECK(read_decoder_head(outer, kind.architecture, parts.facts, block));
  VKF_CHECK(read_stack(config, kind, block.stack));
  VKF_ASSIGN(int64_t positions,
             get_size_or(config, "max_position_embeddings", kind.max_positions, kMostPositions));
  const auto read_positions =
      kind.read_positions == nullptr ? read_one_rotary : kind.read_positions;
  VKF_CHECK(read_positions(config, kind, positions, block.stack));
  if (kind.read_rest != nullptr) VKF_CHECK(kind.read_rest(config, block));
  VKF_ASSIGN(int64_t vocabulary,
             get_size_or(config, "vocab_size", kind.vocabulary, kMostVocabulary));
  const RotaryScaling& scaling = block.stack.rotaries[0].scaling;
  set_decoder_facts(block, vocabulary, stretched_positions(scaling, kMostPositions), parts.facts);
  parts.names = {.prefix = "model.", .words = "embed_tokens.weight", .head = "lm_head.weight"};
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", kind.tied));
  if (tied) parts.names.tied = DecoderNames::Tied::kYes;
  return parts;
}

std::unique_ptr<ModelFamily> make_llama(LlamaParts parts, GenerationFacts tokens) {
  return std::unique_ptr<ModelFamily>(new Llama(std::move(parts.facts), std::move(tokens),
                                                std::move(parts.block), std::move(parts.names),
                                                parts.kind));
}

Result<std::unique_ptr<ModelFamily>> load_llama_kind(const ModelFiles& files,
                                                     const LlamaKind& kind) {
  VKF_ASSIGN(LlamaParts parts,
             read_llama_kind(files.config, files.config, kind, nullptr, files.sentence));
  VKF_ASSIGN(GenerationFacts tokens, read_generation(files.config, files.generation));
  return make_llama(std::move(parts), std::move(tokens));
}

namespace {

Result<LlamaKind> llama_kind(const JsonConfig& config) {
  LlamaKind kind{.family = "llama", .architecture = "LlamaForCausalLM"};
  VKF_ASSIGN(kind.biases, read_attention_biases(config));
  VKF_ASSIGN(kind.biases.ffn, config.get_bool_or("mlp_bias", false));
  return kind;
}

LlamaKind mistral_kind() {
  return {.family = "mistral",
          .architecture = "MistralForCausalLM",
          .kv_heads = 8,
          .ffn = 14336,
          .max_positions = 4096 * 32,
          .read_rest = read_one_window};
}

Result<LlamaKind> first_gemma_kind(const JsonConfig& config) {
  LlamaKind kind = gemma_kind("gemma", "GemmaForCausalLM");
  kind.width = 3072;
  kind.layers = 28;
  kind.heads = kind.kv_heads = 16;
  kind.ffn = 24576;
  kind.read_rest = read_gemma;
  VKF_ASSIGN(kind.biases, read_attention_biases(config));
  return kind;
}

Result<LlamaKind> gemma2_kind(const JsonConfig& config) {
  LlamaKind kind = gemma_kind("gemma2", "Gemma2ForCausalLM");
  kind.width = 2304;
  kind.layers = 26;
  kind.heads = 8;
  kind.kv_heads = 4;
  kind.ffn = 9216;
  kind.read_rest = read_gemma2;
  VKF_ASSIGN(kind.biases, read_attention_biases(config));
  return kind;
}

Result<LlamaKind> gemma3_kind(const JsonConfig& config) {
  LlamaKind kind = gemma_kind("gemma3_text", "Gemma3ForCausalLM");
  kind.vocabulary = 262208;
  kind.width = 2304;
  kind.layers = 26;
  kind.heads = 8;
  kind.kv_heads = 4;
  kind.ffn = 9216;
  kind.max_positions = 131072;
  kind.read_positions = read_gemma3_positions;
  kind.read_rest = read_gemma3;
  VKF_ASSIGN(kind.biases, read_attention_biases(config));
  return kind;
}

}  // namespace

LlamaKind qwen2_kind() {
  return {.family = "qwen2",
          .architecture = "Qwen2ForCausalLM",
          .vocabulary = 151936,
          .kv_heads = 32,
          .ffn = 22016,
          .max_positions = 32768,
          .biases = {.qkv = true},
          .read_rest = read_qwen2_windows};
}

Result<LlamaKind> llama_kind_of(const JsonConfig& config, const std::string& fallback) {
  VKF_ASSIGN(const std::string type, config.get_string_or("model_type", fallback));
  if (type == "llama") return llama_kind(config);
  if (type == "mistral") return mistral_kind();
  if (type == "qwen2") return qwen2_kind();
  if (type == "gemma") return first_gemma_kind(config);
  if (type == "gemma2") return gemma2_kind(config);
  if (type == "gemma3_text") return gemma3_kind(config);
  return unsupported(message({"[text_config.model_type] in ", config.where(), " is '", type,
                              "'; supported are llama, mistral, qwen2, gemma, gemma2 and "
                              "gemma3_text."}));
}

Result<std::unique_ptr<ModelFamily>> load_llama(const ModelFiles& files) {
  VKF_ASSIGN(const LlamaKind kind, llama_kind(files.config));
  return load_llama_kind(files, kind);
}

Result<std::unique_ptr<ModelFamily>> load_mistral(const ModelFiles& files) {
  return load_llama_kind(files, mistral_kind());
}

Result<std::unique_ptr<ModelFamily>> load_qwen2(const ModelFiles& files) {
  return load_llama_kind(files, qwen2_kind());
}

Result<std::unique_ptr<ModelFamily>> load_gemma(const ModelFiles& files) {
  VKF_ASSIGN(const LlamaKind kind, first_gemma_kind(files.config));
  return load_llama_kind(files, kind);
}

Result<std::unique_ptr<ModelFamily>> load_gemma2(const ModelFiles& files) {
  VKF_ASSIGN(const LlamaKind kind, gemma2_kind(files.config));
  return load_llama_kind(files, kind);
}

Result<std::unique_ptr<ModelFamily>> load_gemma3_text(const ModelFiles& files) {
  VKF_ASSIGN(const LlamaKind kind, gemma3_kind(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
