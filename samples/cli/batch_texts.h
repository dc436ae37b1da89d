// Texts through a GenerationBatch: requests as JSON objects in, events as JSON objects out. Used by
// serve, and by generate with draft tokens.
#pragma once

#include <map>
#include <memory>

#include "command_line.h"
#include "picture_prompts.h"
#include "request_pictures.h"
#include "vkformer/generation_batch.h"
#include "vkformer/grammar.h"
#include "vkformer/image_prompt_reader.h"
#include "vkformer/stop_strings.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

struct BatchFlags {
  std::string model;
  std::string draft;  // model directory; empty: none
  bool forget = false;
  int64_t room = 0;        // tokens that a row should have where --capacity does not say
  PictureLimits pictures;  // of a request
  BatchOptions batch;
  ModelOptions load;
};

// --draft, --prompt-lookup, --draft-tokens, --capacity.
void add_draft_options(CLI::App& command, CommandLine& line, BatchFlags& flags);
// --slots, --step-tokens, --max-queue and the rest of a batch and of what a request may have.
void add_batch_options(CLI::App& command, BatchFlags& flags);

class BatchTexts {
 public:
  // Without tokenizer.json, requests give ids and get ids.
  static Result<BatchTexts> open(const CommonOptions& common, const Device& device,
                                 const BatchFlags& flags);

  // A request: "id" (a text or a number, of no other request that is still there), "text", "ids" or
  // "messages", and settings (docs/cli.md). kQueueFull: in all, or of its client.
  Status submit(const Json& fields);
  // Whether the queue in all has room for the sequences of a request. Precondition: submit() found
  // its fields valid.
  bool has_room(const Json& fields) const;
  // Ends the request of that id.
  Status cancel(const Json& id);
  // One step, as events: text that came, and ends.
  Result<std::vector<Json>> step();
  bool idle() const { return batch_.idle(); }
  // Whether texts go on from their prompts.
  bool reads_on() const { return !encoder_; }
  // Beams of the model's own settings, which a batch does not have.
  int usual_beams() const { return beams_; }
  // Told of an event of answer(); kEnd ends its text there.
  using OnPiece = std::function<TokenVerdict(const Json& event)>;
  // Runs requests, which need no ids, until all have ended: of each, and of its sequences, what
  // their ends tell. Nothing else may be running. After an error none of them is there any more.
  Result<std::vector<std::vector<Json>>> answer(const std::vector<Json>& requests,
                                                const OnPiece& on_piece = {});
  // All work so far, as an event.
  Json work() const;

 private:
  // What came of a sequence so far.
  struct Line {
    StopStrings stops;
    std::optional<DecodeStream> stream = {};
    std::string piece = {};  // that nobody was told yet
    std::string text = {};
    std::vector<TokenId> ids = {};
    std::vector<double> log_probabilities = {};
  };
  struct Story {
    Json id;
    std::vector<Line> lines;         // by sequence
    std::optional<Error> error;      // of its texts
    size_t ended = 0;                // sequences
    bool log_probabilities = false;  // whether they were asked for
    TokenVerdict take(const NewToken& token);
  };

  BatchTexts(GenerationBatch batch, std::shared_ptr<const Tokenizer> tokenizer, int64_t capacity)
      : batch_(std::move(batch)), tokenizer_(std::move(tokenizer)), capacity_(capacity) {}
  // New tokens where a request does not say how many: what the model's own settings say, or 256,
  // as far as a row has room.
  int usual_tokens(size_t prompt) const;
  // What a model reads chat messages and images by; nothing where it has no template, or reads
  // none.
  Status open_chat(const Model& model, const std::string& directory);
  // Ids, and the tensors of images.
  Result<ImagePromptInputs> prompt_of(const Json& fields) const;
  Result<ImagePromptInputs> prompt_of_messages(const Json& given) const;
  Result<ImagePromptInputs> prompt_with_pictures(const std::string& text, const Json& urls) const;
  Result<ImagePromptInputs> prompt_to_describe(const Json& fields) const;
  Result<ImagePromptInputs> encoded(const std::string& text, SpecialTokens special_tokens) const;
  // Tokens of a row that precede what is generated.
  size_t begun(const std::vector<TokenId>& prompt) const;
  Result<Line> line_behind(const std::vector<TokenId>& prompt, StopStrings stops) const;
  Status read_grammar(const Json& fields, GenerateOptions& options);
  Status check_id(const Json& fields) const;
  Result<std::shared_ptr<Story>> read(const Json& fields, BatchRequest& request);
  static Status finish(Line& line);
  int64_t wanted_tokens(const std::vector<TokenId>& prompt) const;
  Status submit_as(size_t id, Json fields);
  Result<std::vector<std::vector<Json>>> run_requests(const std::vector<Json>& requests,
                                                      const OnPiece& on_piece);
  // Ends all that waits or runs.
  void abandon();

  GenerationBatch batch_;
  std::shared_ptr<const Tokenizer> tokenizer_;    // null: none
  std::optional<Result<ChatTemplate>> template_;  // or why it cannot be read; none: there is none
  std::optional<Result<ImagePromptReader>> images_;  // the same of images
  std::optional<PicturePrompts> prompts_;            // of images_
  PictureLimits limits_;
  int64_t capacity_ = 0;      // tokens of a row
  int64_t most_waiting_ = 0;  // sequences in the queue
  int64_t positions_ = 0;     // of the model
  bool encoder_ = false;      // there is an encoder, which reads the input of a request
  bool describes_ = false;    // that input is a picture, and the prompt begins its description
  int64_t vocab_ = 0;         // tokens
  int beams_ = 1;             // of the model's own settings
  std::optional<GrammarVocabulary> vocabulary_;
  std::string constraint_text_;  // what the last constraint was made of
  std::shared_ptr<GrammarConstraint> constraint_;
  std::map<uint64_t, std::shared_ptr<Story>> stories_;
};

}  // namespace vkformer::cli
