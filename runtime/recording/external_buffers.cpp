#include "recording/external_buffers.h"

#include "base/message.h"

namespace vkformer {

Status ExternalBuffers::allocate(VulkanDevice& device, const Plan& plan) {
  for (const PlanBuffer& b : plan.buffers) {
    if (b.source != BufferSource::kExternal || placed(b.name)) continue;
    const auto known = buffers_.find(b.name);
    if (known != buffers_.end()) {
      if (known->second->bytes() >= b.bytes) continue;
      return internal_error(message({"[", b.name, "] is ", b.bytes, " bytes in one pass and ",
                                     known->second->bytes(), " in another that shares it"}));
    }
    VKF_ASSIGN(Buffer buffer, device.make_buffer(b.bytes, MemoryUse::kDevice, b.name));
    buffers_.emplace(b.name, std::make_unique<Buffer>(std::move(buffer)));
  }
  return {};
}

Status ExternalBuffers::upload_words(VulkanDevice& device, const Graph& graph,
                                     const std::vector<HostWords>& words) {
  for (const HostWords& w : words) {
    const std::string& name = graph.tensor(w.tensor).name;
    if (buffers_.count(name) == 0) continue;  // no operator reads it
    VKF_CHECK(device.upload(at(name), w.word * 4, std::as_bytes(std::span(w.values))));
  }
  return {};
}

Result<std::vector<SliceWrite>> ExternalBuffers::feed_writes(const Graph& graph,
                                                             const std::vector<HostFeed>& feeds,
                                                             const FeedWords& words) const {
  std::vector<SliceWrite> writes;
  for (const HostFeed& feed : feeds) {
    const std::string& name = graph.tensor(feed.tensor).name;
    const auto buffer = buffers_.find(name);
    if (buffer == buffers_.end()) continue;  // no operator reads it, or the application writes it
    const auto found = words.find(feed.what);
    if (found == words.end()) return internal_error(message({"[", feed.what, "] is not fed"}));
    writes.push_back(
        {buffer->second.get(), feed.word * 4, std::as_bytes(std::span(found->second))});
  }
  return writes;
}

Status ExternalBuffers::upload_feeds(VulkanDevice& device, const Graph& graph,
                                     const std::vector<HostFeed>& feeds, const FeedWords& words) {
  VKF_ASSIGN(const std::vector<SliceWrite> writes, feed_writes(graph, feeds, words));
  for (const SliceWrite& write : writes) {
    VKF_CHECK(device.upload(*write.buffer, write.offset, write.bytes));
  }
  return {};
}

RecordingInputs ExternalBuffers::bind(const Plan& plan, const LoadedModel& model) const {
  RecordingInputs inputs;
  inputs.memory.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& b = plan.buffers[i];
    const auto place = places_.find(b.name);
    if (place != places_.end()) {
      inputs.memory[i] = {place->second.view.get(), place->second.offset, place->second.bytes};
    } else if (b.source == BufferSource::kExternal) {
      inputs.memory[i] = {buffers_.at(b.name).get(), 0, b.bytes};
    }
    if (b.source == BufferSource::kConstant) inputs.memory[i] = model.weight_memory(b.constant);
  }
  return inputs;
}

}  // namespace vkformer
