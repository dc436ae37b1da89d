// One recorded full pass for one shape: feed, run, read back.
#pragma once

#include <optional>

#include "recording/external_buffers.h"
#include "recording/forward_inputs.h"
#include "recording/sliced_work.h"
#include "session/attention_request.h"
#include "vkformer/session.h"

namespace vkformer {

// What a recording is made for.
struct ForwardKey {
  ForwardShape shape;
  ForwardTaps taps;
  AttentionRequest attention;
  std::map<std::string, TensorPlace> places;  // tensors in buffers of the application

  bool operator==(const ForwardKey&) const = default;
};

// A tensor that a pass reads or writes, and where it lies.
struct PassTensor {
  TensorDesc desc;
  BufferSpan span;
};

class ForwardPass {
 public:
  static Result<std::unique_ptr<ForwardPass>> create(std::shared_ptr<const LoadedModel> model,
                                                     const ForwardKey& key,
                                                     RecordingInputs::Profile profile);
  const ForwardKey& key() const { return key_; }

  // `words` has every feed of the graph. Returns every output of the graph, but for those that the
  // application placed.
  Result<TensorMap> run(const FeedWords& words);
  std::vector<DispatchTime> profile() const;

  // The same in slices: what to write first, what to run, and the outputs afterwards.
  Result<std::vector<SliceWrite>> writes(const FeedWords& words) const {
    return buffers_.feed_writes(graph_, feeds_, words);
  }
  SlicedUnit unit() { return {recording_.get(), &*costs_, 1}; }
  Result<TensorMap> read_outputs(const FeedWords& words);
  // External tensors by name, with their place in our memory or the application's.
  std::map<std::string, PassTensor> tensors() const;

 private:
  ForwardPass(std::shared_ptr<const LoadedModel> model, const ForwardKey& key)
      : model_(std::move(model)), key_(key) {}

  std::shared_ptr<const LoadedModel> model_;
  ForwardKey key_;
  Graph graph_;
  std::vector<HostFeed> feeds_;
  std::vector<TensorId> outputs_;
  ExternalBuffers buffers_;
  std::unique_ptr<Recording> recording_;
  std::optional<SliceCosts> costs_;
};

}  // namespace vkformer
