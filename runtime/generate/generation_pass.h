// One recorded generation for one set of capacities: the encoder once, then a decoding step that is
// resubmitted until no row is live. Position, live rows, scores and ancestry stay on the GPU.
#pragma once

#include <array>
#include <optional>

#include "generate/token_watch.h"
#include "ops/token_candidates.h"
#include "recording/recorded_graph.h"
#include "recording/sliced_work.h"
#include "vkformer/session.h"

namespace vkformer {

// What the recordings are made for; settings of a run are uploaded, not recorded.
struct GenerationKey {
  StepShape shape;
  uint32_t candidates = 1;  // K
  // kScored: logits pass token_scores, and token_sample where there are no beams or these draw.
  enum class Choice : uint8_t { kPlain, kScored, kDrawnBeams } choice = Choice::kPlain;
  uint32_t rule_words = 0;  // of the choice buffer's rules, at most
  // Items that are beam groups of one search, and candidates of an item that its search looks at;
  // 0: all K.
  uint32_t groups = 1;
  uint32_t picks = 0;

  bool operator==(const GenerationKey&) const = default;
  // One row an item: no search, whose hypotheses would have to be kept.
  bool single() const { return shape.beams == 1 && groups == 1; }
};

SearchParams search_params(const ModelFamily& family, const GenerationKey& key);

// A decoding step of the family, with the choice of its tokens.
Status build_generation_step(ModelBuilder& builder, const ModelFamily& family,
                             const GenerationKey& key);

// What one generation starts from.
struct GenerationInputs {
  FeedWords words;  // of the encoder, if there is one
  // Per item the tokens that the generating stack begins with, at least one.
  std::vector<std::vector<int64_t>> prompts;
  // Their places among the items of the call, of which each input has as many as sequences.
  std::vector<size_t> items;

  int64_t longest() const;  // prompt, tokens
};

// What the host does with the tensors that steps and prompts share; the caches are the GPU's own.
HostAccess step_access();

// What comes before the first step, with external tensors in `memory`; nothing where a generation
// begins with a step.
Result<std::optional<RecordedGraph>> record_prompt(const LoadedModel& model, const StepShape& shape,
                                                   PassMemory& memory);

class GenerationPass {
 public:
  static Result<std::unique_ptr<GenerationPass>> create(std::shared_ptr<const LoadedModel> model,
                                                        const GenerationKey& key);
  const GenerationKey& key() const { return key_; }

  // `inputs` fit the key's shape, whose prompt may be shorter than theirs if those are equally
  // long. At most `new_tokens` are generated.
  Result<Generation> run(const GenerationInputs& inputs, const GenerateOptions& options,
                         int64_t new_tokens, int steps_per_submit, GenerationCounters& counters);

  // The same in slices: begin, the slices until none is live, collect.
  Status begin(const GenerationInputs& inputs, const GenerateOptions& options, int64_t new_tokens,
               GenerationCounters& counters);
  // What comes next: all of it, or where the host follows the tokens so many steps, for a grammar
  // one, whose masks are written. Nothing where no step is left.
  Result<SlicedPlan> next_slices(int steps_per_submit);
  // Slots that are still being decoded, of what has run; waits for it, and hands new tokens on.
  Result<uint32_t> live_slots();
  bool followed() const { return watch_.has_value(); }
  // Steps of the whole generation at most.
  int64_t steps() const { return prompt_end_ - key_.shape.prompt + new_tokens_; }
  // Sequences, best first.
  Result<Generation> collect(const GenerationInputs& inputs);

 private:
  GenerationPass(std::shared_ptr<const LoadedModel> model, const GenerationKey& key)
      : model_(std::move(model)), key_(key), memory_(model_->device()) {}
  Status record_step();
  Status prepare(const GenerationInputs& inputs, const GenerateOptions& options,
                 int64_t new_tokens);
  Status feed_prompts(const GenerationInputs& inputs);
  Status prepare_slots(const GenerationInputs& inputs);
  Status prepare_search(const GenerationInputs& inputs);
  Status prepare_settings(const GenerationInputs& inputs, const GenerateOptions& options,
                          int64_t new_tokens);
  // Rows and rules; what is masked at each step follows.
  Status prepare_choice(const GenerationInputs& inputs, const GenerateOptions& options,
                        std::vector<uint32_t> suppress);
  Status decode(int steps_per_submit, GenerationCounters& counters);
  // One step that keeps to a grammar: the masks are computed while its logits are.
  Status masked_step(bool first);
  Status write_masks();
  // Hands new tokens on and ends the items that shall; `position` is the last one with a token.
  Status follow(uint32_t position, uint32_t& live_slots);
  Status check_item(std::span<const uint32_t> search, const GenerationInputs& inputs,
                    size_t item) const;
  Result<std::array<uint32_t, 4>> read_state() const;
  Result<std::vector<uint32_t>> read_search() const;
  int64_t step_workgroups(uint32_t live_slots) const;
  // The group counts of indirect dispatches, and the bytes of the cache.
  void find_sizes();
  // Positions by which item i's prompt ends before the others'.
  int64_t start_of(const GenerationInputs& inputs, size_t item) const;
  // Tokens of item i's prompt that are fed before a step chooses one: all but for what is longer
  // than the recording's prompt, which steps feed one by one.
  size_t fed_at_once(const GenerationInputs& inputs, size_t item) const;

  std::shared_ptr<const LoadedModel> model_;
  GenerationKey key_;
  SearchParams params_{};
  // Of this run: the position of the first generated token, how many there are at most, steps that
  // were not begun, and who follows the tokens.
  int64_t prompt_end_ = 1;
  int64_t new_tokens_ = 0;
  size_t per_input_ = 1;  // items
  int64_t steps_left_ = 0;
  std::optional<TokenWatch> watch_;
  PassMemory memory_;
  std::vector<uint32_t> args_;  // (words): the sizes of the first step, then their table
  // What the host reads after steps: the first words of the state, and the search.
  std::vector<TensorPart> results_;
  int64_t cache_bytes_ = 0;
  std::optional<RecordedGraph> prompt_;  // where there is something to do before the first step
  std::optional<RecordedGraph> step_;
  std::optional<SliceCosts> prompt_costs_;
  std::optional<SliceCosts> step_costs_;
};

}  // namespace vkformer
