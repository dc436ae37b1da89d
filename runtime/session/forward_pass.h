// One recorded full pass for one shape: feed, run, read back.
#pragma once

#include "session/attention_request.h"
#include "session/external_buffers.h"
#include "session/forward_inputs.h"
#include "vkformer/session.h"

namespace vkformer {

// What a recording is made for.
struct ForwardKey {
  ForwardShape shape;
  ForwardTaps taps;
  AttentionRequest attention;

  bool operator==(const ForwardKey&) const = default;
};

class ForwardPass {
 public:
  static Result<std::unique_ptr<ForwardPass>> create(std::shared_ptr<const LoadedModel> model,
                                                     const ForwardKey& key,
                                                     RecordingInputs::Profile profile);
  const ForwardKey& key() const { return key_; }

  // `words` has every feed of the graph. Returns every output of the graph.
  Result<TensorMap> run(const FeedWords& words);
  std::vector<DispatchTime> profile() const;

 private:
  ForwardPass(std::shared_ptr<const LoadedModel> model, const ForwardKey& key)
      : model_(std::move(model)), key_(key) {}

  std::shared_ptr<const LoadedModel> model_;
  ForwardKey key_;
  Graph graph_;
  std::vector<HostFeed> feeds_;
  std::vector<TensorId> outputs_;
  Plan plan_;
  ExternalBuffers buffers_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace vkformer
