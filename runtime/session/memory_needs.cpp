#include "session/memory_needs.h"

#include "load/loaded_model.h"
#include "ops/op.h"
#include "session/sized_graphs.h"

namespace vkformer {

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
  MemoryTally tally(device, model.precision);
  for (const SizedGraph& graph : graphs) VKF_CHECK(tally.add(graph));
  MemoryNeeds needs = tally.needs();
  for (uint64_t chunk : plan_chunks(device, model, {}).chunks) {
    needs.weights += device.placed_bytes(chunk);
  }
  needs.staging += device.staging_bytes();
  needs.total += needs.weights + device.staging_bytes();
  return needs;
}

}  // namespace vkformer
