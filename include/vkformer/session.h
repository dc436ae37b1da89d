// Session: runs passes of a Model and generates, reusing what it recorded.
//
// Threading: one thread at a time per Session; several sessions may share a Model.
// Lifetime: move-only; keeps its Model and Device alive, so that their handles may go first.
// Results are independent of it. Destroying it waits for what it submitted. Recordings of the last
// few shapes are kept; nothing is allocated while a recorded shape is run again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/generation.h"
#include "vkformer/model.h"
#include "vkformer/tensor.h"

struct VkCommandBuffer_T;  // what a VkCommandBuffer points at

namespace vkformer {

class SessionState;

struct SessionOptions {
  // Recordings kept, per kind of pass; the least recently used one gives way.
  int recordings = 8;
  // Decoding steps per submit; results are the same for any number from 1 on.
  int steps_per_submit = 8;
  // How a generation's keys and values are stored.
  CacheFormat cache = CacheFormat::kF32;
  // A prefix cache for a model that is one decoder, without beams, contrastive search and slices.
  // If a prompt shares a prefix with a cached text, only the tokens after that prefix are computed.
  // The cache is in f32. The session then generates by the steps of a GenerationBatch, one submit
  // each. The bits are the same whatever is reused; on Mesa's software drivers they are those of a
  // session without it, too (docs/numerics.md).
  bool prefix_reuse = false;
  // Passes over texts run on a few lengths only: padded to the next of them, with a mask, and cut
  // back. So a text of another length seldom has to be prepared first. At most a quarter more
  // tokens, or 16 in all. Results are those of the padded text: within the bounds of
  // docs/numerics.md of those without. Passes with position_ids, with tensors in buffers of the
  // application, and of families that see padding (docs/embedding.md) stay as they are. Generations
  // are rounded always.
  bool round_lengths = false;
};

// What a forward pass shall hand out besides its main outputs.
struct RunOptions {
  // attentions.l, encoder_attentions.l, decoder_attentions.l, cross_attentions.l (B,H,T,S).
  bool attentions = false;
  // Only this layer's, or all (-1); only this head's (B,1,T,S), or all (-1).
  int attention_layer = -1;
  int attention_head = -1;
  // kScores hands out the scaled scores, -inf where masked, instead of probabilities.
  enum class AttentionValues : uint8_t { kProbabilities, kScores };
  AttentionValues attention_values = AttentionValues::kProbabilities;
  // attention_entropy.l, encoder_attention_entropy.l and so on (B,H,T), of the same layers and
  // heads. It is the entropy of each query's probabilities in nats, 0 where one key has them all or
  // none is allowed.
  bool entropy = false;
  // Divides the scores of every softmax of attention, from 1e-9 (the best key takes all) to 1e9
  // (all keys alike).
  double temperature = 1.0;
  // Tokens beyond the last position that the model knows (of one stack of tokens): an error, or
  // they all take the last position.
  enum class LongInputs : uint8_t { kRefuse, kClamp } long_inputs = LongInputs::kRefuse;
  // hidden_states.l and the like: the input of layer l (B,T,D).
  bool hidden_states = false;
};

// How far a pass or generation that was started has come.
struct Advance {
  enum class Progress : uint8_t {
    kRunning,    // there is more to submit
    kSubmitted,  // everything was submitted or recorded; the GPU may still be at it
    kDone,  // the GPU has finished, as far as timestamps show: without them record never says so
    kPreparing,  // nothing can be submitted yet: plans and pipelines are being made
  } progress = Progress::kRunning;
  double fraction = 0;               // 0 to 1, submitted or prepared so far, by our estimate
  double last_microseconds = 0;      // GPU time of the latest slice known to have run; 0: none yet
  double expected_microseconds = 0;  // of the slice that this call submitted, by our estimate

  bool more_to_submit() const {
    return progress == Progress::kRunning || progress == Progress::kPreparing;
  }
};

// What slices of a pass or a generation come to.
struct FrameEstimate {
  // Until the first token of a generation, or the end of a pass; and until the end.
  int64_t first_frames = 0;
  int64_t frames = 0;
  double first_milliseconds = 0;  // of GPU time
  double milliseconds = 0;
  // Part of that time, 0 to 1, which goes by measurements on this device; the rest is a first,
  // cautious estimate.
  double measured = 0;
};

class VKFORMER_API Session {
 public:
  static Result<Session> create(const Model& model, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // One full pass. Inputs by the library's argument names: input_ids (B,S), attention_mask (B,S)
  // (absent: all ones), token_type_ids, position_ids (B,S). Of decoders decoder_input_ids (B,T) and
  // decoder_attention_mask (B,T). Of pictures and audio pixel_values (B,C,height,width) and
  // input_features (B,mel,frames). Of sentence embeddings pooling_mask (B,S), their tokens, where
  // they are not attention_mask's. A tensor of another name is an error that names the nearest one.
  // Masks hold 1 for tokens that are attended and 0 for others; another value is an error. Its
  // outputs are last_hidden_state (B,T,D), encoder_last_hidden_state (B,S,D), what the model's head
  // gives (logits, start_logits and end_logits, pooler_output, sentence_embedding), and the taps.
  Result<TensorMap> run(const TensorMap& inputs, const RunOptions& options = {});

  // The model's own settings.
  GenerateOptions generation_defaults() const;
  // Generates from token rows of any lengths: the encoder's, or the prompts of a model that is one
  // decoder. An error names the row where a NaN appeared.
  Result<Generation> generate(const std::vector<std::vector<TokenId>>& inputs,
                              const GenerateOptions& options);
  // The same from tensors: input_ids (B,S) with attention_mask (B,S) or none, pixel_values,
  // input_features. Of a prompt's row the tokens that its mask keeps are the prompt.
  Result<Generation> generate_masked(const TensorMap& inputs, const GenerateOptions& options);
  const GenerationCounters& counters() const;
  // Of every input the log-probabilities that the model gives the tokens of a continuation, each
  // after the input and those before it. Of an encoder-decoder they come after what its decoder
  // starts with.
  Result<std::vector<std::vector<float>>> score(
      const std::vector<std::vector<TokenId>>& inputs,
      const std::vector<std::vector<TokenId>>& continuations);
  // The same from tensors, as generate_masked takes them.
  Result<std::vector<std::vector<float>>> score_masked(
      const TensorMap& inputs, const std::vector<std::vector<TokenId>>& continuations);

  // --- Within the budget of a frame. Results are the bits that run() and
  // generate_masked() give.

  // Prepares what runs of these sizes need (new_tokens above 0: a generation) while frames go on,
  // as start does, and returns at once. A run of these sizes begins without preparing then.
  Status warm_up(const SessionSizes& sizes);
  // Goes on with that, for at most about a millisecond where nobody does it beside the caller.
  // Returns how much of all that was asked for is there, 0 to 1. An error is what the first failed
  // with.
  Result<double> warmed_up();
  // Waits until all of it is there.
  Status finish_warm_up();

  // How many slices of that budget a run of these sizes takes. Plans it, which takes
  // milliseconds of the calling thread; nothing runs. Of a model that runs two passes, the second
  // counts with as many frames as new_tokens says; with 0 it is the first pass alone.
  Result<FrameEstimate> estimate(const SessionSizes& sizes, double microseconds) const;

  // Begins a pass, or a generation, which advance() or record() then carry out. One at a time:
  // until finish or cancel, nothing else runs in this session. What this size needs and is not
  // there yet is prepared while frames go on (DeviceOptions::run_job). Until then the progress is
  // kPreparing, with the fraction of the pipelines. What fails is an error of advance or record. An
  // infinite budget waits for it. With on_token or a grammar each token's steps wait for the host,
  // in calls of advance or record; on_token is called in these. A model that speaks runs two
  // passes, the second as long as the first one says. Once the first has run, kPreparing may come
  // again; each pass is half of the fraction.
  Status start(const TensorMap& inputs, const RunOptions& options = {});
  Status start_generation(const TensorMap& inputs, const GenerateOptions& options);
  // Submits the next slice, of at most this many microseconds of GPU time by an estimate that
  // calibrates itself. It does not wait for the slice, except where the device has no timestamps.
  // Operators are cut where needed; a slice holds at least one workgroup or decoding operator.
  Result<Advance> advance(double microseconds);
  // The same into a command buffer of the application that is being recorded outside a render pass:
  // no submit, no semaphore. Its compute state is disturbed. What it wrote is visible to the host
  // and to transfers; for shaders the application puts a barrier after the compute stage's writes.
  // The application submits slices in order, to the device's queue, before it calls advance or
  // finish. Its own barrier keeps apart what still reads outputs of an earlier frame. Between the
  // steps of a generation, its state is read where the device's memory is mapped, else by a small
  // submit of ours that waits. Infinity records all that is left (256 dispatches at most in one
  // call).
  Result<Advance> record(VkCommandBuffer_T* commands, double microseconds);
  // The command buffer that record appended to last was not submitted and never will be, as when a
  // swapchain was lost. Its slice comes again with the next record or advance. Call it once for
  // each slice that was dropped, before anything else is submitted. Devices without timestamps
  // remember one slice.
  Status drop_recorded();
  // Outputs of what was started; waits for the GPU. What was recorded must have run before. An
  // error ends what was started, unless it says that there is more to submit.
  Result<TensorMap> finish();
  Result<Generation> finish_generation();
  // Gives up what was started; waits for what was submitted. What was recorded must have run, or
  // never run.
  Status cancel();

 private:
  friend struct HandleAccess;
  explicit Session(std::unique_ptr<SessionState> impl);
  std::unique_ptr<SessionState> impl_;
};

}  // namespace vkformer
