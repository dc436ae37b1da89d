// What every model family provides: facts, the weight table, and graphs for whole passes.
//
// A family is model/<family>.cpp plus one row in family_list.def; families that differ in a switch
// share a block in model/blocks/.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"
#include "checkpoint/json_config.h"
#include "model/model_builder.h"
#include "ops/mean_pool.h"
#include "vkformer/choices.h"
#include "vkformer/generation.h"
#include "vkformer/tensor.h"
#include "weights/weight_table.h"

namespace vkformer {

// How token rows become tensors.
struct TokenFacts {
  int64_t types = 0;  // token types that the model tells apart; 0: none
  // kCounted: the index in the row. kFromIds: pad + 1 + the index among tokens that are not pad,
  // and pad for those that are (RoBERTa, M2M-100). kFromMask: the index among the tokens that the
  // attention mask keeps (OPT).
  enum class Positions : uint8_t { kCounted, kFromIds, kFromMask } positions = Positions::kCounted;
  int64_t pad = 0;  // the pad id of kFromIds
};

// Sizes of a picture or of features.
struct GridFacts {
  int64_t channels = 0;  // of pictures; mel bins of features
  int64_t height = 0;    // pixels; 0: any
  int64_t width = 0;     // pixels, or frames; 0: any
};

// Sizes of sound in frames.
struct WaveFacts {
  int64_t samples_per_frame = 0;  // from the start of one to that of the next; 0: unknown
  int64_t least_samples = 0;      // that make a frame
};

// What sentence-transformers' files say of a model that embeds sentences.
struct SentenceFacts {
  // Several ways: their vectors one after the other, in this order, as one. None: no sentences.
  std::vector<PoolKind> pooling;
  // What is done to the pooled vector, in order: its length becomes 1, or a linear layer.
  struct Step {
    enum class Kind : uint8_t { kNormalize, kDense } kind = Kind::kNormalize;
    // Of kDense. The layer's tensors are those of model.safetensors in the folder `module`; in a
    // Checkpoint their names begin with "<module>/".
    std::string module;
    int64_t in = 0, out = 0;  // features
    bool bias = true;
    ActivationKind activation = ActivationKind::kNone;
  };
  std::vector<Step> steps;
  // kNo: tokens of a prompt before a text are not pooled (`pooling_mask`).
  enum class PoolsPrompt : uint8_t { kNo, kYes } pools_prompt = PoolsPrompt::kYes;

  bool pools() const { return !pooling.empty(); }
  bool normalizes() const;
};

// How a decoder that reads images has them in its prompts. tasks/image_prompts.h writes them so.
struct ImagePromptFacts {
  // kNone: it reads no images. kRepeated: an image token for each feature (LLaVA). Between `begin`
  // and `end`, where there are such (Qwen-VL). They are in the prompt already where the image token
  // is. kBounded: `begin` stands for an image (Gemma 3). It becomes `begin`, image tokens and `end`
  // between empty lines. kLeading: image tokens, then the start token, the text and a line end
  // (PaliGemma). kTiles: the tiles of an image row by row, then the whole, each after a tag
  // (Idefics3).
  enum class Kind : uint8_t { kNone, kRepeated, kBounded, kLeading, kTiles } kind = Kind::kNone;
  int64_t token = -1;  // whose place a feature takes
  int64_t begin = -1;
  int64_t end = -1;
};

// What sessions and users need to know of a model before any weight is read.
struct ModelFacts {
  std::string family;
  std::string architecture;
  ModelKind kind = ModelKind::kEncoderDecoder;
  SourceKind source = SourceKind::kTokens;
  HeadKind head = HeadKind::kNone;
  int64_t width = 0;           // D of the stack that gives last_hidden_state
  int64_t encoder_layers = 0;  // L of the encoder
  int64_t decoder_layers = 0;  // L of the decoder
  int64_t encoder_heads = 0;   // H
  int64_t decoder_heads = 0;   // H
  int64_t source_vocab = 0;    // V of the encoder's embedding
  int64_t target_vocab = 0;    // V of the logits
  int64_t max_source = 0;      // tokens; a decoder's own where there is no encoder
  int64_t max_target = 0;      // tokens
  TokenFacts source_tokens;
  TokenFacts target_tokens;
  GridFacts grid;
  WaveFacts wave;
  SentenceFacts sentence;
  std::vector<std::string> labels;  // of a classifying head, by class
  // How logits of objects become scores: those of all classes and one for none sum to 1, or each
  // class has a separate one.
  enum class Objects : uint8_t { kSoftmax, kSigmoid } objects = Objects::kSoftmax;
  // How logits of similarity become probabilities: those of all texts sum to 1, or each text has a
  // separate one.
  enum class Similarity : uint8_t { kSoftmax, kSigmoid } similarity = Similarity::kSoftmax;
  // kExact: the length of a prompt changes what is computed (rotary frequencies that depend on it).
  // So recordings are made for the exact length, not for a rounded one.
  enum class Prompts : uint8_t { kRounded, kExact } prompts = Prompts::kRounded;
  // Whether a generation may forget keys (StepShape::context). kNo: it has no cache of a decoder
  // alone; kInTable: yes, but no longer than a table of positions; kFree: as long as one likes.
  enum class Rolling : uint8_t { kNo, kInTable, kFree } rolling = Rolling::kNo;
  // Whether layers carry states from token to token (blocks/state_layer.h), which go back by
  // StepShape::back tokens only.
  enum class States : uint8_t { kNo, kYes } states = States::kNo;
  // Whether a step may take any tokens of any rows (StepShape::slots). It may where all that a
  // decoder carries on are keys and values by position, and such states. kAfterPrompt: the tokens
  // of a prompt attend to later ones. So a whole prompt is computed in one pass, and steps go on
  // from it.
  enum class Slots : uint8_t { kNo, kYes, kAfterPrompt } slots = Slots::kNo;
  // kSeen: masked tokens change what the others become (patterns or landmarks that depend on the
  // length). So a pass runs on just the tokens that it is given.
  enum class Padding : uint8_t { kUnseen, kSeen } padding = Padding::kUnseen;
  ImagePromptFacts images;
  // Of a model that speaks: samples a second, and whose voices it has; 0: only its own.
  int64_t sampling_rate = 0;
  int64_t speakers = 0;
  // kTwo: what the first pass gives says how large a second one is (ModelFamily::second_inputs).
  enum class Passes : uint8_t { kOne, kTwo } passes = Passes::kOne;
  // kEither: the family's own library calls a decoder's tokens input_ids and attention_mask, for
  // its encoder reads none; both names are taken.
  enum class TargetNames : uint8_t { kDecoder, kEither } target_names = TargetNames::kDecoder;
};

// Token-choice settings as generation_config.json and config.json give them.
struct GenerationFacts {
  std::vector<int64_t> eos;
  int64_t pad = 0;
  int64_t decoder_start = 0;
  std::optional<int64_t> forced_bos;
  std::optional<int64_t> forced_eos;
  std::vector<int64_t> suppress;        // never chosen; bad_words_ids of one token count here
  std::vector<int64_t> begin_suppress;  // not chosen first
  // What a decoder starts with where that is more than decoder_start, which it begins with. -1
  // stands for a token that the user chooses (Whisper's language).
  std::vector<int64_t> decoder_prompt;
  // Tokens that such a prompt can hold, by name: languages ("<|en|>"), tasks ("transcribe"),
  // "notimestamps".
  std::map<std::string, int64_t> prompt_tokens;
  int64_t beams = 1;
  int64_t max_new_tokens = 0;  // 0: not stated
  int64_t min_new_tokens = 0;
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  TokenChoice choice = TokenChoice::kBest;
  SamplingOptions sampling;
  PenaltyOptions penalties;
  int64_t return_sequences = 1;
  int64_t beam_groups = 1;
  double diversity = 0.0;
  int64_t contrastive_tokens = 0;  // 0: no contrastive search
  double contrast = 0.0;
};

// Which tensors a forward pass shall hand out besides the main outputs.
struct ForwardTaps {
  enum class Tap : uint8_t { kOff, kOn };
  Tap attentions = Tap::kOff;    // [encoder_|decoder_|cross_]attentions.l
  int64_t attention_layer = -1;  // only this layer; -1: all
  int64_t attention_head = -1;   // only this head; -1: all
  // Of cross-attention these layers' maps alone, and no other map; empty: as the above say.
  std::vector<int64_t> cross_layers;
  Tap raw_scores = Tap::kOff;     // scaled scores, -inf where masked, instead of probabilities
  Tap hidden_states = Tap::kOff;  // [encoder_|decoder_]hidden_states.l
  Tap decoder_mask = Tap::kOff;   // feed decoder_key_mask
  Tap positions = Tap::kOff;      // feed position_ids where the model would count
  Tap pooling_mask = Tap::kOff;   // feed pooling_mask, the tokens of a sentence embedding
  // A DecoderFamily's logits of the last token of each row that the mask keeps, (B,V), instead of
  // all tokens'.
  Tap last_logits = Tap::kOff;

  bool operator==(const ForwardTaps&) const = default;
};

// Sizes of a forward pass.
struct ForwardShape {
  int64_t batch = 0;          // B
  int64_t source = 0;         // S; unused for pictures and features
  int64_t target = 0;         // T; 0: no decoder
  int64_t height = 0;         // pixels
  int64_t width = 0;          // pixels or frames
  std::vector<int64_t> more;  // sizes and switches that ModelFamily::read_inputs adds

  bool operator==(const ForwardShape&) const = default;
};

// Words by the name of a feed (ModelFamily::build_forward lists them).
using FeedWords = std::map<std::string, std::vector<uint32_t>>;

// The inputs of a pass, checked and turned into the words that graphs are fed with.
struct ForwardInputs {
  ForwardShape shape;
  FeedWords words;
  // Which optional feeds the graph shall have.
  ForwardTaps::Tap decoder_mask = ForwardTaps::Tap::kOff;
  ForwardTaps::Tap positions = ForwardTaps::Tap::kOff;
  ForwardTaps::Tap pooling_mask = ForwardTaps::Tap::kOff;
};

// Capacities of a generation: what prompt and step graphs are recorded for.
struct StepShape {
  int64_t batch = 0;          // B items
  int64_t beams = 0;          // rows per item
  int64_t source = 0;         // S, keys of cross-attention, where the source is tokens
  int64_t capacity = 0;       // C, positions of the key/value cache
  int64_t prompt = 1;         // P, positions before the first generated one; the last is a step's
  int64_t height = 0;         // pixels
  int64_t width = 0;          // pixels or frames
  std::vector<int64_t> more;  // as ForwardShape's
  // N, keys that a query sees at most, its own included; positions count within them. 0: all.
  int64_t context = 0;
  int64_t sinks = 0;  // K, the first keys, which stay when others give way
  CacheFormat cache = CacheFormat::kF32;
  // Rows of a step, each a token with its own position; several may be of one cache row. 0: a step
  // takes one token of every row.
  int64_t slots = 0;
  // Tokens that one step may take of a row beyond the first. Where keys give way to others, the
  // cache has this number of lines more. So no query misses a key that a later token of its step
  // overwrote.
  int64_t ahead = 0;
  // Tokens that a row of slots may go back, of what layers carry as states.
  int64_t back = 0;

  // Rows of a step's tensors.
  int64_t step_rows() const { return slots > 0 ? slots : batch * beams; }

  bool operator==(const StepShape&) const = default;
};

// What a decoding step computes of its R rows.
struct StepResult {
  TensorId states = kNoTensor;  // (R, D), last_hidden_state of a full pass
  TensorId logits = kNoTensor;  // (R, V)
};

// The files of a model directory that a family reads.
struct ModelFiles {
  JsonConfig config;      // config.json
  JsonConfig generation;  // generation_config.json, or without keys
  SentenceFacts sentence;
};

// Token rows of a pass, or of the prompts of a generation, padded on the right.
struct PromptTokens {
  int64_t batch = 0;              // B
  int64_t tokens = 0;             // T
  std::span<const uint32_t> ids;  // (B, T)
  std::span<const uint8_t> kept;  // (B, T), 1 = a real token
};

// What the prompts of a generation hold beside tokens, where a decoder reads pictures.
struct PromptPictures {
  std::vector<int64_t> more;  // StepShape::more; empty: tokens alone
  FeedWords words;            // of what makes features of the pictures
  int64_t image_token = -1;   // whose place features take
  struct Row {
    std::vector<uint8_t> types;  // of its tokens that are kept: 0 text, 1 an image
    uint32_t first = 0;          // of all features, the first that takes the place of one of them
  };
  std::vector<Row> rows;  // by prompt
};

class ModelFamily {
 public:
  virtual ~ModelFamily() = default;
  virtual const ModelFacts& facts() const = 0;
  virtual const GenerationFacts& generation() const = 0;
  // Reads what graphs need of the weights on the host (tables of relative biases). Called once,
  // before weight_table.
  virtual Status prepare(const Checkpoint& checkpoint);
  // Rows depend on what the file holds where a head may be tied.
  virtual Result<WeightTable> weight_table(const Checkpoint& checkpoint) const = 0;
  // From now on graphs divide the heads and feed-forward columns of every layer among `parts`
  // devices. `table` gets the rows of all parts (blocks/stack_parts.h). Called once, after
  // weight_table; kUnsupported where the layers are not divided.
  virtual Status divide(int64_t parts, WeightTable& table);

  // Reads what this family takes beside what its SourceKind says (Longformer's global tokens), or
  // instead of it where that is kArrays or kWaveform. It adds words for its own feeds, and to
  // shape.more what its graph depends on. Called after the common reading, whose sizes and words
  // are in `result`. In a generation shape.source may be longer than the caller's rows, which then
  // count as padded.
  virtual Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const;
  // The names that read_inputs looks up beside those that every model of its SourceKind takes; a
  // tensor of another name is refused before.
  virtual std::vector<std::string> input_names() const;

  // Pictures in the prompts of a generation from `tokens`; nothing where a family reads none.
  virtual Result<PromptPictures> read_pictures(const TensorMap& inputs,
                                               const PromptTokens& tokens) const;
  // The number of features of an image of height x width pixels, as its processor made it. It is an
  // error where the family reads none of that size.
  virtual Result<int64_t> image_tokens(int64_t height, int64_t width) const;
  // T of build_prompt: P - 1, for the last token of a prompt is a step's; P where tokens of a
  // prompt see later ones.
  virtual int64_t prompt_tokens(const StepShape& shape) const { return shape.prompt - 1; }
  // What prompts with pictures feed beside their tokens; rows of `pictures` are those of `tokens`.
  virtual Status add_prompt_words(const PromptPictures& pictures, const PromptTokens& tokens,
                                  FeedWords& words) const;

  // Full pass. Feeds (ModelBuilder::feed): input_ids, key_mask, position_ids, token_type_ids,
  // key_positions, kept_rows, the same of the decoder (decoder_input_ids, decoder_key_mask,
  // decoder_position_ids), pooling_mask, pixel_values, input_features. Outputs (mark_output):
  // last_hidden_state (B,T,D), encoder_last_hidden_state (B,S,D), the head's, and the taps.
  virtual Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                               const ForwardTaps& taps) const = 0;
  // Of Passes::kTwo: what the second pass reads, from the caller's inputs and the outputs of the
  // first. Outputs of the first that are not for the caller are removed. The outputs of the second
  // are added to the rest.
  virtual Result<ForwardInputs> second_inputs(const TensorMap& inputs, TensorMap& outputs) const;
  // Its shape with `frames` frames for each input of a first pass (vits: of its flows).
  virtual Result<ForwardShape> second_shape(const ForwardShape& first, int64_t frames) const;
  // The second pass, of sizes that second_inputs or second_shape gave.
  virtual Status build_second(ModelBuilder& builder, const ForwardShape& shape) const;
  // S of cross-attention: keys that an encoder makes of an input of that shape.
  virtual int64_t source_tokens(const ForwardShape& shape) const { return shape.source; }
  // What a generation does before its first step: the encoder and the first P - 1 positions of the
  // prompt. The encoder's keys and values are cross_kv.l (B,S,2 Hkv E) per decoder layer. Those of
  // the prompt go into self_kv.l (R,lines,2 Hkv E). kUnsupported where a family does not generate.
  virtual Status build_prompt(ModelBuilder& builder, const StepShape& shape) const;
  // One decoding step up to the logits. Externals: step_ids (R) U32, key_mask, cross_kv.l,
  // self_kv.l, ancestry (words), decode_state.
  virtual Result<StepResult> build_step(ModelBuilder& builder, const StepShape& shape) const;
};

// Reads config.json (and generation_config.json if present) of a model and makes its family.
// ErrorCode::kUnsupported names a model_type that this build does not know.
Result<std::unique_ptr<ModelFamily>> load_family(const FileStore& files);
// The model_type values load_family knows.
std::vector<std::string> family_names();

}  // namespace vkformer
