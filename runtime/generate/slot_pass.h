// Steps that the host feeds: every slot has a token at any position of any row of the cache. So one
// step takes the next token of some rows, a stretch of another row's prompt, and draft tokens. Each
// gets the bits it would have got alone: all run through the same kernels, whose sums depend on the
// slot's own position.
#pragma once

#include <functional>

#include "generate/decode_step.h"
#include "params/sampling.h"

namespace vkformer {

// Words of a slot's list of rules at most.
inline constexpr uint32_t kSlotRuleWords = 4096;

// How the token after a fed one is chosen.
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

  // Feeds at most shape.slots tokens and chooses what comes after the first of them, one for each
  // of `choices`. `complete` may still change the choices meanwhile, which costs a submit more. A
  // NaN among a slot's logits is its log-probability; where no token may be chosen, the token is
  // VKF_NO_TOKEN.
  Result<std::vector<ChosenToken>> run(std::span<const FedToken> fed, std::span<SlotChoice> choices,
                                       const CompleteChoices& complete = {});
  // A row of the cache has these scales of the model's request adapters from now on.
  Status write_adapters(uint32_t row, std::span<const float> scales) {
    return step_->write_adapters(row, 1, scales);
  }
  // The step's external tensors.
  GroupMemory& memory() { return step_->memory(); }

  const StepShape& shape() const { return step_->shape(); }
  uint32_t vocab() const { return params_.vocab; }
  // How far back its rows can be taken.
  CacheReach reach() const { return step_->reach(); }
  int64_t cache_bytes() const { return step_->cache_bytes(); }
  int64_t submits() const { return step_->memory().submits(); }

 private:
  explicit SlotPass(std::unique_ptr<DecodeStep> step);
  Status write_constants();
  Status write_choices(std::span<const FedToken> fed, std::span<const SlotChoice> choices);
  Status write_settings(std::span<const SlotChoice> choices);
  // What comes after the cut, which nothing in flight reads while a step's layers run.
  Status write_choice_words(const std::string& name, uint64_t word,
                            std::span<const uint32_t> values);

  std::unique_ptr<DecodeStep> step_;
  SearchParams params_;
  // By slot: the rules that are on the GPU.
  std::vector<std::shared_ptr<const std::vector<uint32_t>>> rules_;
};

}  // namespace vkformer
