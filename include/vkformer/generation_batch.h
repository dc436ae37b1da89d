// GenerationBatch: requests of many users generated together. They join and leave between steps,
// and each gets the bits it would have got alone.
//
// A batch has a fixed number of rows, each a place in a cache of keys and values, and a queue of
// fixed length. Both are its memory from the beginning. What does not fit is refused. A step takes
// the next token of every row that generates, tokens of prompts that are still being read, and
// draft tokens.
//   Prefixes  a row keeps its keys after its request has ended; a prompt that begins like what a
//             free row holds is read from where they part. Prompts with images share keys only if
//             their images are the same, byte by byte.
//   Images    a prompt with images is computed in one pass before a step, one such prompt a step.
//             So is the picture that an encoder-decoder describes.
//   Drafts    tokens proposed by a smaller model (Leviathan et al. 2023, "Fast Inference from
//             Transformers via Speculative Decoding") or by what followed the same words before
//             (Saxena 2023, "Prompt Lookup Decoding") are checked several in a step. A token
//             counts only where it is the one that would have been chosen, by chance or not: the
//             text is the same as without, only sooner.
//
// Threading: submit, cancel, idle and counters from any thread, also during a step; step by one
// thread at a time. Lifetime: move-only; keeps its models and their devices alive. Requests that
// are still running when it is destroyed end without an update.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/session.h"

namespace vkformer {

class BatchState;

struct BatchOptions {
  int rows = 8;      // requests that run together
  int capacity = 0;  // tokens of a row, prompt included; 0: the model's positions, at most 1,024
  // Of an encoder-decoder: tokens of a request's input; 0: as many as the model takes, at most 512
  // of a text.
  int source = 0;
  // Tokens of one step, at least `rows`. What a row computes does not depend on the others, but may
  // depend, in its last bits, on this number, which kernels are chosen by.
  int step_tokens = 16;
  int waiting = 64;           // requests that wait at most
  int waiting_of_client = 0;  // of one client; 0: all
  int running_of_client = 0;  // rows of one client; 0: all
  bool prefix_reuse = true;   // see "Prefixes" above
  int draft_tokens = 4;       // proposed for a row in a step at most, with a draft or lookup
  // A smaller model with the same vocabulary that proposes draft tokens.
  std::optional<Model> draft;
  int lookup = 0;  // tokens at the end of a text that are looked up in it, before a draft is asked
  // Keys that a row keeps and of them the first that stay, as in GenerateOptions.
  std::optional<int> context;
  int sinks = 4;
};

struct BatchRequest {
  // Tokens, at least one: a prompt, or the input of an encoder-decoder. Where the encoder reads a
  // picture: what the text begins with after the decoder's start, and there may be none.
  std::vector<TokenId> prompt;
  // Settings as of Session::generate, with one beam; the context is the batch's. Each sequence
  // has its own row. on_token is called in step().
  GenerateOptions options;
  std::string client;  // that asks: turns are shared out fairly among clients
  // Of a decoder that reads images: the tensors of the images in the prompt, such as pixel_values.
  // They are named and shaped as Session::generate takes them for one prompt (ImagePromptReader
  // makes them). The prompt has an image token for each of their features. Of an encoder that reads
  // pictures: the pixel_values of one. kUnsupported: the model reads none.
  TensorMap inputs = {};
};

// Work done, of a request or in all.
struct BatchWork {
  int64_t steps = 0;          // that had tokens of it
  int64_t prompt_tokens = 0;  // read
  int64_t reused_tokens = 0;  // of prompts, whose keys were there already
  int64_t new_tokens = 0;     // generated
  int64_t draft_tokens = 0;
  int64_t accepted_tokens = 0;  // of the draft tokens
};

// What happened to a request in a step.
struct BatchUpdate {
  uint64_t request = 0;
  size_t sequence = 0;  // of the request's, each of which runs and ends by itself
  enum class State : uint8_t { kRunning, kFinished, kCancelled, kFailed } state = State::kRunning;
  std::vector<TokenId> tokens;  // that came, an end token included
  double score = 0;             // sum of the log-probabilities of all tokens so far
  BatchWork work;               // so far
  Error error;                  // where it failed
};

struct BatchCounters {
  BatchWork work;
  int64_t draft_steps = 0;  // of the smaller model
  // Sequences in the queue; a canceled one counts until a step reports its end.
  int64_t waiting = 0;
  int64_t running = 0;      // requests
  int64_t cache_bytes = 0;  // of keys and values
};

class VKFORMER_API GenerationBatch {
 public:
  // A model that continues tokens, by a decoder with a cache of keys and values.
  static Result<GenerationBatch> create(const Model& model, const BatchOptions& options = {});
  GenerationBatch(GenerationBatch&&) noexcept;
  GenerationBatch& operator=(GenerationBatch&&) noexcept;
  ~GenerationBatch();

  // The model's own settings, but for beams and searches that a batch does not have.
  GenerateOptions generation_defaults() const;
  // The request's number, at least 1. kQueueFull: take steps, then submit it again. A request of
  // more sequences than `waiting` or `waiting_of_client` never fits: kInvalidArgument.
  Result<uint64_t> submit(const BatchRequest& request);
  // Ends a request that waits or runs; the next step tells of it. An error names a number that is
  // neither.
  Status cancel(uint64_t request);
  // Lets requests join, takes one step, and tells what came of it; nothing where nothing is left.
  // After an error of the device the batch is of no more use.
  Result<std::vector<BatchUpdate>> step();
  // Nobody waits, runs or has an update left.
  bool idle() const;
  BatchCounters counters() const;

 private:
  friend struct HandleAccess;
  explicit GenerationBatch(std::unique_ptr<BatchState> impl);
  std::unique_ptr<BatchState> impl_;
};

}  // namespace vkformer
