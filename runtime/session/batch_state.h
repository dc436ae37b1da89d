// What a GenerationBatch holds: rows of a cache, the requests that run in them and those that wait.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "session/draft_model.h"
#include "session/request_queue.h"
#include "vkformer/generation_batch.h"

namespace vkformer {

class BatchState {
 public:
  static Result<std::unique_ptr<BatchState>> create(std::shared_ptr<const LoadedModel> model,
                                                    const BatchOptions& options);

  const std::shared_ptr<const LoadedModel>& model() const { return model_; }
  Result<uint64_t> submit(const BatchRequest& request);
  Status cancel(uint64_t id);
  Result<std::vector<BatchUpdate>> step();
  bool idle() const;
  BatchCounters counters() const;

 private:
  // A request that waits or runs.
  struct Request {
    uint64_t id = 0;
    std::string client;
    RequestChoice choice;
    std::vector<uint32_t> text;  // prompt, then what was generated
    size_t prompt = 0;           // tokens
    size_t most = 0;             // tokens to generate at most
    BatchUpdate update;          // what the next step tells of it
    size_t generated() const { return text.size() - prompt; }
    size_t left() const { return most - generated(); }
  };
  struct Row {
    KeptRow kept;
    uint64_t used = 0;  // step in which it last ran
    std::unique_ptr<Request> request;
  };
  // What a row does in a step.
  struct Turn {
    uint32_t row = 0;
    size_t begin = 0;  // of its text, in the cache already
    size_t fed = 0;    // tokens of its text
    std::vector<uint32_t> guesses;
    bool reads_all = false;  // so that a token is chosen behind the last one
  };

  BatchState(std::shared_ptr<const LoadedModel> model, const BatchOptions& options);
  Status record();
  Result<std::unique_ptr<Request>> read_request(const BatchRequest& request) const;

  // The parts of a step (batch_step.cpp).
  void end_cancelled(std::vector<BatchUpdate>& updates);
  void let_join();
  // The free row that has most of the text, or else was not used for longest.
  Row& best_row(std::span<const uint32_t> text, size_t& shared);
  std::vector<Turn> share_slots() const;
  Status add_guesses(std::vector<Turn>& turns);
  // The tokens that were chosen, turn by turn.
  Result<std::vector<ChosenToken>> run(const std::vector<Turn>& turns);
  Status take_step(std::vector<Turn>& turns, std::vector<BatchWork>& gained);
  // Takes what was chosen behind a turn's tokens, as far as its guesses were right.
  BatchWork take_tokens(const Turn& turn, std::span<const ChosenToken> chosen);
  // Takes one; false where nothing comes behind it.
  bool take_token(Request& request, const ChosenToken& chosen, BatchWork& gained);
  void tell(const std::vector<Turn>& turns, const std::vector<BatchWork>& gained,
            std::vector<BatchUpdate>& updates);
  void leave(Row& row, std::vector<BatchUpdate>& updates);

  std::shared_ptr<const LoadedModel> model_;
  BatchOptions options_;
  std::unique_ptr<SlotPass> pass_;
  std::unique_ptr<DraftModel> draft_;
  std::vector<Row> rows_;         // touched by step() alone, as what follows
  std::vector<uint32_t> joined_;  // rows that run, in the order in which their requests joined
  uint64_t steps_ = 0;

  std::atomic<bool> stepping_ = false;
  mutable std::mutex lock_;  // of all that follows
  uint64_t next_id_ = 1;
  RequestQueue queue_;
  std::map<uint64_t, std::unique_ptr<Request>> waiting_;
  std::set<uint64_t> running_;
  std::set<uint64_t> cancelled_;
  std::vector<BatchUpdate> untold_;  // of requests that ended while they waited
  BatchCounters counters_;
};

}  // namespace vkformer
