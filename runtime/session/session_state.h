// What a Session holds: its model and small caches of recorded passes, least recently used last.
#pragma once

#include <list>

#include "session/forward_pass.h"
#include "session/generation_pass.h"

namespace vkformer {

class SessionState {
 public:
  static Result<std::unique_ptr<SessionState>> create(std::shared_ptr<const LoadedModel> model,
                                                      const SessionOptions& options);

  Result<TensorMap> run(const TensorMap& inputs, const RunOptions& options);
  GenerateOptions generation_defaults() const;
  Result<Generation> generate(const TensorMap& inputs, const GenerateOptions& options);
  const GenerationCounters& counters() const { return counters_; }
  std::vector<DispatchTime> last_profile() const;

 private:
  SessionState(std::shared_ptr<const LoadedModel> model, const SessionOptions& options)
      : model_(std::move(model)), options_(options) {}
  Result<ForwardPass*> forward_pass(const ForwardKey& key);
  Result<GenerationPass*> generation_pass(const GenerationKey& key);
  Status check_generate(const GenerateOptions& options) const;
  // Prompts and the encoder's input of a generation, and the sizes they ask for.
  Result<GenerationInputs> read_generation_inputs(const TensorMap& inputs,
                                                  const GenerateOptions& options,
                                                  StepShape& shape) const;
  Result<Generation> generate_together(const GenerationInputs& read, GenerationKey key,
                                       const GenerateOptions& options);
  // For decoders whose prompts are exact: rows of different lengths run apart, so that a row is
  // generated as it is alone.
  Result<Generation> generate_by_length(const GenerationInputs& read, const GenerationKey& key,
                                        const GenerateOptions& options);

  std::shared_ptr<const LoadedModel> model_;
  SessionOptions options_;
  std::list<std::unique_ptr<ForwardPass>> forward_;
  std::list<std::unique_ptr<GenerationPass>> generation_;
  GenerationCounters counters_;
};

}  // namespace vkformer
