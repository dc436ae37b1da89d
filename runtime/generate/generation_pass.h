// A search that the GPU feeds itself: greedy, beams, sampling. The prompt once, then a step that is
// submitted again until no row is live; position, live rows, scores and ancestry stay on the GPU.
#pragma once

#include <array>
#include <optional>

#include "generate/decode_step.h"
#include "generate/token_watch.h"

namespace vkformer {

class GenerationPass {
 public:
  // The step ends with a search, and has a prompt.
  explicit GenerationPass(std::shared_ptr<DecodeStep> step);

  // `inputs` fit the key's shape, whose prompt may be shorter than theirs if those are equally
  // long. At most `new_tokens` are generated.
  Result<Generation> run(const GenerationInputs& inputs, const GenerateOptions& options,
                         int64_t new_tokens, int steps_per_submit, GenerationCounters& counters);

  // The same in slices: begin, the slices until none is live, collect.
  Status begin(const GenerationInputs& inputs, const GenerateOptions& options, int64_t new_tokens,
               GenerationCounters& counters);
  // What comes next: all of it, or `steps_per_submit` steps where the host follows the tokens. With
  // a grammar it is one step, whose masks are written. Nothing where no step is left.
  Result<SlicedPlan> next_slices(int steps_per_submit);
  // Slots that are still being decoded, of what has run; waits for it, and hands new tokens on.
  Result<uint32_t> live_slots();
  bool followed() const { return watch_.has_value(); }
  // Steps of the whole generation at most.
  int64_t steps() const { return prompt_end_ - step_->shape().prompt + new_tokens_; }
  // Sequences, best first.
  Result<Generation> collect(const GenerationInputs& inputs);

 private:
  Status prepare(const GenerationInputs& inputs, const GenerateOptions& options,
                 int64_t new_tokens);
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
  // Positions by which item i's prompt ends before the others'.
  int64_t start_of(const GenerationInputs& inputs, size_t item) const;

  std::shared_ptr<DecodeStep> step_;
  SearchParams params_;
  // What the host reads after steps: the first words of the state, and the search.
  std::vector<TensorPart> results_;
  // Of this run: the position of the first generated token, how many there are at most, and steps
  // that were not begun. It also says who follows the tokens.
  int64_t prompt_end_ = 1;
  int64_t new_tokens_ = 0;
  size_t per_input_ = 1;  // items
  int64_t steps_left_ = 0;
  std::optional<TokenWatch> watch_;
};

}  // namespace vkformer
