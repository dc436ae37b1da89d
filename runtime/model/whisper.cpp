// Whisper (Radford et al., 2022): log-mel features through two convolutions into a pre-norm
// encoder, and a text decoder whose prompt names language and task.
#include <numeric>

#include "base/message.h"
#include "model/blocks/bart_layers.h"
#include "model/blocks/seq2seq_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/gather_rows.h"
#include "ops/unfold.h"

namespace vkformer {
namespace {

// Both convolutions see a frame and its neighbors; the second one takes every other frame.
constexpr uint32_t kKernel = 3;
constexpr uint32_t kStride = 2;

class Whisper : public EncoderDecoderFamily {
 public:
  using EncoderDecoderFamily::EncoderDecoderFamily;
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  int64_t source_tokens(const ForwardShape&) const override { return facts().max_source; }

 protected:
  Result<Memory> encode(ModelBuilder& builder, const ForwardShape& shape,
                        const ForwardTaps& taps) const override;

 private:
  Result<TensorId> add_convolution(ModelBuilder& b, const std::string& name, TensorId x,
                                   ChannelOrder order, uint32_t stride) const;

  std::string prefix_;
  std::string words_;  // the decoder's embedding in the file
  std::string head_;   // the head, or the embedding again
};

Status Whisper::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "model.", "encoder.conv1.weight");
  words_ = prefix_ + "decoder.embed_tokens.weight";
  head_ = block().head.empty() ? words_ : first_present(checkpoint, {"proj_out.weight", words_});
  block().target.words = head_ == words_ ? "head" : "decoder.embed";
  return {};
}

Result<WeightTable> Whisper::weight_table(const Checkpoint&) const {
  WeightTable table;
  const ModelFacts& f = facts();
  const int64_t d = f.width;
  auto& rows = table.rows;
  rows.push_back(embedding_row("head", head_, f.target_vocab, d));
  if (words_ != head_) rows.push_back(embedding_row("decoder.embed", words_, f.target_vocab, d));
  const std::string encoder = prefix_ + "encoder.";
  rows.push_back(linear_row("encoder.conv1", {encoder + "conv1"}, d, f.grid.channels * kKernel));
  rows.push_back(linear_row("encoder.conv2", {encoder + "conv2"}, d, d * kKernel));
  for (const StackConfig* stack : {&block().encoder, &block().decoder}) {
    const std::string from = prefix_ + stack->rows;
    const int64_t positions = stack == &block().encoder ? f.max_source : f.max_target;
    rows.push_back(
        table_row(stack->rows + ".positions", {from + ".embed_positions.weight"}, {positions}, d));
    add_bart_layers(table, *stack, from + ".layers", KeyBias::kNo);
    rows.push_back(norm_row(stack->rows + ".norm", from + ".layer_norm", d));
  }
  table.ignored.push_back("proj_out.weight");
  return table;
}

// gelu(convolution over time): (B, frames) of channels -> (B, frames / stride, D).
Result<TensorId> Whisper::add_convolution(ModelBuilder& b, const std::string& name, TensorId x,
                                          ChannelOrder order, uint32_t stride) const {
  b.graph().set_scope(name);
  UnfoldAttrs attrs{.source = {.order = order}};
  attrs.window = {.kernel_width = kKernel, .stride_width = stride, .pad_left = 1};
  VKF_ASSIGN(TensorId windows, add_unfold(b.graph(), x, attrs));
  return add_named_linear(b, name, windows, {.activation = ActivationKind::kGelu});
}

Result<Memory> Whisper::encode(ModelBuilder& b, const ForwardShape& shape,
                               const ForwardTaps& taps) const {
  const int64_t tokens = facts().max_source;
  Graph& g = b.graph();
  TensorId x = g.add_external("input_features", DType::kF32,
                              {shape.batch, facts().grid.channels, facts().grid.width});
  b.feed("input_features", x);
  VKF_ASSIGN(x, add_convolution(b, "encoder.conv1", x, ChannelOrder::kFirst, 1));
  VKF_ASSIGN(x, add_convolution(b, "encoder.conv2", x, ChannelOrder::kLast, kStride));
  // + positions: every row as it is, with the position's row added.
  b.graph().set_scope("encoder.positions");
  std::vector<uint32_t> same(static_cast<size_t>(shape.batch * tokens));
  std::iota(same.begin(), same.end(), 0u);
  const TensorId indices =
      b.host_tensor("encoder.frames", DType::kU32, {shape.batch, tokens}, std::move(same));
  VKF_ASSIGN(TensorId positions, b.table("encoder.positions"));
  VKF_ASSIGN(x, add_gather_rows(g, {.x = x, .indices = indices, .addend = positions}));
  const StackConfig& stack = block().encoder;
  StackRun run{.batch = shape.batch, .tokens = tokens};
  run.taps = taps;
  run.terms = add_stack_terms(b, stack, "", shape.batch, tokens);
  VKF_ASSIGN(TensorId states, add_stack(b, stack, run, x));
  return Memory{.states = states, .tokens = tokens};
}

// Names and ids of an object like lang_to_id.
Status read_named(const JsonConfig& generation, const std::string& key, GenerationFacts& facts) {
  const JsonConfig named = generation.object(key);
  VKF_CHECK(named.status());
  for (const std::string& name : named.keys()) {
    VKF_ASSIGN(facts.prompt_tokens[name], named.get_int(name));
  }
  return {};
}

// The prompt that forced_decoder_ids, [[1, token], [2, token], ...], force. A language or task of
// newer configurations takes its place.
Status read_prompt(const ModelFiles& files, GenerationFacts& facts) {
  const JsonConfig& generation = files.generation;
  VKF_CHECK(read_named(generation, "lang_to_id", facts));
  VKF_CHECK(read_named(generation, "task_to_id", facts));
  if (generation.has("no_timestamps_token_id")) {
    VKF_ASSIGN(facts.prompt_tokens["notimestamps"], generation.get_int("no_timestamps_token_id"));
  }
  if (generation.has("language") || generation.has("task")) return {};
  const JsonConfig& from = generation.has("forced_decoder_ids") ? generation : files.config;
  const std::string key = "forced_decoder_ids";
  VKF_ASSIGN(std::vector<std::vector<int64_t>> forced, from.get_nullable_int_lists_or(key, {}));
  if (forced.empty()) return {};
  facts.decoder_prompt = {facts.decoder_start};
  for (size_t i = 0; i < forced.size(); ++i) {
    if (forced[i].size() != 2 || forced[i][0] != static_cast<int64_t>(i) + 1) {
      return invalid_file(
          message({"[", key, "] in ", from.where(), " has no [", i + 1, ", token] as element ", i,
                   "; it must force the positions from 1 on, one after the other"}));
    }
    facts.decoder_prompt.push_back(forced[i][1]);
  }
  return {};
}

Status read_sizes(const JsonConfig& config, ModelFacts& facts, EncoderDecoderConfig& block) {
  VKF_CHECK(read_bart_sizes(config,
                            {.encoder_layers = 4,
                             .decoder_layers = 4,
                             .heads = 6,
                             .ffn = 1536,
                             .width = 384,
                             .vocab = 51865},
                            facts, block));
  // Whisper's configuration class has scale_embedding; its model does not use it.
  block.target.scale = 1.0f;
  VKF_ASSIGN(facts.max_source, get_size_or(config, "max_source_positions", 1500, kMostPositions));
  VKF_ASSIGN(facts.max_target, get_size_or(config, "max_target_positions", 448, kMostPositions));
  VKF_ASSIGN(facts.grid.channels, get_size_or(config, "num_mel_bins", 80, kMostWidth / kKernel));
  facts.grid.width = facts.max_source * kStride;
  facts.source_vocab = 0;
  for (StackConfig* stack : {&block.encoder, &block.decoder}) {
    stack->order = StackConfig::Order::kPre;
    stack->final_norm = StackConfig::FinalNorm::kYes;
  }
  block.target.positions = "decoder.positions";
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_whisper(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "whisper", .source = SourceKind::kFeatures};
  EncoderDecoderConfig block;
  VKF_ASSIGN(facts.architecture, get_architecture(config, "WhisperForConditionalGeneration"));
  VKF_ASSIGN(facts.head, read_seq2seq_head(config, facts.architecture));
  if (facts.head != HeadKind::kNone) block.head = "head";
  VKF_CHECK(read_sizes(config, facts, block));
  VKF_ASSIGN(GenerationFacts tokens,
             read_seq2seq_generation(files, {.pad = 50256, .eos = 50256, .decoder_start = 50257}));
  VKF_CHECK(read_prompt(files, tokens));
  return std::unique_ptr<ModelFamily>(
      new Whisper(std::move(facts), std::move(tokens), std::move(block)));
}

}  // namespace vkformer
