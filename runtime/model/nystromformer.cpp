// Nystroemformer (Xiong et al. 2021): BERT with attention through landmarks and a depthwise
// convolution of the values.
#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/bert_layers.h"
#include "model/blocks/nystrom_attention.h"
#include "model/blocks/padded_tokens.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/attention_weights.h"
#include "ops/combine.h"
#include "ops/conv.h"
#include "ops/gather_rows.h"
#include "ops/segment_means.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;

constexpr uint32_t kFirstPosition = 2;  // rows of the table before it
constexpr const char* kPrefix = "nystromformer.";
constexpr const char* kDecoder = "cls.predictions.decoder";

struct LandmarkSetup {
  int64_t landmarks = 0;  // M
  int64_t segmented = 0;  // tokens that are cut into landmarks: the only length such a pass has
  int64_t kernel = 0;     // taps of the convolution over the tokens; 0: none
  bool states_kernel = false;  // whether the configuration says so
  int64_t pad = 0;             // id of padding
  InverseStartAttrs::Maximum maximum = InverseStartAttrs::Maximum::kShared;

  // With a landmark for every token it is ordinary attention, of any length.
  bool approximate() const { return landmarks != segmented; }
  int64_t padded(int64_t tokens) const { return approximate() ? segmented : tokens; }
};

class Nystromformer : public ModelFamily {
 public:
  Nystromformer(const BertConfig& bert, LandmarkSetup setup)
      : facts_(bert.facts), block_(bert.block), inner_(make_bert(bert)), setup_(setup) {
    if (setup.approximate()) facts_.max_source = setup.segmented;
  }

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return inner_->generation(); }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  // What a layer runs over: S tokens, of which `shown` are handed out.
  struct Pass {
    ModelBuilder& b;
    int64_t batch, tokens, shown;
    StackTerms terms;
    ForwardTaps taps;
  };
  // As many tokens as a pass runs, or why it cannot.
  Result<int64_t> padded_length(int64_t tokens) const;
  std::string conv_name(int64_t layer) const;
  NystromAttrs attention_of(const Pass& pass) const;
  Result<TensorId> attend(const Pass& pass, int64_t layer, TensorId x) const;
  Result<TensorId> convolve(const Pass& pass, const std::string& row, TensorId qkv) const;
  Status show_weights(const Pass& pass, const NystromInputs& inputs, const NystromResult& result,
                      const std::string& name) const;
  Result<TensorId> add_layer(const Pass& pass, int64_t layer, TensorId x) const;

  ModelFacts facts_;
  EncoderConfig block_;
  std::unique_ptr<ModelFamily> inner_;  // the same model with BERT's attention: its weights
  LandmarkSetup setup_;
  std::string prefix_;  // of this file
};

Status Nystromformer::prepare(const Checkpoint& checkpoint) {
  const std::string words = "embeddings.word_embeddings.weight";
  prefix_ = name_prefix(checkpoint, kPrefix, words);
  if (facts_.head == HeadKind::kMasked) {
    const TiedWords names{.words = prefix_ + words, .decoder = kDecoder, .biases = {}};
    block_.heads.back().output = decoder_row(checkpoint, names);
  }
  // A null kernel size is none, and leaves no convolution in the file.
  if (!setup_.states_kernel && checkpoint.find(conv_name(0)) == nullptr) setup_.kernel = 0;
  return inner_->prepare(checkpoint);
}

std::string Nystromformer::conv_name(int64_t layer) const {
  return prefix_ + "encoder.layer." + std::to_string(layer) + ".attention.self.conv.weight";
}

// A head's kernel serves all its columns.
Result<WeightTable> Nystromformer::weight_table(const Checkpoint& checkpoint) const {
  VKF_ASSIGN(WeightTable table, inner_->weight_table(checkpoint));
  const StackConfig& stack = block_.stack;
  for (int64_t i = 0; setup_.kernel > 0 && i < stack.layers; ++i) {
    const std::string name = conv_name(i);
    VKF_ASSIGN(const std::vector<float> kernels,
               read_floats(checkpoint, name, {stack.heads, 1, setup_.kernel, 1}));
    std::vector<float> weight;
    for (int64_t column = 0; column < stack.width; ++column) {
      const auto first = kernels.begin() + column / stack.head() * setup_.kernel;
      weight.insert(weight.end(), first, first + setup_.kernel);
    }
    VKF_ASSIGN(std::vector<float> rows,
               pack_conv({.name = name, .out = stack.width, .weight = weight}));
    table.rows.push_back(computed_row(stack.layer_rows(i) + ".self.conv", std::move(rows),
                                      stack.width, setup_.kernel + 1));
    table.ignored.push_back(name);
  }
  return table;
}

Result<int64_t> Nystromformer::padded_length(int64_t tokens) const {
  const int64_t padded = setup_.padded(tokens);
  if (tokens <= padded) return padded;
  return invalid_argument(message(
      {"[input_ids] has ", tokens, " tokens a row, but this model's segment_means_seq_len cuts ",
       padded, " tokens into ", setup_.landmarks, " landmarks; shorten or split the input"}));
}

Status Nystromformer::read_inputs(const TensorMap&, ForwardInputs& result) const {
  VKF_ASSIGN(const int64_t padded, padded_length(result.shape.source));
  // Positions that a caller gives are rows of the table, where those counted begin at row 2. The
  // subtraction may wrap, as the addition in the embedding does.
  if (result.positions == Tap::kOn) {
    for (uint32_t& position : result.words.at("position_ids")) position -= kFirstPosition;
  }
  pad_tokens(result, padded, setup_.pad);
  return {};
}

NystromAttrs Nystromformer::attention_of(const Pass& pass) const {
  const StackConfig& stack = block_.stack;
  NystromAttrs attrs{.landmarks = u32(setup_.landmarks), .maximum = setup_.maximum};
  AttentionAttrs& a = attrs.attention;
  a.batch = u32(pass.batch);
  a.heads = a.kv_heads = u32(stack.heads);
  a.queries = a.keys = u32(pass.tokens);
  a.head_width = a.value_width = u32(stack.head());
  const uint32_t d = u32(stack.width);
  a.q = merged_rows(a.keys, 3 * d, 0, a.head_width);
  a.k = merged_rows(a.keys, 3 * d, d, a.head_width);
  a.v = merged_rows(a.keys, 3 * d, 2 * d, a.head_width);
  a.terms = pass.terms.params;
  return attrs;
}

// The convolution of v (B, S, D) over the tokens; qkv (B, S, 3 D).
Result<TensorId> Nystromformer::convolve(const Pass& pass, const std::string& row,
                                         TensorId qkv) const {
  const AttentionAttrs a = attention_of(pass).attention;
  const uint32_t d = u32(block_.stack.width);
  VKF_ASSIGN(const TensorId v,
             add_segment_means(pass.b.graph(), qkv,
                               {.batch = a.batch,
                                .heads = a.heads,
                                .tokens = a.keys,
                                .segments = a.keys,
                                .head_width = a.head_width,
                                .x = a.v,
                                .y = merged_rows(a.keys, d, 0, a.head_width),
                                .y_shape = {pass.batch, pass.tokens, block_.stack.width}}));
  VKF_ASSIGN(const TensorId table, pass.b.table(row));
  return add_conv(
      pass.b.graph(), v, table,
      {.window = {.kernel_width = u32(setup_.kernel), .pad_left = u32(setup_.kernel / 2)},
       .groups = d});
}

// attentions.l (B, H, S, M), or one head of it.
Status Nystromformer::show_weights(const Pass& pass, const NystromInputs& inputs,
                                   const NystromResult& result, const std::string& name) const {
  if (pass.taps.raw_scores == Tap::kOn) {
    return unsupported(message({"[", name,
                                "] is a product of three matrices of weights here and has no raw "
                                "scores; ask for probabilities"}));
  }
  VKF_ASSIGN(const TensorId all,
             add_nystrom_weights(pass.b.graph(), inputs, attention_of(pass), result));
  const int64_t heads = block_.stack.heads;
  const int64_t head = pass.taps.attention_head;
  const int64_t first = std::max<int64_t>(0, head);
  const int64_t count = head < 0 ? heads : 1;
  std::vector<uint32_t> rows;
  for (int64_t unit = 0; unit < pass.batch * count; ++unit) {
    const int64_t from = (unit / count * heads + first + unit % count) * pass.tokens;
    for (int64_t t = 0; t < pass.shown; ++t) rows.push_back(u32(from + t));
  }
  const TensorId indices = pass.b.host_tensor("attentions.rows", DType::kU32,
                                              {pass.batch, count, pass.shown}, std::move(rows));
  VKF_ASSIGN(const TensorId chosen,
             add_gather_rows(pass.b.graph(), {.x = all, .indices = indices}));
  pass.b.mark_output(chosen, name);
  return {};
}

Result<TensorId> Nystromformer::attend(const Pass& pass, int64_t layer, TensorId x) const {
  const std::string rows = block_.stack.layer_rows(layer) + ".self";
  Graph& g = pass.b.graph();
  VKF_ASSIGN(const TensorId qkv, add_named_linear(pass.b, rows + ".qkv", x));
  g.set_scope(rows);
  const NystromAttrs attrs = attention_of(pass);
  const ForwardTaps& taps = pass.taps;
  const bool shown =
      taps.attentions == Tap::kOn && (taps.attention_layer < 0 || taps.attention_layer == layer);
  const std::string name = "attentions." + std::to_string(layer);
  TensorId y = kNoTensor;
  if (setup_.approximate()) {
    const std::vector<float> ones(static_cast<size_t>(setup_.landmarks), 1.0f);
    const NystromInputs inputs{qkv, pass.terms.words,
                               pass.b.host_floats("ones", {1, setup_.landmarks}, ones)};
    VKF_ASSIGN(const NystromResult result, add_nystrom_attention(g, inputs, attrs));
    if (shown) VKF_CHECK(show_weights(pass, inputs, result, name));
    y = result.y;
  } else {
    const AttentionInputs inputs{.q = qkv, .kv = qkv, .terms = pass.terms.words};
    if (shown) {
      AttentionWeightsAttrs weights{.attention = attrs.attention};
      weights.first_head = u32(std::max<int64_t>(0, taps.attention_head));
      weights.head_count = taps.attention_head < 0 ? 0 : 1;
      if (taps.raw_scores == Tap::kOn) weights.result = AttentionWeightsAttrs::Result::kScores;
      VKF_ASSIGN(const TensorId map, add_attention_weights(g, inputs, weights));
      pass.b.mark_output(map, name);
    }
    VKF_ASSIGN(y, add_attention(g, inputs, attrs.attention));
  }
  if (setup_.kernel > 0) {
    VKF_ASSIGN(const TensorId local, convolve(pass, rows + ".conv", qkv));
    VKF_ASSIGN(y, add_combine(g, y, local, {}));
  }
  return add_named_linear(pass.b, rows + ".out", y);
}

Result<TensorId> Nystromformer::add_layer(const Pass& pass, int64_t layer, TensorId x) const {
  const StackConfig& stack = block_.stack;
  const std::string rows = stack.layer_rows(layer);
  VKF_ASSIGN(TensorId y, attend(pass, layer, x));
  VKF_ASSIGN(x, add_named_norm(pass.b, stack, rows + ".self.norm", y, x));
  VKF_ASSIGN(y, add_named_linear(pass.b, rows + ".ffn.up", x, {.activation = stack.activation}));
  VKF_ASSIGN(y, add_named_linear(pass.b, rows + ".ffn.down", y));
  return add_named_norm(pass.b, stack, rows + ".ffn.norm", y, x);
}

Status Nystromformer::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  const StackConfig& stack = block_.stack;
  VKF_ASSIGN(const int64_t tokens, padded_length(shape.source));
  Pass pass{b, shape.batch, tokens, shape.source, {}, taps};
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, stack, block_.embedding, {.positions = taps.positions},
                                {shape.batch, tokens}));
  pass.terms = add_stack_terms(b, stack, "key_mask", shape.batch, tokens);
  TensorId x = embedded.x;
  for (int64_t i = 0; i < stack.layers; ++i) {
    if (taps.hidden_states == Tap::kOn) {
      VKF_ASSIGN(const TensorId shown, add_crop(b, x, tokens, shape.source));
      b.mark_output(shown, "hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(x, add_layer(pass, i, x));
  }
  VKF_ASSIGN(const TensorId states, add_crop(b, x, tokens, shape.source));
  b.mark_output(states, "last_hidden_state");
  return add_heads(b, stack, block_.heads, {states, kNoTensor});
}

BertNames nystromformer_names(int64_t layers) {
  BertNames names{.prefix = kPrefix};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.decoder = kDecoder;
  names.decoder_biases = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
  names.ignored = {"cls.*", "classifier.*", "qa_outputs.*"};
  return names;
}

Result<LandmarkSetup> read_setup(const JsonConfig& config) {
  LandmarkSetup setup;
  VKF_ASSIGN(setup.landmarks, get_size_or(config, "num_landmarks", 64, kMostPositions));
  VKF_ASSIGN(setup.segmented, get_size_or(config, "segment_means_seq_len", 64, kMostPositions));
  VKF_ASSIGN(setup.pad, config.get_int_or("pad_token_id", 1));
  if (setup.segmented % setup.landmarks != 0) {
    return invalid_file(
        message({"[num_landmarks] in ", config.where(), " is ", setup.landmarks,
                 ", which does not divide segment_means_seq_len, ", setup.segmented}));
  }
  constexpr int64_t kMostTaps = 4095;
  setup.states_kernel = config.has("conv_kernel_size");
  VKF_ASSIGN(setup.kernel, config.get_int_or("conv_kernel_size", 65));
  if (setup.kernel < 1 || setup.kernel > kMostTaps || setup.kernel % 2 == 0) {
    return invalid_file(message({"[conv_kernel_size] in ", config.where(), " is ", setup.kernel,
                                 ", but must be odd and lie between 1 and ", kMostTaps}));
  }
  VKF_ASSIGN(const bool own, config.get_bool_or("inv_coeff_init_option", false));
  if (own) setup.maximum = InverseStartAttrs::Maximum::kOwn;
  return setup;
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_nystromformer(const ModelFiles& files) {
  const BertDefaults defaults{
      .vocab = 30000, .positions = 510, .epsilon = 1e-5, .activation = "gelu_new"};
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, defaults, "NystromformerModel"));
  VKF_ASSIGN(LandmarkSetup setup, read_setup(files.config));
  if (setup.pad < 0 || setup.pad >= bert.facts.source_vocab) {
    return invalid_file(message({"[pad_token_id] in ", files.config.where(), " is ", setup.pad,
                                 ", but vocab_size is ", bert.facts.source_vocab}));
  }
  if (setup.approximate() && setup.segmented > bert.facts.max_source) {
    return invalid_file(
        message({"[segment_means_seq_len] in ", files.config.where(), " is ", setup.segmented,
                 ", but max_position_embeddings is ", bert.facts.max_source}));
  }
  bert.names = nystromformer_names(bert.block.stack.layers);
  bert.block.embedding.position_offset = kFirstPosition;
  switch (bert.facts.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, "cls.predictions.transform.dense", bert.block.stack.activation,
                      "cls.predictions.transform.LayerNorm");
      break;
    case HeadKind::kSequence:
      add_sequence_head(bert, "classifier.dense", bert.block.stack.activation,
                        "classifier.out_proj");
      break;
    default:
      add_shared_head(bert);
  }
  return std::unique_ptr<ModelFamily>(std::make_unique<Nystromformer>(bert, setup));
}

}  // namespace vkformer
