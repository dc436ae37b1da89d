#include "session/memory_needs.h"

#include "load/loaded_model.h"
#include "ops/op.h"
#include "session/sized_graphs.h"

namespace vkformer {
namespace {

void add_to(MemoryNeeds& sum, const MemoryNeeds& more) {
  sum.arena += more.arena;
  sum.cache += more.cache;
  sum.tensors += more.tensors;
  sum.staging += more.staging;
  sum.total += more.total;
  sum.arena_bound += more.arena_bound;
}

}  // namespace

Status MemoryTally::add(const SizedGraph& sized) {
  VKF_ASSIGN(const Plan plan, make_plan(sized.graph, device_.caps(), precision_));
  if (plan.arena_bytes > 0) needs_.arena += device_.placed_bytes(plan.arena_bytes);
  needs_.arena_bound += plan.arena_bound_bytes;
  for (const PlanBuffer& b : plan.buffers) {
    if (b.source != BufferSource::kExternal || !counted_.insert(b.name).second) continue;
    const bool carried = b.name.starts_with("self_kv.") || b.name.starts_with("cross_kv.") ||
                         b.name.starts_with("self_state.");
    (carried ? needs_.cache : needs_.tensors) += device_.placed_bytes(b.bytes);
    blocks_.add(b.name, b.bytes, sized.host);
  }
  return {};
}

MemoryNeeds MemoryTally::needs() const {
  MemoryNeeds needs = needs_;
  if (blocks_.sent() > 0) needs.staging += device_.placed_bytes(blocks_.sent());
  if (blocks_.returned() > 0) needs.staging += device_.placed_bytes(blocks_.returned());
  needs.total = needs.arena + needs.cache + needs.tensors + needs.staging;
  return needs;
}

Status MemoryTally::add_generation(const ModelFamily& family,
                                   const std::vector<PackedWeight>& weights,
                                   const GenerationKey& key) {
  VKF_ASSIGN(const std::vector<SizedGraph> graphs, generation_graphs(family, weights, key));
  for (const SizedGraph& graph : graphs) VKF_CHECK(add(graph));
  return {};
}

Result<MemoryNeeds> memory_needs_of(VulkanDevice& device, const FileStore& files,
                                    const ModelOptions& options, const SessionSizes& sizes) {
  VKF_ASSIGN(const ModelWeights model, read_model_weights(device.caps(), files, options));
  VKF_ASSIGN(const std::vector<SizedGraph> graphs,
             sized_graphs(*model.family, model.weights, sizes));
  // Prompt and step of a generation share tensors; two passes have separate ones.
  const bool apart = model.family->facts().passes == ModelFacts::Passes::kTwo;
  std::vector<MemoryTally> tallies;
  for (const SizedGraph& graph : graphs) {
    if (apart || tallies.empty()) tallies.emplace_back(device, model.precision);
    VKF_CHECK(tallies.back().add(graph));
  }
  MemoryNeeds needs;
  for (const MemoryTally& tally : tallies) add_to(needs, tally.needs());
  for (uint64_t chunk : plan_chunks(device, model, {}).chunks) {
    needs.weights += device.placed_bytes(chunk);
  }
  needs.staging += device.staging_bytes();
  needs.total += needs.weights + device.staging_bytes();
  return needs;
}

}  // namespace vkformer
