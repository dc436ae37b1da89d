// One recorded generation for one set of capacities: the encoder once, then a decoding step that is
// resubmitted until no row is live. Position, live rows, scores and ancestry stay on the GPU.
#pragma once

#include "ops/token_candidates.h"
#include "session/external_buffers.h"
#include "session/token_rows.h"
#include "vkformer/session.h"

namespace vkformer {

// What the recordings are made for; settings of a run are uploaded, not recorded.
struct GenerationKey {
  StepShape shape;
  uint32_t candidates = 1;  // K

  bool operator==(const GenerationKey& other) const {
    return shape.batch == other.shape.batch && shape.beams == other.shape.beams &&
           shape.source == other.shape.source && shape.capacity == other.shape.capacity &&
           candidates == other.candidates;
  }
};

class GenerationPass {
 public:
  static Result<std::unique_ptr<GenerationPass>> create(std::shared_ptr<const LoadedModel> model,
                                                        const GenerationKey& key);
  const GenerationKey& key() const { return key_; }

  // `source` has the key's batch and source sizes. `max_length` counts the start token.
  Result<Generation> run(const TokenRows& source, const GenerateOptions& options,
                         int64_t max_length, int steps_per_submit, GenerationCounters& counters);

 private:
  GenerationPass(std::shared_ptr<const LoadedModel> model, const GenerationKey& key)
      : model_(std::move(model)), key_(key) {}
  Status record_encode();
  Status record_step();
  Status prepare(const TokenRows& source, const GenerateOptions& options, int64_t max_length);
  Status prepare_search(const GenerateOptions& options);
  Status prepare_settings(const GenerateOptions& options, int64_t max_length);
  Status decode(int64_t max_steps, int steps_per_submit, GenerationCounters& counters);
  int64_t step_workgroups(uint32_t live_slots) const;
  Result<Generation> collect(const GenerateOptions& options);

  std::shared_ptr<const LoadedModel> model_;
  GenerationKey key_;
  SearchParams params_{};
  Plan step_plan_;
  ExternalBuffers buffers_;
  std::unique_ptr<Recording> encode_;
  std::unique_ptr<Recording> step_;
};

}  // namespace vkformer
