// A graph as stages: runs of nodes, each on one member of a group. Where a model is on one device
// there is one stage, which is the whole graph.
//
// A node runs where its place in the model lies (load/model_split.h). A value that a stage of
// another member reads becomes a tensor that both have (recording/group_memory.h).
#pragma once

#include <functional>
#include <optional>

#include "recording/group_memory.h"
#include "recording/recorded_graph.h"

namespace vkformer {

struct PlannedStage {
  size_t member = 0;
  std::vector<std::string> uses;     // external tensors
  std::vector<std::string> written;  // of those
  bool cut = false;                  // holds the dispatch that begins the second part
  std::string args;                  // the tensor with the group counts of its dispatches; or empty
  std::optional<PlannedGraph> planned;  // absent: another process has it
};

// A graph to be cut. Graphs of one memory are cut together.
struct StageSource {
  const ModelBuilder* builder = nullptr;
  RecordedGraphOptions options;
  const char* name = "";              // in the names of values that are handed over
  std::optional<OpId> cut_node = {};  // that options.cut_at is a dispatch of
  // kParts: it runs several times at once, each at another member (StagedGraph::submit_parts). So
  // every value that is handed over has its own memory.
  enum class Runs : uint8_t { kOne, kParts } runs = Runs::kOne;
};

// The stages of each source; tells `memory` what is shared.
Result<std::vector<std::vector<PlannedStage>>> plan_stages(const LoadedModel& model,
                                                           GroupMemory& memory,
                                                           std::vector<StageSource> sources);

class StagedGraph {
 public:
  struct Stage {
    size_t member = 0;
    std::vector<std::string> uses, written;
    bool cut = false;
    std::string args;
    std::optional<RecordedGraph> graph;
    size_t wave_end = 0;  // after the last of the stages from this one on that run at the same time
  };

  static Result<StagedGraph> record(GroupMemory& memory, std::vector<PlannedStage> planned);
  Status write_words(GroupMemory& memory);
  Status feed(GroupMemory& memory, const FeedWords& words) const;

  const std::vector<Stage>& stages() const { return stages_; }
  // Of a model on one device.
  RecordedGraph& only() { return *stages_[0].graph; }
  const RecordedGraph& only() const { return *stages_[0].graph; }

  // Submits `part` of the stages to their members; of a model that is split. Stages that follow
  // each other at different members, and of which none reads what another one writes, run at the
  // same time.
  Status submit(GroupMemory& memory, RecordingPart part, std::span<const TensorPart> reads) const;

  // Writes what a stage reads of a part, to that stage's member alone.
  using FeedPart = std::function<Status(size_t part, size_t stage)>;
  // Runs the graph once for each of `parts`, in order; of a source with Runs::kParts. In a round
  // every stage has another part, which the stage before it had a round ago. So all members work at
  // the same time, and `parts` take parts + stages - 1 rounds. Where stages cannot, such as two of
  // one member, a round is one stage. Returns the rounds. Does not wait for the last one.
  Result<int64_t> submit_parts(GroupMemory& memory, size_t parts, const FeedPart& feed) const;

 private:
  // Whether each stage is at another member, and hands values to the next one alone.
  bool runs_beside() const;
  // Stage::wave_end of that stage.
  size_t end_of_wave(size_t begin) const;

  std::vector<Stage> stages_;
};

}  // namespace vkformer
