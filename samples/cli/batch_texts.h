// Texts through a GenerationBatch: requests as JSON objects in, events as JSON objects out. Used by
// serve, and by generate where tokens are guessed.
#pragma once

#include <map>

#include "command_line.h"
#include "vkformer/generation_batch.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

struct BatchFlags {
  std::string model;
  std::string draft;  // model directory; empty: none
  bool forget = false;
  BatchOptions batch;
  ModelOptions load;
};

// --draft, --lookup, --guesses, --capacity.
void add_guess_options(CLI::App& command, BatchFlags& flags);
// --rows, --step-tokens, --waiting and the rest of a batch.
void add_batch_options(CLI::App& command, BatchFlags& flags);

class BatchTexts {
 public:
  // Without tokenizer.json, requests give ids and get ids.
  static Result<BatchTexts> open(const CommonOptions& common, const Device& device,
                                 const BatchFlags& flags);

  // A request: "id" (a text or a number, of no other request that is still there), "text" or
  // "ids", and settings of its own (docs/cli.md). kOutOfMemory: the queue is full.
  Status submit(const Json& fields);
  // Ends the request of that id.
  Status cancel(const Json& id);
  // One step, as events: text that came, and ends.
  Result<std::vector<Json>> step();
  bool idle() const { return batch_.idle(); }
  // Runs requests, which need no ids, until all have ended: of each what its end tells. Nothing
  // else may be running.
  Result<std::vector<Json>> answer(const std::vector<Json>& requests);
  // All work so far, as an event.
  Json work() const;

 private:
  // What came of a request so far.
  struct Story {
    Json id;
    std::optional<DecodeStream> stream;
    std::string text;
    std::vector<int64_t> ids;
  };

  BatchTexts(GenerationBatch batch, std::shared_ptr<const Tokenizer> tokenizer, int64_t capacity)
      : batch_(std::move(batch)), tokenizer_(std::move(tokenizer)), capacity_(capacity) {}
  // New tokens where a request does not say how many: what the model's own settings say, or 256,
  // as far as a row has room.
  int usual_tokens(size_t prompt) const;
  Result<std::vector<int64_t>> prompt_of(const Json& fields) const;
  Result<std::optional<DecodeStream>> stream_behind(const std::vector<int64_t>& prompt) const;
  // Text of the update's tokens, or with the last one all that is left of it.
  Result<std::string> text_of(Story& story, const BatchUpdate& update) const;

  GenerationBatch batch_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // null: none
  int64_t capacity_ = 0;                        // tokens of a row
  std::map<uint64_t, Story> stories_;
};

}  // namespace vkformer::cli
