// One recorded full pass for one shape: feed, run, read back.
#pragma once

#include <optional>

#include "recording/forward_inputs.h"
#include "recording/preparation.h"
#include "recording/sliced_work.h"
#include "recording/staged_graph.h"
#include "session/attention_request.h"
#include "session/rounded_lengths.h"
#include "vkformer/session.h"

namespace vkformer {

// What a recording is made for.
struct ForwardKey {
  ForwardShape shape;
  ForwardTaps taps;
  AttentionRequest attention;
  std::map<std::string, TensorPlace> places;  // tensors in buffers of the application
  // kSecond: of ModelFacts::Passes::kTwo.
  enum class Pass : uint8_t { kFirst, kSecond } pass = Pass::kFirst;
  bool cuts = false;  // whether outputs may have to be cut back (round_lengths)
  // Of passes that run beside each other, on a model that is split: which.
  uint32_t lane = 0;

  bool operator==(const ForwardKey&) const = default;
};

// What one run of a pass reads: the feeds of its graph, and what was given where they are padded.
struct PassInputs {
  FeedWords words;
  GivenLengths given = {};
};

// A tensor that a pass reads or writes, and where it lies.
struct PassTensor {
  TensorDesc desc;
  BufferSpan span;
};

// What the host does with the tensors of a full pass, of which the application placed some.
HostAccess forward_access(const ModelBuilder& builder,
                          const std::map<std::string, TensorPlace>& places);

class ForwardPass : public Preparation {
 public:
  // To be prepared before all else.
  ForwardPass(std::shared_ptr<const LoadedModel> model, const ForwardKey& key)
      : model_(std::move(model)), key_(key), memory_(*model_, key.lane) {}
  const ForwardKey& key() const { return key_; }

  Status plan() override;
  std::vector<const Plan*> plans() const override;
  Status record() override;
  Status finish() override { return graph_->write_words(memory_); }

  // `inputs` have every feed of the graph. Returns every output of the graph, cut back to what was
  // given, but for those that the application placed.
  Result<TensorMap> run(const PassInputs& inputs);

  // The same in slices: what to carry out, and the outputs afterwards. `writes` may be empty where
  // the feeds are not the host's.
  Result<std::vector<SliceWrite>> writes(const FeedWords& words) const {
    return graph_->only().feed_writes(memory_.only(), words);
  }
  // Instead of writes: at once, while nothing that was submitted reads the feeds.
  Status feed(const FeedWords& words) { return graph_->feed(memory_, words); }
  Result<SlicedPlan> sliced(std::vector<SliceWrite> writes);
  Result<TensorMap> read_outputs(const PassInputs& inputs);
  // External tensors by name, with their place in our memory or the application's.
  std::map<std::string, PassTensor> tensors() const;

 private:
  Status build(ModelBuilder& builder, const ForwardShape& shape) const;

  std::shared_ptr<const LoadedModel> model_;
  ForwardKey key_;
  GroupMemory memory_;
  std::vector<PlannedStage> planned_;  // from plan to record
  std::optional<StagedGraph> graph_;
  std::vector<TensorPart> outputs_;
  OutputAxes axes_;                    // where the key says that outputs are cut
  std::vector<TensorDesc> described_;  // outputs_
  // Whole numbers (I32) that the host knows and no operator reads, such as the ids of a sequence
  // that a family puts together. They are returned as they were fed; the second part is the feed's
  // name.
  std::vector<std::pair<TensorDesc, std::string>> echoes_;
  std::optional<SliceCosts> costs_;
};

}  // namespace vkformer
