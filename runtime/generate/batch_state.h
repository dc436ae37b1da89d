// What a GenerationBatch holds: rows of a cache, the requests that run in them and those that wait.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "generate/draft_model.h"
#include "generate/grammar_text.h"
#include "generate/prompt_reader.h"
#include "generate/request_queue.h"
#include "generate/source_encoder.h"
#include "vkformer/generation_batch.h"

namespace vkformer {

class BatchState {
 public:
  // `back`: tokens that a row can go back at least, beside those of a step, where keys give way to
  // newer ones.
  static Result<std::unique_ptr<BatchState>> create(std::shared_ptr<const LoadedModel> model,
                                                    const BatchOptions& options, int64_t back = 0);

  const std::shared_ptr<const LoadedModel>& model() const { return model_; }
  Result<uint64_t> submit(const BatchRequest& request);
  Status cancel(uint64_t id);
  Result<std::vector<BatchUpdate>> step();
  bool idle() const;
  BatchCounters counters() const;
  // Of all steps so far. By the thread that takes them.
  int64_t submits() const { return pass_->submits() + (draft_ ? draft_->submits() : 0); }

 private:
  // A sequence of a request that waits or runs.
  struct Request {
    explicit Request(RequestChoice own) : choice(std::move(own)) {}
    uint64_t id = 0;  // its own; update.request is that of the request's first sequence
    std::string client;
    RequestChoice choice;
    OnToken on_token;
    std::shared_ptr<GrammarConstraint> constraint;  // or null; touched by step() alone
    std::optional<GrammarText> grammar;             // once it runs
    std::shared_ptr<const EncoderInput> source;     // of an encoder-decoder, until it is encoded
    std::shared_ptr<const PromptInput> input;       // of a prompt that one pass reads
    bool unread = false;                            // whether such a pass is still to come
    std::vector<float> adapters;                    // scales of the model's request adapters
    size_t encoded = 0;          // tokens of it, once that was done and until it is counted
    std::vector<uint32_t> text;  // prompt, then what was generated
    size_t prompt = 0;           // tokens
    size_t most = 0;             // tokens to generate at most
    BatchUpdate update;          // what the next step tells of it
    size_t generated() const { return text.size() - prompt; }
    size_t left() const { return most - generated(); }
  };
  struct Row {
    CachedRow kept;
    std::string source;                   // content that its keys of the encoder are of, or empty
    size_t source_tokens = 0;             // those keys
    std::string content;                  // of the PromptInput that its keys are of; empty: none
    std::vector<float> adapters;          // by which all of its keys were computed
    std::vector<float> written_adapters;  // that the GPU has of it; empty: 0
    uint64_t used = 0;                    // step in which it last ran
    std::unique_ptr<Request> request;
  };
  // What a row does in a step.
  struct Turn {
    uint32_t row = 0;
    size_t begin = 0;  // of its text, in the cache already
    size_t fed = 0;    // tokens of its text
    std::vector<uint32_t> drafts;
    bool reads_all = false;  // so that a token is chosen after the last one
  };
  // A place where a token is chosen, and what became of it.
  struct Place {
    const Request* request = nullptr;
    size_t generated = 0;                // tokens before it
    std::optional<GrammarText> grammar;  // as it stands there
    Status masked;                       // why no token can follow
    ChosenToken chosen;
  };

  BatchState(std::shared_ptr<const LoadedModel> model, const BatchOptions& options);
  Status record(int64_t back);
  // What a request starts with.
  struct Start {
    std::vector<int64_t> prompt;
    std::shared_ptr<const EncoderInput> source;  // of an encoder-decoder
    std::shared_ptr<const PromptInput> input;    // of a prompt that one pass reads
  };
  Result<Start> read_start(const BatchRequest& given) const;
  // One for each of its sequences.
  Result<std::vector<std::unique_ptr<Request>>> read_request(const BatchRequest& given) const;

  // The parts of a step.
  void end_cancelled(std::vector<BatchUpdate>& updates);
  void let_join();
  // The free row that has most of the text, or else was not used for longest.
  Row& best_row(const Request& request, size_t& shared);
  // Hands the GPU the scales of rows that have got others.
  Status write_adapters();
  Status encode_sources();
  // How many tokens of a request's prompt a row holds the keys of.
  size_t shared_prefix(const Row& row, const Request& request) const;
  // Encodes for a row what its request has, in a pass that is prepared.
  Status encode(uint32_t row);
  // Reads a prompt or a picture that takes a pass, one at most: a running row waits for one such
  // pass a step. What cannot be read ends its request.
  Status read_one_prompt(std::vector<BatchUpdate>& updates);
  std::vector<Turn> share_slots() const;
  Status add_drafts(std::vector<Turn>& turns);
  // Omits the draft tokens from the first on that a grammar does not allow.
  static void trim_drafts(const Request& request, std::vector<uint32_t>& drafts);
  // Feeds a turn's draft tokens after its last token, and says how a token is chosen after each.
  void choose_after(const Turn& turn, std::vector<FedToken>& fed, std::vector<SlotChoice>& choices,
                    std::vector<Place>& places) const;
  // Where tokens were chosen, turn by turn.
  Result<std::vector<Place>> run(const std::vector<Turn>& turns);
  Status take_step(std::vector<Turn>& turns, std::vector<BatchWork>& gained);
  // Takes what was chosen after a turn's tokens, as far as its draft tokens were right.
  BatchWork take_tokens(const Turn& turn, std::span<const Place> places);
  // Takes one; false where nothing comes after it.
  static bool take_token(Request& request, const Place& place, BatchWork& gained);
  // The grammar after a token.
  static Status accept(const Request& request, size_t generated, uint32_t token,
                       GrammarText& grammar);
  static Status add_token(Request& request, uint32_t token, double log_probability,
                          BatchWork& gained);
  // Hands the last token on.
  static void follow(Request& request, double log_probability);
  void tell(const std::vector<Turn>& turns, const std::vector<BatchWork>& gained,
            std::vector<BatchUpdate>& updates);
  void leave(Row& row, std::vector<BatchUpdate>& updates);

  std::shared_ptr<const LoadedModel> model_;
  const BatchOptions options_;
  std::unique_ptr<SlotPass> pass_;
  std::optional<SourceEncoder> encoder_;  // of pass_
  std::optional<PromptReader> reader_;    // of pass_, where prompts may take a pass
  std::unique_ptr<DraftModel> draft_;
  std::vector<Row> rows_;         // touched by step() alone, as what follows
  std::vector<uint32_t> joined_;  // rows that run, in the order in which their requests joined
  uint64_t steps_ = 0;

  std::atomic<bool> stepping_ = false;
  mutable std::mutex lock_;  // of all that follows
  uint64_t next_id_ = 1;
  RequestQueue queue_;
  std::map<uint64_t, std::unique_ptr<Request>> waiting_;
  std::map<uint64_t, uint64_t> running_;  // and the number of the request that each belongs to
  std::set<uint64_t> cancelled_;
  std::vector<BatchUpdate> untold_;  // of requests that ended while they waited
  BatchCounters counters_;
};

}  // namespace vkformer
