// A recorded decoding step over slots: every slot feeds one token, at any position of any row of
// the cache. So one step takes the next token of some rows, a stretch of another row's prompt, and
// tokens that were only guessed, and each gets the bits it would have got alone: all run through
// the same kernels, whose sums depend on the sizes recorded and on the slot's own position.
#pragma once

#include <functional>
#include <span>

#include "ops/token_candidates.h"
#include "params/sampling.h"
#include "recording/recorded_graph.h"

namespace vkformer {

// A token that a slot feeds. Keys of the row up to this position lie in the cache, or are fed in
// the same step.
struct FedToken {
  uint32_t row = 0;       // of the cache
  uint32_t position = 0;  // in the row
  uint32_t token = 0;
};

// Words of a slot's list of rules at most.
inline constexpr uint32_t kSlotRuleWords = 4096;

// How the token behind a fed one is chosen.
struct SlotChoice {
  ChoiceRow settings{};
  // Bits of the tokens that may be chosen, (ceil(V/32)) words; empty: all.
  std::vector<uint32_t> allowed;
  // Tokens of the row up to the fed one; empty where no setting looks at them.
  std::vector<uint32_t> history;
  // A list as params/sampling.h has it, at most kSlotRuleWords; null: none. It stays as it is: a
  // slot that goes on with the same one does not upload it again.
  std::shared_ptr<const std::vector<uint32_t>> rules;
};

// Completes choices while the GPU is at the layers before them: masks of grammars.
using CompleteChoices = std::function<Status(std::span<SlotChoice> choices)>;

struct ChosenToken {
  uint32_t token = 0;
  float log_probability = 0;  // by the logits alone
};

class SlotPass {
 public:
  // `shape`: rows, capacity, slots, what of the context is kept, and keys of an encoder.
  static Result<std::unique_ptr<SlotPass>> create(std::shared_ptr<const LoadedModel> model,
                                                  const StepShape& shape);

  // Feeds at most shape.slots tokens and chooses what comes behind the first of them, one for
  // each of `choices`, which `complete` may still change in their course; it costs a submit more. A
  // NaN among a slot's logits is its log-probability; where no token may be chosen, the token is
  // VKF_NO_TOKEN.
  Result<std::vector<ChosenToken>> run(std::span<const FedToken> fed, std::span<SlotChoice> choices,
                                       const CompleteChoices& complete = {});
  // The step's external tensors.
  PassMemory& memory() { return memory_; }

  const StepShape& shape() const { return shape_; }
  uint32_t vocab() const { return params_.vocab; }
  // Lines that every layer's cache has for a row at least.
  int64_t least_lines() const { return least_lines_; }
  int64_t cache_bytes() const { return cache_bytes_; }
  int64_t submits() const { return memory_.submits(); }

 private:
  SlotPass(std::shared_ptr<const LoadedModel> model, const StepShape& shape);
  Status record();
  // Which dispatches the GPU runs for every fed token, and which for those alone that a token is
  // chosen behind: all that comes after the last keys and values are in the cache.
  void find_commands();
  Status write_constants();
  Status write_tokens(std::span<const FedToken> fed, size_t chosen);
  Status write_choices(std::span<const FedToken> fed, std::span<const SlotChoice> choices);
  Status write_settings(std::span<const SlotChoice> choices);
  // What comes after the cut, which nothing in flight reads while a step's layers run.
  Status write_choice_words(const std::string& name, uint64_t word,
                            std::span<const uint32_t> values);

  struct Command {
    std::array<uint32_t, 3> groups = {1, 1, 1};
    uint32_t axis = 0;
    uint32_t slots_per_group = 1;
    bool for_all = true;
  };

  std::shared_ptr<const LoadedModel> model_;
  StepShape shape_;
  SearchParams params_{};
  PassMemory memory_;
  std::vector<Command> commands_;
  // By slot: the rules that lie on the GPU.
  std::vector<std::shared_ptr<const std::vector<uint32_t>>> rules_;
  std::optional<RecordedGraph> step_;
  int64_t least_lines_ = 0;
  int64_t cache_bytes_ = 0;
};

}  // namespace vkformer
