#include "recording/staged_graph.h"

#include <algorithm>

#include "base/message.h"
#include "graph/tensor_bytes.h"
#include "recording/node_places.h"

namespace vkformer {
namespace {

// Nodes [begin, end) of a graph, which follow each other at one member.
struct Run {
  size_t member = 0;
  size_t begin = 0, end = 0;
};

template <class Visit>
void for_each_tensor(const Node& node, const Visit& visit) {
  for (const TensorId id : node.inputs) {
    if (id != kNoTensor) visit(id);
  }
  for (const TensorId id : node.outputs) {
    if (id != kNoTensor) visit(id);
  }
}

// The member that has the node's place, if it has the node's weights too. Places of passes that the
// split was not planned by go where their weights are.
Result<size_t> member_of(const ModelSplit& split, const Graph& graph, size_t index, size_t before) {
  const Node& node = graph.nodes()[index];
  const auto place = split.member_of.find(place_of_node(graph, index));
  size_t wanted = place == split.member_of.end() ? before : place->second;
  if (split.plan.split == GroupSplit::kTensors) {
    wanted = member_of_part(place_of_node(graph, index));
  }
  const auto holds_all = [&](size_t member) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
      return id == kNoTensor || graph.tensor(id).kind != TensorKind::kConstant ||
             split.held[member][graph.tensor(id).constant];
    });
  };
  if (holds_all(wanted)) return wanted;
  for (size_t member = 0; member < split.members(); ++member) {
    if (holds_all(member)) return member;
  }
  return internal_error(message({"[", node.label, "] no device of the group has all its weights"}));
}

Result<std::vector<Run>> runs_of(const LoadedModel& model, const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  std::vector<Run> runs;
  if (model.split() == nullptr) return std::vector<Run>{{0, 0, nodes.size()}};
  size_t member = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    VKF_ASSIGN(member, member_of(*model.split(), graph, i, member));
    if (runs.empty() || runs.back().member != member) runs.push_back({member, i, i});
    runs.back().end = i + 1;
  }
  return runs;
}

// What is handed from run to run is external from now on. Values of one size of which one is no
// longer read when the other is written have one name, and so one memory. Divided layers hand over
// two values each.
void name_links(Graph& graph, const std::vector<Run>& runs, const StageSource& source) {
  const bool reuses = source.runs == StageSource::Runs::kOne;
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> first(graph.tensors().size(), kNone), last(first);  // runs that have it
  std::vector<TensorId> links;  // by the run that writes them
  for (size_t r = 0; r < runs.size(); ++r) {
    for (size_t i = runs[r].begin; i < runs[r].end; ++i) {
      for_each_tensor(graph.nodes()[i], [&](TensorId id) {
        if (graph.tensor(id).kind != TensorKind::kTemporary) return;
        if (first[id] == kNone) {
          first[id] = r;
          links.push_back(id);
        }
        last[id] = r;
      });
    }
  }
  struct Memory {
    std::string name;
    uint64_t bytes;
    size_t until;  // the run that reads it last
  };
  std::vector<Memory> memories;
  for (const TensorId id : links) {
    if (first[id] == last[id]) continue;
    TensorDesc& desc = graph.tensor(id);
    const uint64_t bytes = tensor_bytes(desc);
    auto memory = std::find_if(memories.begin(), memories.end(), [&](const Memory& m) {
      return reuses && m.bytes == bytes && m.until < first[id];
    });
    if (memory == memories.end()) {
      memory =
          memories.insert(memory, {message({"link.", source.name, ".", size_t{id}}), bytes, 0});
    }
    memory->until = last[id];
    desc.kind = TensorKind::kExternal;
    desc.name = memory->name;
  }
}

struct CutGraph {
  Graph graph;
  std::vector<Run> runs;
};

// Tensors that several members use, by their largest size.
std::map<std::string, uint64_t> shared_tensors(const std::vector<CutGraph>& cuts) {
  std::map<std::string, std::set<size_t>> users;
  std::map<std::string, uint64_t> bytes;
  for (const CutGraph& cut : cuts) {
    for (const Run& run : cut.runs) {
      for (size_t i = run.begin; i < run.end; ++i) {
        for_each_tensor(cut.graph.nodes()[i], [&](TensorId id) {
          const TensorDesc& desc = cut.graph.tensor(id);
          // Group counts are those of a stage's own dispatches.
          if (desc.kind != TensorKind::kExternal || desc.name == "args") return;
          users[desc.name].insert(run.member);
          bytes[desc.name] = std::max(bytes[desc.name], tensor_bytes(desc));
        });
      }
    }
  }
  for (const auto& [name, members] : users) {
    if (members.size() == 1) bytes.erase(name);
  }
  return bytes;
}

// The part of a graph that a run is: other nodes' external tensors take no memory in it.
Graph stage_graph(const CutGraph& cut, const Run& run) {
  Graph graph = cut.graph;
  std::vector<Node> nodes(graph.nodes().begin() + static_cast<ptrdiff_t>(run.begin),
                          graph.nodes().begin() + static_cast<ptrdiff_t>(run.end));
  std::vector<bool> used(graph.tensors().size());
  for (const Node& node : nodes) {
    for_each_tensor(node, [&](TensorId id) { used[id] = true; });
  }
  for (TensorId id = 0; id < used.size(); ++id) {
    TensorDesc& desc = graph.tensor(id);
    if (!used[id] && desc.kind == TensorKind::kExternal) desc.kind = TensorKind::kTemporary;
  }
  graph.set_nodes(std::move(nodes));
  return graph;
}

void add_name(std::vector<std::string>& names, const TensorDesc& desc) {
  if (desc.kind != TensorKind::kExternal) return;
  if (std::find(names.begin(), names.end(), desc.name) == names.end()) names.push_back(desc.name);
}

Result<PlannedStage> plan_stage(const LoadedModel& model, const GroupMemory& memory,
                                const StageSource& source, const CutGraph& cut, size_t index,
                                const std::map<std::string, uint64_t>& shared) {
  const Run& run = cut.runs[index];
  PlannedStage stage{.member = run.member};
  for (size_t i = run.begin; i < run.end; ++i) {
    const Node& node = cut.graph.nodes()[i];
    for_each_tensor(node, [&](TensorId id) { add_name(stage.uses, cut.graph.tensor(id)); });
    for (const TensorId id : node.outputs) {
      if (id != kNoTensor) add_name(stage.written, cut.graph.tensor(id));
    }
    if (source.cut_node && node.op == static_cast<uint16_t>(*source.cut_node)) stage.cut = true;
  }
  RecordedGraphOptions options = source.options;
  if (!stage.cut) options.cut_at.reset();
  if (!options.indirect_args.empty()) {
    // The stage that has its group counts from the GPU has a tensor for them, others get one.
    const bool own =
        std::find(stage.uses.begin(), stage.uses.end(), options.indirect_args) != stage.uses.end();
    if (!own && cut.runs.size() > 1) options.indirect_args += message({".", index});
    stage.args = options.indirect_args;
    options.host.writes.push_back(stage.args);
  }
  options.host = memory.with_shared(host_access(*source.builder, std::move(options.host)));
  const LoadedModel* part = &model;
  if (model.split() != nullptr) part = model.split()->parts[run.member].get();
  if (part == nullptr) return stage;
  options.model = part;
  Graph graph = model.split() == nullptr ? cut.graph : stage_graph(cut, run);
  VKF_ASSIGN(stage.planned, plan_graph(*part->device(), std::move(graph), std::move(options)));
  // The same size for a shared tensor everywhere: of one name that passes have in several sizes the
  // host writes the largest, to all members.
  for (PlanBuffer& buffer : stage.planned->plan.buffers) {
    const auto found = shared.find(buffer.name);
    if (buffer.source == BufferSource::kExternal && found != shared.end()) {
      buffer.bytes = std::max<uint64_t>(buffer.bytes, found->second);
    }
  }
  // What the host writes once is a member's, whichever of its stages reads it.
  const auto before = cut.runs.begin() + static_cast<ptrdiff_t>(index);
  if (std::any_of(cut.runs.begin(), before, [&](const Run& r) { return r.member == run.member; })) {
    return stage;
  }
  stage.planned->feeds = source.builder->feeds();
  stage.planned->words = source.builder->words();
  return stage;
}

}  // namespace

Result<std::vector<std::vector<PlannedStage>>> plan_stages(const LoadedModel& model,
                                                           GroupMemory& memory,
                                                           std::vector<StageSource> sources) {
  std::vector<CutGraph> cuts;
  for (const StageSource& source : sources) {
    CutGraph cut{source.builder->graph(), {}};
    VKF_ASSIGN(cut.runs, runs_of(model, cut.graph));
    name_links(cut.graph, cut.runs, source);
    cuts.push_back(std::move(cut));
  }
  std::map<std::string, uint64_t> shared;
  if (model.split() != nullptr) shared = shared_tensors(cuts);
  memory.share(shared);
  std::vector<std::vector<PlannedStage>> planned(sources.size());
  for (size_t s = 0; s < sources.size(); ++s) {
    for (size_t i = 0; i < cuts[s].runs.size(); ++i) {
      VKF_ASSIGN(PlannedStage stage, plan_stage(model, memory, sources[s], cuts[s], i, shared));
      planned[s].push_back(std::move(stage));
    }
  }
  return planned;
}

Result<StagedGraph> StagedGraph::record(GroupMemory& memory, std::vector<PlannedStage> planned) {
  StagedGraph made;
  for (PlannedStage& from : planned) {
    Stage stage{.member = from.member,
                .uses = std::move(from.uses),
                .written = std::move(from.written),
                .cut = from.cut,
                .args = std::move(from.args),
                .graph = {},
                .wave_end = 0};
    if (from.planned) {
      VKF_ASSIGN(stage.graph,
                 RecordedGraph::record(*memory.member(from.member), std::move(*from.planned)));
    }
    made.stages_.push_back(std::move(stage));
  }
  for (size_t i = 0; i < made.stages_.size(); ++i) made.stages_[i].wave_end = made.end_of_wave(i);
  return made;
}

Status StagedGraph::write_words(GroupMemory& memory) {
  for (Stage& stage : stages_) {
    if (stage.graph) VKF_CHECK(stage.graph->write_words(*memory.member(stage.member)));
  }
  return {};
}

Status StagedGraph::feed(GroupMemory& memory, const FeedWords& words) const {
  for (const Stage& stage : stages_) {
    if (stage.graph) VKF_CHECK(stage.graph->feed(*memory.member(stage.member), words));
  }
  return {};
}

Status StagedGraph::submit(GroupMemory& memory, RecordingPart part,
                           std::span<const TensorPart> reads) const {
  const auto cut =
      std::find_if(stages_.begin(), stages_.end(), [](const Stage& s) { return s.cut; });
  const auto at_cut = static_cast<size_t>(cut - stages_.begin());
  const size_t first = part == RecordingPart::kAfterCut ? at_cut : 0;
  const size_t last =
      part == RecordingPart::kBeforeCut ? std::min(at_cut + 1, stages_.size()) : stages_.size();
  for (size_t begin = first; begin < last;) {
    const size_t end = std::min(stages_[begin].wave_end, last);
    // A member that runs already would make others wait for what it had before.
    for (size_t i = begin; i < end; ++i) {
      VKF_CHECK(memory.bring(stages_[i].uses, stages_[i].member));
    }
    for (size_t i = begin; i < end; ++i) {
      const Stage& stage = stages_[i];
      std::vector<RecordingRange> ranges;
      if (stage.graph) {
        ranges.push_back(stage.graph->part(i == at_cut ? part : RecordingPart::kAll));
      }
      VKF_CHECK(memory.submit(stage.member, ranges, stage.written, reads));
    }
    begin = end;
  }
  return {};
}

bool StagedGraph::runs_beside() const {
  std::set<size_t> members;
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (!members.insert(stages_[s].member).second) return false;
    for (size_t other = 0; other < stages_.size(); ++other) {
      if (other == s || other == s + 1) continue;
      const std::vector<std::string>& uses = stages_[other].uses;
      const bool hands = std::any_of(uses.begin(), uses.end(), [&](const std::string& name) {
        const std::vector<std::string>& written = stages_[s].written;
        return std::find(written.begin(), written.end(), name) != written.end();
      });
      if (hands) return false;
    }
  }
  return true;
}

Result<int64_t> StagedGraph::submit_parts(GroupMemory& memory, size_t parts,
                                          const FeedPart& feed) const {
  const size_t stages = stages_.size();
  const size_t apart = runs_beside() ? 1 : stages;  // rounds from a part's begin to the next one's
  const size_t rounds = (parts - 1) * apart + stages;
  const auto works = [&](size_t round, size_t stage) {
    return round >= stage && (round - stage) % apart == 0 && (round - stage) / apart < parts;
  };
  for (size_t round = 0; round < rounds; ++round) {
    // The last stage first: a process sends what it has before it waits for more.
    for (size_t s = stages; s-- > 0;) {
      if (works(round, s)) VKF_CHECK(memory.bring(stages_[s].uses, stages_[s].member));
    }
    for (size_t s = 0; s < stages; ++s) {
      if (!works(round, s)) continue;
      const Stage& stage = stages_[s];
      VKF_CHECK(feed((round - s) / apart, s));
      std::vector<RecordingRange> ranges;
      if (stage.graph) ranges.push_back(stage.graph->all());
      VKF_CHECK(memory.submit(stage.member, ranges, stage.written, {}));
    }
  }
  return static_cast<int64_t>(rounds);
}

size_t StagedGraph::end_of_wave(size_t begin) const {
  std::set<size_t> members = {stages_[begin].member};
  std::set<std::string> written(stages_[begin].written.begin(), stages_[begin].written.end());
  size_t next = begin + 1;
  for (; next < stages_.size(); ++next) {
    const Stage& stage = stages_[next];
    const bool reads = std::any_of(stage.uses.begin(), stage.uses.end(),
                                   [&](const auto& name) { return written.count(name) != 0; });
    if (reads || !members.insert(stage.member).second) break;
    written.insert(stage.written.begin(), stage.written.end());
  }
  return next;
}

}  // namespace vkformer
