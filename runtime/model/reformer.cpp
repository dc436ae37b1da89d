// Reformer (Kitaev, Kaiser and Levskaya 2020): reversible layers whose attention is local or among
// tokens that random rotations hash alike.
//
// Beside the tokens a pass takes lsh_rotations.l (H, E, R, half the buckets) of every LSH layer l.
// Without them they are sampled as the library does it: by hash_seed, the same in every layer.
// Without hash_seed the library hashes differently every time. Such a model uses the layer's number
// as its seed here. Outputs are those of every encoder and buckets.l (B, H, R, padded S), U32.
#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/bert_layers.h"
#include "model/blocks/padded_tokens.h"
#include "model/blocks/seeded_normals.h"
#include "model/family_list.h"
#include "model/reformer_config.h"
#include "model/weight_rows.h"
#include "ops/attention.h"
#include "ops/chunk_attention.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/lsh_hash.h"
#include "ops/lsh_sort.h"
#include "ops/mix_rounds.h"

namespace vkformer {
namespace {

using ReformerKind = ReformerConfig::Kind;
using Tap = ForwardTaps::Tap;

class Reformer : public ModelFamily {
 public:
  Reformer(ModelFacts facts, ReformerConfig config)
      : facts_(std::move(facts)), config_(std::move(config)) {
    add_heads_of(facts_.head);
    facts_.padding = ModelFacts::Padding::kSeen;  // padding is hashed and sorted as tokens are
  }

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  // What layers run over.
  struct Pass {
    ModelBuilder& b;
    int64_t batch, tokens, shown;  // tokens are padded; `shown` are handed out
    TensorId mask = kNoTensor;     // (B, ceil(S/32)) words, where any token is masked
    std::vector<int64_t> given;    // by layer, whether its rotations are fed
    ForwardTaps taps;
  };
  enum Switch : size_t { kMasked = 0, kFirstLayer = 1 };  // in ForwardShape::more

  void add_heads_of(HeadKind head);
  void add_layer_rows(int64_t layer, WeightTable& table) const;
  void add_head_rows(const Checkpoint& checkpoint, WeightTable& table) const;
  // As many tokens as a pass runs, or why it cannot.
  Result<int64_t> padded_length(int64_t tokens) const;
  Shape rotation_shape(int64_t padded) const;
  Status read_rotations(const TensorMap& inputs, int64_t padded, ForwardInputs& result) const;
  Result<TensorId> embed(const Pass& pass) const;
  Result<TensorId> axial_positions(const Pass& pass) const;
  ChunkAttentionAttrs attention_of(const Pass& pass, ReformerKind kind) const;
  Result<TensorId> rotations_of(const Pass& pass, int64_t layer) const;
  Result<TensorId> attend_local(const Pass& pass, TensorId qkv) const;
  Result<TensorId> attend_lsh(const Pass& pass, int64_t layer, TensorId qv) const;
  Result<TensorId> attend(const Pass& pass, int64_t layer, TensorId x) const;
  Result<TensorId> feed_forward(const Pass& pass, int64_t layer, TensorId x,
                                TensorId residual) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  ReformerConfig config_;
  std::string prefix_;  // of this file
};

// --- Weights
// --------------------------------------------------------------------------------------

void Reformer::add_heads_of(HeadKind head) {
  std::vector<HeadConfig>& heads = config_.heads;
  switch (head) {
    case HeadKind::kLanguage:
    case HeadKind::kMasked:
      heads.push_back({.output = "head"});
      break;
    case HeadKind::kSequence:
      heads.push_back({.input = HeadConfig::Input::kToken,
                       .dense = "head.dense",
                       .activation = ActivationKind::kTanh,
                       .output = "classifier"});
      break;
    case HeadKind::kSpans:
      heads = span_heads({});
      break;
    default:
      break;
  }
}

Status Reformer::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "reformer.", "embeddings.word_embeddings.weight");
  return {};
}

void Reformer::add_layer_rows(int64_t layer, WeightTable& table) const {
  const StackConfig& s = config_.stack;
  const std::string to = s.layer_rows(layer);
  const std::string from = prefix_ + "encoder.layers." + std::to_string(layer) + ".";
  const std::string self = from + "attention.self_attention.";
  const int64_t inner = s.heads * s.head_width;
  std::vector<std::string> sources = {self + "query", self + "key", self + "value"};
  if (config_.kinds[static_cast<size_t>(layer)] == ReformerKind::kLsh) {
    sources = {self + "query_key", self + "value"};
  }
  const auto count = static_cast<int64_t>(sources.size());
  table.rows.push_back(norm_row(to + ".self.norm", from + "attention.layer_norm", s.width));
  table.rows.push_back(plain_linear_row(to + ".self.qkv", sources, count * inner, s.width));
  table.rows.push_back(
      plain_linear_row(to + ".self.out", {from + "attention.output.dense"}, s.width, inner));
  table.rows.push_back(norm_row(to + ".ffn.norm", from + "feed_forward.layer_norm", s.width));
  table.rows.push_back(
      linear_row(to + ".ffn.up", {from + "feed_forward.dense.dense"}, s.ffn, s.width));
  table.rows.push_back(
      linear_row(to + ".ffn.down", {from + "feed_forward.output.dense"}, s.width, s.ffn));
}

void Reformer::add_head_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const int64_t d = facts_.width;
  if (facts_.target_vocab > 0) {
    WeightRow row = plain_linear_row("head", {"lm_head.decoder"}, facts_.target_vocab, d);
    row.biases = {first_present(checkpoint, {"lm_head.decoder.bias", "lm_head.bias"})};
    table.rows.push_back(std::move(row));
  } else if (facts_.head == HeadKind::kSequence) {
    const auto classes = static_cast<int64_t>(facts_.labels.size());
    table.rows.push_back(linear_row("head.dense", {"classifier.dense"}, d / 2, d));
    table.rows.push_back(linear_row("classifier", {"classifier.out_proj"}, classes, d / 2));
  } else if (facts_.head == HeadKind::kSpans) {
    for (WeightRow& row : span_rows("qa_outputs", d)) table.rows.push_back(std::move(row));
  }
}

Result<WeightTable> Reformer::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const StackConfig& s = config_.stack;
  const std::string at = prefix_ + "embeddings.";
  table.rows.push_back(
      embedding_row("words", at + "word_embeddings.weight", facts_.source_vocab, s.width));
  if (config_.axial_shape.empty()) {
    table.rows.push_back(table_row("positions", {at + "position_embeddings.embedding.weight"},
                                   {config_.positions}, s.width));
  } else {
    const std::string axis = at + "position_embeddings.weights.";
    // (rows, 1, width) and (1, columns, width) in the file.
    table.rows.push_back(table_row("positions.rows", {axis + "0"}, {config_.axial_shape[0]},
                                   config_.axial_widths[0]));
    table.rows.push_back(table_row("positions.columns", {axis + "1"}, {1},
                                   config_.axial_shape[1] * config_.axial_widths[1]));
  }
  for (int64_t i = 0; i < s.layers; ++i) add_layer_rows(i, table);
  table.rows.push_back(norm_row(s.rows + ".norm", prefix_ + "encoder.layer_norm", facts_.width));
  add_head_rows(checkpoint, table);
  // Heads of other models, and constants that older versions of the library saved.
  table.ignored = {"lm_head.*", "classifier.*", "qa_outputs.*", "*mask_value_float*"};
  return table;
}

// --- Inputs
// ---------------------------------------------------------------------------------------

// (H, E, R, half the buckets).
Shape Reformer::rotation_shape(int64_t padded) const {
  int64_t columns = 0;
  for (uint32_t factor : config_.bucket_factors(padded)) columns += factor / 2;
  return {config_.stack.heads, config_.stack.head_width, config_.rounds, columns};
}

Status Reformer::read_rotations(const TensorMap& inputs, int64_t padded,
                                ForwardInputs& result) const {
  for (int64_t i = 0; i < config_.stack.layers; ++i) {
    result.shape.more.push_back(0);
    const std::string name = "lsh_rotations." + std::to_string(i);
    const auto found = inputs.find(name);
    if (found == inputs.end() || !config_.hashes(padded)) continue;
    if (config_.kinds[static_cast<size_t>(i)] != ReformerKind::kLsh) continue;
    if (found->second.shape != rotation_shape(padded)) {
      return invalid_argument(
          message({"[", name, "] has shape ", shape_text(found->second.shape), ", but ", padded,
                   " tokens need ", shape_text(rotation_shape(padded)),
                   ": heads, head width, hashes, half the buckets"}));
    }
    VKF_ASSIGN(const std::vector<float> values, found->second.to_floats());
    result.words[name] = float_words(values);
    result.shape.more.back() = 1;
  }
  return {};
}

Result<int64_t> Reformer::padded_length(int64_t tokens) const {
  const int64_t padded = config_.padded(tokens);
  if (padded <= facts_.max_source) return padded;
  return invalid_argument(message(
      {"[input_ids] has ", tokens, " tokens a row, which whole chunks make ", padded,
       ", but this model has positions for ", facts_.max_source, "; shorten or split the input"}));
}

std::vector<std::string> Reformer::input_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < config_.kinds.size(); ++i) {
    if (config_.kinds[i] == ReformerKind::kLsh)
      names.push_back("lsh_rotations." + std::to_string(i));
  }
  return names;
}

Status Reformer::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  const int64_t tokens = result.shape.source;
  VKF_ASSIGN(const int64_t padded, padded_length(tokens));
  const bool masked = padded != tokens || !keeps_all(result);
  result.shape.more = {masked ? 1 : 0};
  pad_tokens(result, padded, config_.pad);
  if (result.positions == Tap::kOn && !config_.axial_shape.empty()) {
    const uint32_t columns = u32(config_.axial_shape[1]);
    for (uint32_t position : result.words.at("position_ids")) {
      result.words["axial_rows"].push_back(position / columns);
      result.words["axial_columns"].push_back(position % columns);
    }
  }
  return read_rotations(inputs, padded, result);
}

// --- Graph
// ----------------------------------------------------------------------------------------

// (S, D), or (B, S, D) where positions are fed: [vector of the row | vector of the column].
Result<TensorId> Reformer::axial_positions(const Pass& pass) const {
  const bool fed = pass.taps.positions == Tap::kOn;
  const Shape shape = fed ? Shape{pass.batch * pass.tokens} : Shape{pass.tokens};
  Graph& g = pass.b.graph();
  TensorId parts[2] = {};
  for (size_t axis = 0; axis < 2; ++axis) {
    const std::string name = axis == 0 ? "axial_rows" : "axial_columns";
    TensorId indices = kNoTensor;
    if (fed) {
      indices = g.add_external(name, DType::kU32, shape);
      pass.b.feed(name, indices);
    } else {
      std::vector<uint32_t> words;
      for (int64_t t = 0; t < pass.tokens; ++t) {
        const int64_t columns = config_.axial_shape[1];
        words.push_back(u32(axis == 0 ? t / columns : t % columns));
      }
      indices = pass.b.host_tensor(name, DType::kU32, shape, std::move(words));
    }
    VKF_ASSIGN(const TensorId table,
               pass.b.table(axis == 0 ? "positions.rows" : "positions.columns"));
    g.tensor(table).shape = {config_.axial_shape[axis], config_.axial_widths[axis]};
    VKF_ASSIGN(parts[axis], add_gather_rows(g, {.x = table, .indices = indices}));
  }
  return add_concat_columns(g, parts[0], parts[1]);
}

// x (B, S, D).
Result<TensorId> Reformer::embed(const Pass& pass) const {
  TextEmbedding embedding{.words = "words"};
  const bool axial = !config_.axial_shape.empty();
  if (!axial) embedding.positions = "positions";
  const Shape shape = {pass.batch, pass.tokens};
  const Tap fed = axial ? Tap::kOff : pass.taps.positions;
  VKF_ASSIGN(const EmbeddedTokens embedded,
             add_text_embedding(pass.b, config_.stack, embedding, {.positions = fed}, shape));
  if (!axial) return embedded.x;
  VKF_ASSIGN(const TensorId positions, axial_positions(pass));
  std::vector<uint32_t> rows(static_cast<size_t>(pass.batch * pass.tokens));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i);
  const TensorId indices = pass.b.host_tensor("token_rows", DType::kU32, shape, std::move(rows));
  return add_gather_rows(pass.b.graph(),
                         {.x = embedded.x, .indices = indices, .addend = positions});
}

// Of q, k and v side by side, or of q, which is k, and v.
ChunkAttentionAttrs Reformer::attention_of(const Pass& pass, ReformerKind kind) const {
  const StackConfig& s = config_.stack;
  const bool lsh = kind == ReformerKind::kLsh;
  const ReformerChunks& chunks = lsh ? config_.lsh : config_.local;
  ChunkAttentionAttrs a;
  a.batch = u32(pass.batch);
  a.heads = u32(s.heads);
  a.tokens = u32(pass.tokens);
  a.head_width = a.value_width = u32(s.head_width);
  // Tokens of one chunk all see each other, once.
  const bool whole = pass.tokens <= chunks.length;
  a.chunk = u32(whole ? pass.tokens : chunks.length);
  a.before = whole ? 0 : u32(chunks.before);
  a.after = whole ? 0 : u32(chunks.after);
  const uint32_t inner = u32(s.heads * s.head_width);
  const uint32_t row = (lsh ? 2 : 3) * inner;
  a.q = merged_rows(a.tokens, row, 0, a.head_width);
  a.k = lsh ? a.q : merged_rows(a.tokens, row, inner, a.head_width);
  a.v = merged_rows(a.tokens, row, row - inner, a.head_width);
  if (config_.causal) a.causal = ChunkAttentionAttrs::Causal::kYes;
  if (lsh) a.keys = ChunkAttentionAttrs::Keys::kQueries;
  return a;
}

Result<TensorId> Reformer::attend_local(const Pass& pass, TensorId qkv) const {
  return add_chunk_attention(pass.b.graph(), {.x = qkv, .mask = pass.mask},
                             attention_of(pass, ReformerKind::kLocal));
}

Result<TensorId> Reformer::rotations_of(const Pass& pass, int64_t layer) const {
  const Shape shape = rotation_shape(pass.tokens);
  const std::string name = "lsh_rotations." + std::to_string(layer);
  if (pass.given[static_cast<size_t>(layer)] != 0) {
    const TensorId rotations = pass.b.graph().add_external(name, DType::kF32, shape);
    pass.b.feed(name, rotations);
    return rotations;
  }
  const int64_t seed = config_.hash_seed.value_or(layer);
  const std::string drawn = "seed." + std::to_string(seed);
  const TensorId known = pass.b.graph().find_external(drawn);
  if (known != kNoTensor) return known;
  // Far beyond any model's, and little enough to draw.
  constexpr int64_t kMostRotations = int64_t{1} << 26;
  if (element_count(shape) > kMostRotations) {
    return unsupported(message(
        {"[", name, "] would have shape ", shape_text(shape), ", more than ", kMostRotations,
         " numbers; check num_buckets and num_hashes in the configuration"}));
  }
  const auto count = static_cast<size_t>(element_count(shape));
  return pass.b.host_floats(drawn, shape, seeded_normals(static_cast<uint64_t>(seed), count));
}

Result<TensorId> Reformer::attend_lsh(const Pass& pass, int64_t layer, TensorId qv) const {
  Graph& g = pass.b.graph();
  ChunkAttentionAttrs a = attention_of(pass, ReformerKind::kLsh);
  if (!config_.hashes(pass.tokens)) return add_chunk_attention(g, {.x = qv, .mask = pass.mask}, a);
  a.rounds = u32(config_.rounds);
  const LshHashAttrs hash{.batch = a.batch,
                          .heads = a.heads,
                          .tokens = a.tokens,
                          .head_width = a.head_width,
                          .rounds = a.rounds,
                          .x = a.q,
                          .factors = config_.bucket_factors(pass.tokens)};
  VKF_ASSIGN(const uint32_t buckets, count_buckets(hash.factors));
  VKF_ASSIGN(const TensorId rotations, rotations_of(pass, layer));
  VKF_ASSIGN(const TensorId hashed, add_lsh_hash(g, {qv, rotations, pass.mask}, hash));
  pass.b.mark_output(hashed, "buckets." + std::to_string(layer));
  const uint32_t extra = pass.mask == kNoTensor ? 0 : 1;
  VKF_ASSIGN(const TensorId order, add_lsh_sort(g, hashed, {.buckets = buckets + extra}));
  VKF_ASSIGN(const TensorId y, add_chunk_attention(g, {qv, order, pass.mask}, a));
  if (a.rounds == 1) return y;
  return add_mix_rounds(g, y);
}

Result<TensorId> Reformer::attend(const Pass& pass, int64_t layer, TensorId x) const {
  const StackConfig& s = config_.stack;
  const std::string rows = s.layer_rows(layer) + ".self";
  VKF_ASSIGN(TensorId h, add_named_norm(pass.b, s, rows + ".norm", x));
  VKF_ASSIGN(h, add_named_linear(pass.b, rows + ".qkv", h));
  pass.b.graph().set_scope(rows);
  if (config_.kinds[static_cast<size_t>(layer)] == ReformerKind::kLsh)
    return attend_lsh(pass, layer, h);
  return attend_local(pass, h);
}

Result<TensorId> Reformer::feed_forward(const Pass& pass, int64_t layer, TensorId x,
                                        TensorId residual) const {
  const StackConfig& s = config_.stack;
  const std::string rows = s.layer_rows(layer) + ".ffn";
  VKF_ASSIGN(TensorId h, add_named_norm(pass.b, s, rows + ".norm", x));
  VKF_ASSIGN(h, add_named_linear(pass.b, rows + ".up", h, {.activation = s.activation}));
  return add_named_linear(pass.b, rows + ".down", h, {.residual = residual});
}

Status Reformer::build_forward(ModelBuilder& b, const ForwardShape& shape,
                               const ForwardTaps& taps) const {
  const StackConfig& s = config_.stack;
  VKF_ASSIGN(const int64_t padded, padded_length(shape.source));
  Pass pass{b, shape.batch, padded, shape.source, kNoTensor, {}, taps};
  // Without inputs (plans), nothing is masked but what padding masks, and rotations are sampled.
  pass.given.assign(static_cast<size_t>(s.layers), 0);
  bool masked = pass.tokens != pass.shown;
  if (shape.more.size() == kFirstLayer + pass.given.size()) {
    masked = shape.more[kMasked] != 0;
    pass.given.assign(shape.more.begin() + kFirstLayer, shape.more.end());
  }
  if (masked) {
    pass.mask =
        b.graph().add_external("key_mask", DType::kU32, {pass.batch, (pass.tokens + 31) / 32});
    b.feed("key_mask", pass.mask);
  }
  // Reversible layers: y1 = x1 + attention(x2), y2 = x2 + ffn(y1).
  VKF_ASSIGN(TensorId x2, embed(pass));
  TensorId x1 = x2;
  for (int64_t i = 0; i < s.layers; ++i) {
    if (taps.hidden_states == Tap::kOn) {
      VKF_ASSIGN(const TensorId shown, add_crop(b, x2, pass.tokens, pass.shown));
      b.mark_output(shown, "hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(const TensorId attended, attend(pass, i, x2));
    VKF_ASSIGN(x1, add_named_linear(b, s.layer_rows(i) + ".self.out", attended, {.residual = x1}));
    VKF_ASSIGN(x2, feed_forward(pass, i, x1, x2));
  }
  VKF_ASSIGN(TensorId states, add_concat_columns(b.graph(), x1, x2));
  VKF_ASSIGN(states, add_crop(b, states, pass.tokens, pass.shown));
  VKF_ASSIGN(states, add_named_norm(b, s, s.rows + ".norm", states));
  b.mark_output(states, "last_hidden_state");
  return add_heads(b, s, config_.heads, {states, kNoTensor});
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_reformer(const ModelFiles& files) {
  VKF_ASSIGN(ReformerConfig config, read_reformer(files.config));
  VKF_ASSIGN(ModelFacts facts, read_reformer_facts(files, config));
  return std::unique_ptr<ModelFamily>(
      std::make_unique<Reformer>(std::move(facts), std::move(config)));
}

}  // namespace vkformer
