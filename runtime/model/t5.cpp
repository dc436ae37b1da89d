// T5 (Raffel et al., 2020) with its kin T5 v1.1, Flan-T5 and mT5. They are pre-norm stacks with RMS
// norms, without any bias and without a scale of the scores. Positions are a bias by distance that
// all layers of a stack share. A T5EncoderModel is the encoder alone.
#include <cmath>

#include "base/message.h"
#include "model/blocks/distance_bias.h"
#include "model/blocks/encoder_decoder.h"
#include "model/blocks/encoder_only.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

// T5 has no table of positions that would end; this limit is what memory allows for.
constexpr int64_t kMostT5Tokens = 1 << 16;
// Distances with a bias of their own, at most.
constexpr int64_t kMostDistance = 1 << 15;

struct T5Defaults {
  int64_t vocab;
  int64_t ffn;
  int64_t layers;
  int64_t heads;
  const char* projection;
};
constexpr T5Defaults kT5 = {32128, 2048, 6, 8, "relu"};
constexpr T5Defaults kMt5 = {250112, 1024, 8, 6, "gated-gelu"};

// The buckets of a stack: the encoder looks both ways.
T5Buckets buckets_of(const T5Buckets& sizes, const StackConfig& stack) {
  T5Buckets t5 = sizes;
  t5.direction = stack.causal == StackConfig::Causal::kYes ? T5Buckets::Direction::kBack
                                                           : T5Buckets::Direction::kBoth;
  return t5;
}

std::string bias_name(const StackConfig& stack) {
  return stack.rows + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight";
}

Status read_distances(const Checkpoint& checkpoint, const T5Buckets& sizes, StackConfig& stack) {
  return read_distance_bias(checkpoint,
                            {.tensor = bias_name(stack), .t5 = buckets_of(sizes, stack)}, stack);
}

void add_layer(WeightTable& table, const StackConfig& stack, int64_t i) {
  const std::string to = stack.rows + "." + std::to_string(i);
  const std::string from = stack.rows + ".block." + std::to_string(i) + ".layer.";
  const int64_t d = stack.width;
  const int64_t inner = stack.heads * stack.head();
  const std::string self = from + "0.SelfAttention.";
  auto& rows = table.rows;
  rows.push_back(
      plain_linear_row(to + ".self.qkv", {self + "q", self + "k", self + "v"}, 3 * inner, d));
  rows.push_back(plain_linear_row(to + ".self.out", {self + "o"}, d, inner));
  rows.push_back(gain_row(to + ".self.norm", from + "0.layer_norm", d));
  std::string last = from + "1.";
  if (stack.cross == StackConfig::Cross::kYes) {
    const std::string cross = from + "1.EncDecAttention.";
    rows.push_back(plain_linear_row(to + ".cross.q", {cross + "q"}, inner, d));
    rows.push_back(plain_linear_row(to + ".cross.kv", {cross + "k", cross + "v"}, 2 * inner, d));
    rows.push_back(plain_linear_row(to + ".cross.out", {cross + "o"}, d, inner));
    rows.push_back(gain_row(to + ".cross.norm", from + "1.layer_norm", d));
    last = from + "2.";
  }
  const std::string dense = last + "DenseReluDense.";
  if (stack.gate == StackConfig::Gate::kYes) {
    rows.push_back(in_gate_pairs(
        plain_linear_row(to + ".ffn.up", {dense + "wi_0", dense + "wi_1"}, 2 * stack.ffn, d)));
  } else {
    rows.push_back(plain_linear_row(to + ".ffn.up", {dense + "wi"}, stack.ffn, d));
  }
  rows.push_back(plain_linear_row(to + ".ffn.down", {dense + "wo"}, d, stack.ffn));
  rows.push_back(gain_row(to + ".ffn.norm", last + "layer_norm", d));
}

void add_stack_rows(WeightTable& table, const StackConfig& stack) {
  for (int64_t i = 0; i < stack.layers; ++i) add_layer(table, stack, i);
  table.rows.push_back(
      gain_row(stack.rows + ".norm", stack.rows + ".final_layer_norm", stack.width));
  // Read by prepare.
  table.ignored.push_back(bias_name(stack));
  // Old checkpoints have one in cross-attention, which was never used.
  table.ignored.push_back("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");
  // Copies of the one embedding.
  table.ignored.push_back("shared.weight");
  table.ignored.push_back("*coder.embed_tokens.weight");
  table.ignored.push_back("lm_head.weight");
}

std::string embedding_name(const Checkpoint& checkpoint) {
  return first_present(checkpoint,
                       {"shared.weight", "encoder.embed_tokens.weight", "shared.weight"});
}

class T5 : public EncoderDecoderFamily {
 public:
  T5(ModelFacts facts, GenerationFacts tokens, EncoderDecoderConfig block, T5Buckets buckets)
      : EncoderDecoderFamily(std::move(facts), std::move(tokens), std::move(block)),
        buckets_(buckets) {}

  Status prepare(const Checkpoint& checkpoint) override {
    const bool own_head = !block().head.empty() && checkpoint.find("lm_head.weight") != nullptr;
    block().source.words = block().target.words =
        block().head.empty() || own_head ? "embed" : block().head;
    VKF_CHECK(read_distances(checkpoint, buckets_, block().encoder));
    return read_distances(checkpoint, buckets_, block().decoder);
  }

  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override {
    WeightTable table;
    const ModelFacts& f = facts();
    const std::string& words = block().source.words;
    table.rows.push_back(embedding_row(words, embedding_name(checkpoint), f.source_vocab, f.width));
    if (!block().head.empty() && words != block().head) {
      table.rows.push_back(embedding_row(block().head, "lm_head.weight", f.target_vocab, f.width));
    }
    add_stack_rows(table, block().encoder);
    add_stack_rows(table, block().decoder);
    return table;
  }

 private:
  T5Buckets buckets_;
};

class T5Encoder : public EncoderFamily {
 public:
  T5Encoder(ModelFacts facts, EncoderConfig block, T5Buckets buckets)
      : EncoderFamily(std::move(facts), std::move(block)), buckets_(buckets) {}

  Status prepare(const Checkpoint& checkpoint) override {
    return read_distances(checkpoint, buckets_, block().stack);
  }

  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override {
    WeightTable table;
    table.rows.push_back(embedding_row(block().embedding.words, embedding_name(checkpoint),
                                       facts().source_vocab, facts().width));
    add_stack_rows(table, block().stack);
    table.ignored.push_back("decoder.*");
    return table;
  }

 private:
  T5Buckets buckets_;
};

// "relu", "gated-gelu": an activation by name, after "gated-" of a gate.
Status read_projection(const JsonConfig& config, const T5Defaults& defaults, StackConfig& stack) {
  VKF_ASSIGN(std::string name, config.get_string_or("feed_forward_proj", defaults.projection));
  const std::string gated = "gated-";
  if (name.starts_with(gated)) {
    stack.gate = StackConfig::Gate::kYes;
    name = name.substr(gated.size());
    if (name == "gelu") name = "gelu_new";  // as the library has it, for Shazeer's GEGLU only
  }
  auto kind = activation_from_name(name);
  if (!kind) return kind.error().with_context("[feed_forward_proj] in " + config.where());
  stack.activation = *kind;
  return {};
}

// What both stacks have alike.
Result<StackConfig> read_stack(const JsonConfig& config, const T5Defaults& defaults) {
  StackConfig stack{.rows = "encoder"};
  VKF_ASSIGN(stack.width, get_size_or(config, "d_model", 512, kMostWidth));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_layers", defaults.layers, kMostLayers));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_heads", defaults.heads, kMostWidth));
  VKF_ASSIGN(stack.head_width, get_size_or(config, "d_kv", 64, kMostHeadWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "d_ff", defaults.ffn, kMostWidth));
  if (stack.heads * stack.head_width > kMostWidth) {
    return invalid_file(message({"[num_heads] in ", config.where(), " is ", stack.heads,
                                 " with a d_kv of ", stack.head_width,
                                 ", but heads side by side may be at most ", kMostWidth, " wide"}));
  }
  stack.norm = StackConfig::Norm::kRms;
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_epsilon", 1e-6));
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  stack.scales = {1.0f};
  VKF_CHECK(read_projection(config, defaults, stack));
  return stack;
}

Result<T5Buckets> read_buckets(const JsonConfig& config) {
  T5Buckets t5;
  VKF_ASSIGN(t5.buckets, get_size_or(config, "relative_attention_num_buckets", 32, kMostDistance));
  VKF_ASSIGN(t5.max_distance,
             get_size_or(config, "relative_attention_max_distance", 128, kMostDistance));
  for (const auto direction : {T5Buckets::Direction::kBoth, T5Buckets::Direction::kBack}) {
    t5.direction = direction;
    const Status fits = check_t5_buckets(t5);
    if (!fits) {
      return fits.error().with_context("[relative_attention_num_buckets] in " + config.where());
    }
  }
  return t5;
}

// D^-0.5 where the states are multiplied by it before the head, else 1. T5 v1.1 does not multiply,
// and its files say so by not tying the embeddings. mT5 never does.
Result<float> read_head_scale(const JsonConfig& config, const StackConfig& stack) {
  VKF_ASSIGN(bool tied, config.get_bool_or("tie_word_embeddings", true));
  VKF_ASSIGN(bool scaled, config.get_bool_or("scale_decoder_outputs", tied));
  return scaled ? 1.0f / std::sqrt(static_cast<float>(stack.width)) : 1.0f;
}

Result<std::unique_ptr<ModelFamily>> load_encoder(ModelFacts facts, StackConfig stack,
                                                  const T5Buckets& buckets) {
  facts.kind = ModelKind::kEncoder;
  facts.target_vocab = facts.max_target = 0;
  EncoderConfig block{.stack = std::move(stack)};
  block.embedding.words = "embed";
  return std::unique_ptr<ModelFamily>(new T5Encoder(std::move(facts), std::move(block), buckets));
}

Result<std::unique_ptr<ModelFamily>> load_both(const ModelFiles& files, ModelFacts facts,
                                               StackConfig stack, const T5Buckets& buckets) {
  const JsonConfig& config = files.config;
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.head, read_seq2seq_head(config, facts.architecture));
  if (facts.head != HeadKind::kNone) block.head = "head";
  stack.taps = "encoder_";
  block.encoder = stack;
  block.decoder = std::move(stack);
  block.decoder.rows = "decoder";
  block.decoder.taps = "decoder_";
  block.decoder.causal = StackConfig::Causal::kYes;
  block.decoder.cross = StackConfig::Cross::kYes;
  VKF_ASSIGN(block.decoder.layers,
             get_size_or(config, "num_decoder_layers", block.encoder.layers, kMostLayers));
  facts.decoder_layers = block.decoder.layers;
  facts.decoder_heads = block.decoder.heads;
  if (facts.family == "t5") {
    VKF_ASSIGN(block.head_scale, read_head_scale(config, block.decoder));
  }
  VKF_ASSIGN(GenerationFacts tokens,
             read_seq2seq_generation(files, {.pad = 0, .eos = 1, .decoder_start = 0}));
  return std::unique_ptr<ModelFamily>(
      new T5(std::move(facts), std::move(tokens), std::move(block), buckets));
}

Result<std::unique_ptr<ModelFamily>> load(const ModelFiles& files, const std::string& family,
                                          const T5Defaults& defaults) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(bool lone_decoder, config.get_bool_or("is_decoder", false));
  if (lone_decoder) {
    return unsupported(message({"[is_decoder] is true in ", config.where(),
                                "; a T5 decoder without its encoder is not supported"}));
  }
  ModelFacts facts{.family = family, .sentence = files.sentence};
  VKF_ASSIGN(facts.architecture,
             get_architecture(config, family == "t5" ? "T5ForConditionalGeneration"
                                                     : "MT5ForConditionalGeneration"));
  VKF_ASSIGN(StackConfig stack, read_stack(config, defaults));
  VKF_ASSIGN(T5Buckets buckets, read_buckets(config));
  facts.width = stack.width;
  facts.encoder_layers = stack.layers;
  facts.encoder_heads = stack.heads;
  VKF_ASSIGN(facts.source_vocab,
             get_size_or(config, "vocab_size", defaults.vocab, kMostVocabulary));
  facts.target_vocab = facts.source_vocab;
  facts.max_source = facts.max_target = kMostT5Tokens;
  if (facts.architecture.ends_with("EncoderModel")) {
    return load_encoder(std::move(facts), std::move(stack), buckets);
  }
  return load_both(files, std::move(facts), std::move(stack), buckets);
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_t5(const ModelFiles& files) {
  return load(files, "t5", kT5);
}

Result<std::unique_ptr<ModelFamily>> load_mt5(const ModelFiles& files) {
  return load(files, "mt5", kMt5);
}

}  // namespace vkformer
