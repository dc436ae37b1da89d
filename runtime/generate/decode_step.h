// The decode engine. It has a recorded step of slots, each a token at any position of any row of
// the cache. It also has the recorded pass over prompts before it. Every way to generate submits
// these two; schedulers (GenerationPass, SlotPass, contrastive_search) differ in what feeds the
// next step and what reads the choice.
#pragma once

#include <memory>
#include <span>

#include "generate/cached_row.h"
#include "generate/prompt_pass.h"
#include "recording/preparation.h"
#include "recording/sliced_work.h"
#include "recording/staged_graph.h"

namespace vkformer {

// A token that a slot feeds. Keys of the row up to this position are in the cache, or are fed in
// the same step.
struct FedToken {
  uint32_t row = 0;       // of the cache
  uint32_t position = 0;  // in the row
  uint32_t token = 0;
};

class DecodeStep : public Preparation {
 public:
  // Whether the prompt's pass is recorded as well.
  enum class Prompt : uint8_t { kNo, kYes };
  // To be prepared before all else.
  DecodeStep(std::shared_ptr<const LoadedModel> model, const GenerationKey& key, Prompt prompt);
  // Prepared.
  static Result<std::unique_ptr<DecodeStep>> create(std::shared_ptr<const LoadedModel> model,
                                                    const GenerationKey& key, Prompt prompt);
  DecodeStep(const DecodeStep&) = delete;
  DecodeStep& operator=(const DecodeStep&) = delete;

  const LoadedModel& model() const { return *model_; }
  const GenerationKey& key() const { return key_; }
  const StepShape& shape() const { return key_.shape; }
  const SearchParams& params() const { return params_; }  // of the choice
  GroupMemory& memory() { return memory_; }

  Status plan() override;
  std::vector<const Plan*> plans() const override;
  Status record() override;
  Status finish() override;

  // Feeds the prompt's pass; without one there is nothing to feed. Of a prompt in parts
  // (GenerationKey::part) the tokens are taken, which `submit` feeds part by part.
  Status write_prompts(const GenerationInputs& inputs);
  // Feeds the next step, whose slots are of `items` items and count their positions back from
  // `position`, which none exceeds.
  Status write_slots(std::span<const FedToken> fed, uint32_t items, uint32_t position);
  // Rows [first, first + count) of the cache have these scales of the model's request adapters.
  Status write_adapters(uint32_t first, uint32_t count, std::span<const float> scales);
  // Of the cache.
  uint32_t rows() const;
  // Sizes the dispatches of the next step for `fed` slots, and those after its last keys and
  // values for the first `chosen` of them.
  Status write_groups(uint32_t fed, uint32_t chosen);
  // The same for all rows, with the table by which the GPU sizes the steps that it feeds itself.
  Status write_groups_and_table();

  // Submits the prompt's pass where `prompt` says so and there is one, then `part` of the step
  // `times` times. `reads` can be read after a wait.
  Status submit(Prompt prompt, RecordingPart part, int64_t times,
                std::span<const TensorPart> reads);
  // The same in slices: appends what there is of the prompt, then `times` whole steps.
  void add_units(Prompt prompt, int64_t times, SlicedPlan& plan);

  // What `submit` did of prompts in parts so far.
  struct PromptParts {
    int64_t parts = 0;
    int64_t rounds = 0;  // StagedGraph::submit_parts
  };
  const PromptParts& prompt_parts() const { return prompt_parts_; }

  // Workgroups of a step of `live_slots` live slots.
  int64_t workgroups(uint32_t live_slots) const;
  int64_t cache_bytes() const { return cache_bytes_; }
  // How far back a row of its caches and states can be taken.
  CacheReach reach() const;

 private:
  // A dispatch whose groups along one axis depend on the number of slots.
  struct Sized {
    std::array<uint32_t, 3> groups = {1, 1, 1};
    uint32_t axis = 0;
    uint32_t slots_per_group = 1;
    bool for_all = true;  // false: only slots that a token is chosen for
  };
  using StageSizes = std::vector<Sized>;
  static StageSizes sizes_of(const StagedGraph::Stage& stage);
  void find_sizes();
  static std::vector<uint32_t> group_counts(const StageSizes& sizes, uint32_t fed, uint32_t chosen);
  // Of a model that is split: step by step, for each member is told how many rows are still live.
  Status submit_stages(Prompt prompt, RecordingPart part, int64_t times,
                       std::span<const TensorPart> reads);
  Status submit_parts();

  std::shared_ptr<const LoadedModel> model_;
  GenerationKey key_;
  Prompt wants_prompt_;
  SearchParams params_{};
  GroupMemory memory_;
  std::vector<PlannedStage> planned_prompt_, planned_step_;  // from plan to record
  std::optional<StagedGraph> prompt_;  // where there is something to do before the first step
  std::optional<StagedGraph> step_;
  std::vector<StageSizes> sized_;        // by stage of the step
  std::vector<StageSizes> part_sizes_;   // by stage of a part of a prompt
  std::vector<FedToken> prompt_tokens_;  // of prompts in parts
  PromptParts prompt_parts_;
  std::vector<std::vector<uint32_t>> first_args_;  // of write_groups_and_table, once it was called
  std::optional<SliceCosts> prompt_costs_, step_costs_;
  int64_t cache_bytes_ = 0;
  int64_t least_lines_ = 0;  // positions that the cache of every layer has for a row at least
};

}  // namespace vkformer
