// A graph on its way to the GPU, in one place: planned, with memory for its tensors, and recorded.
// Passes, generations, operators by name and benchmarks all get their commands here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/model.h"
#include "recording/pass_memory.h"
#include "vulkan/slice_stream.h"

namespace vkformer {

struct RecordedGraphOptions {
  const LoadedModel* model = nullptr;  // whose weights are the graph's constants; null: it has none
  Precision precision = Precision::kF32;
  // Besides the feeds and words of a builder, which the host writes.
  HostAccess host = {};
  // Of decoding steps: the external tensor with the group counts of indirect dispatches; made where
  // the plan has none of that name.
  std::string indirect_args = {};
  // The first dispatch of this kernel begins the second of two parts that can be submitted apart.
  std::optional<KernelId> cut_at = {};
  RecordingInputs::Profile profile = RecordingInputs::Profile::kOff;
  // kPieces: without command buffers, for slices and for command buffers of the application.
  enum class Commands : uint8_t { kReplayed, kPieces } commands = Commands::kReplayed;
};

// What the host does with a builder's tensors: `besides`, and writes of its feeds and words.
HostAccess host_access(const ModelBuilder& builder, HostAccess besides);

// A graph that is planned and not recorded: the host's work alone, so far.
struct PlannedGraph {
  Graph graph;
  Plan plan;
  std::vector<HostFeed> feeds;
  std::vector<HostWords> words;
  RecordedGraphOptions options;
};
Result<PlannedGraph> plan_graph(const VulkanDevice& device, Graph graph,
                                RecordedGraphOptions options);
// Of a builder's graph, with its feeds and words.
Result<PlannedGraph> plan_graph(const VulkanDevice& device, const ModelBuilder& builder,
                                RecordedGraphOptions options);

class RecordedGraph {
 public:
  // Of a graph; `memory` gets its external tensors and outlives what is made.
  static Result<RecordedGraph> create(PassMemory& memory, Graph graph,
                                      const RecordedGraphOptions& options);
  // Of a builder's graph. What depends on the shape only waits for write_words.
  static Result<RecordedGraph> record(PassMemory& memory, PlannedGraph planned);
  // Writes what depends on the shape only; once, before the first run. May submit.
  Status write_words(PassMemory& memory);
  // Of a plan alone.
  static Result<RecordedGraph> from_plan(PassMemory& memory, Plan plan,
                                         const RecordedGraphOptions& options);

  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return recording_->plan(); }
  Recording& recording() const { return *recording_; }
  RecordingRange all() const { return {recording_.get(), RecordingPart::kAll}; }
  RecordingRange part(RecordingPart part) const { return {recording_.get(), part}; }

  // Writes the inputs of a run. Feeds that no operator reads, or that the application placed, are
  // passed over; an error names one that `words` lacks.
  Status feed(PassMemory& memory, const FeedWords& words) const;
  // The same as writes of a slice, which point into `words`.
  Result<std::vector<SliceWrite>> feed_writes(const PassMemory& memory,
                                              const FeedWords& words) const;
  const std::vector<HostFeed>& feeds() const { return feeds_; }

 private:
  using FeedVisitor = std::function<Status(const std::string& tensor, uint64_t word,
                                           std::span<const uint32_t> values)>;
  // Every feed whose tensor is in our memory.
  Status for_each_feed(const PassMemory& memory, const FeedWords& words,
                       const FeedVisitor& visit) const;

  Graph graph_;
  std::vector<HostFeed> feeds_;
  std::vector<HostWords> words_;  // not written yet
  std::unique_ptr<Recording> recording_;
};

}  // namespace vkformer
