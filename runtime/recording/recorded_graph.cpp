#include "recording/recorded_graph.h"

#include <algorithm>

#include "base/message.h"
#include "ops/op.h"
#include "recording/arithmetic_proof.h"
#include "recording/dot_proof.h"

namespace vkformer {
namespace {

uint64_t indirect_commands(const Plan& plan) {
  return static_cast<uint64_t>(
      std::count_if(plan.dispatches.begin(), plan.dispatches.end(),
                    [](const Dispatch& dispatch) { return dispatch.live_axis >= 0; }));
}

// The dispatch, or 0: no cut.
uint32_t first_of(const Plan& plan, std::optional<KernelId> kernel) {
  for (uint32_t i = 0; kernel && i < plan.dispatches.size(); ++i) {
    if (plan.dispatches[i].kernel == *kernel) return i;
  }
  return 0;
}

}  // namespace

HostAccess host_access(const ModelBuilder& builder, HostAccess besides) {
  const Graph& graph = builder.graph();
  for (const HostFeed& feed : builder.feeds())
    besides.writes.push_back(graph.tensor(feed.tensor).name);
  for (const HostWords& words : builder.words())
    besides.writes.push_back(graph.tensor(words.tensor).name);
  return besides;
}

Result<RecordedGraph> RecordedGraph::from_plan(PassMemory& memory, Plan plan,
                                               const RecordedGraphOptions& options) {
  if (options.model != nullptr && options.model->split() != nullptr) {
    return unsupported(
        "[group] the layers of this model lie on several devices, and this needs a model on one; "
        "load it onto one device");
  }
  VKF_CHECK(memory.allocate(plan, options.host));
  const uint64_t commands = indirect_commands(plan);
  if (commands > 0 && !options.indirect_args.empty() && !memory.has(options.indirect_args))
    VKF_CHECK(memory.add(options.indirect_args, kIndirectCommandBytes * commands, options.host));
  RecordingInputs inputs = memory.bind(plan, options.model);
  if (memory.has(options.indirect_args)) {
    const Buffer& args = memory.buffer(options.indirect_args);
    inputs.indirect_args = {&args, 0, args.bytes()};
  }
  inputs.cut = first_of(plan, options.cut_at);
  inputs.profile = options.profile;
  const bool replayed = options.commands == RecordedGraphOptions::Commands::kReplayed;
  VKF_ASSIGN(Recording recording,
             replayed ? Recording::create(memory.device(), std::move(plan), inputs)
                      : Recording::prepare(memory.device(), std::move(plan), inputs));
  RecordedGraph made;
  made.recording_ = std::make_unique<Recording>(std::move(recording));
  return made;
}

Result<RecordedGraph> RecordedGraph::create(PassMemory& memory, Graph graph,
                                            const RecordedGraphOptions& options) {
  if (options.precision == Precision::kReproducible) VKF_CHECK(prove_arithmetic(memory.device()));
  if (options.precision == Precision::kInt8) VKF_CHECK(prove_dots(memory.device()));
  VKF_ASSIGN(PlannedGraph planned, plan_graph(*memory.device(), std::move(graph), options));
  return record(memory, std::move(planned));
}

Result<PlannedGraph> plan_graph(const VulkanDevice& device, Graph graph,
                                RecordedGraphOptions options) {
  VKF_ASSIGN(Plan plan, make_plan(graph, device.caps(), options.precision));
  return PlannedGraph{std::move(graph), std::move(plan), {}, {}, std::move(options)};
}

Result<PlannedGraph> plan_graph(const VulkanDevice& device, const ModelBuilder& builder,
                                RecordedGraphOptions options) {
  options.host = host_access(builder, std::move(options.host));
  VKF_ASSIGN(PlannedGraph planned, plan_graph(device, builder.graph(), std::move(options)));
  planned.feeds = builder.feeds();
  planned.words = builder.words();
  return planned;
}

Result<RecordedGraph> RecordedGraph::record(PassMemory& memory, PlannedGraph planned) {
  VKF_ASSIGN(RecordedGraph made, from_plan(memory, std::move(planned.plan), planned.options));
  made.graph_ = std::move(planned.graph);
  made.feeds_ = std::move(planned.feeds);
  made.words_ = std::move(planned.words);
  return made;
}

Status RecordedGraph::write_words(PassMemory& memory) {
  for (const HostWords& words : words_) {
    const std::string& name = graph_.tensor(words.tensor).name;
    if (!memory.has(name)) continue;  // no operator reads it
    VKF_CHECK(memory.write(name, words.word, words.values));
  }
  words_.clear();
  return memory.send();
}

Status RecordedGraph::for_each_feed(const PassMemory& memory, const FeedWords& words,
                                    const FeedVisitor& visit) const {
  for (const HostFeed& feed : feeds_) {
    const std::string& name = graph_.tensor(feed.tensor).name;
    if (!memory.has(name)) continue;
    const auto found = words.find(feed.what);
    if (found == words.end()) return internal_error(message({"[", feed.what, "] is not fed"}));
    VKF_CHECK(visit(name, feed.word, found->second));
  }
  return {};
}

Result<std::vector<SliceWrite>> RecordedGraph::feed_writes(const PassMemory& memory,
                                                           const FeedWords& words) const {
  std::vector<SliceWrite> writes;
  VKF_CHECK(for_each_feed(
      memory, words,
      [&](const std::string& name, uint64_t word, std::span<const uint32_t> values) -> Status {
        writes.push_back({&memory.buffer(name), 4 * word, std::as_bytes(values)});
        return {};
      }));
  return writes;
}

Status RecordedGraph::feed(PassMemory& memory, const FeedWords& words) const {
  return for_each_feed(
      memory, words, [&](const std::string& name, uint64_t word, std::span<const uint32_t> values) {
        return memory.write(name, word, values);
      });
}

}  // namespace vkformer
