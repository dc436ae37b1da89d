// Turns a plan into command buffers: descriptor sets, barriers, dispatches, labels, timestamps.
#pragma once

#include <memory>
#include <vector>

#include "vulkan/device_impl.h"
#include "vulkan/recording.h"

namespace vkformer {

// What a recording owns; destroyed after the device has finished with it.
struct Recording::Impl {
  std::shared_ptr<VulkanDevice> device;
  Buffer arena;
  std::vector<BufferSpan> spans;  // per plan buffer; the arena's point into `arena`
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkCommandPool commands = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE;
  std::vector<SubmitChunk> chunks;
  uint32_t dispatches = 0;
  uint32_t barriers = 0;
  uint64_t workgroups = 0;
  std::atomic<uint64_t> last_value{0};  // of the last submit that named it

  ~Impl();
};

class Recorder {
 public:
  Recorder(Recording::Impl& out, const Plan& plan, const RecordingInputs& inputs);
  // Fills `out`. Nothing is submitted.
  Status record();
  // The two halves of appending to command buffers of the application: pipelines, sets and the
  // arena once; then the dispatches with the barriers between them, as often as wanted. The
  // application's buffer is neither begun nor ended, and never split.
  Status prepare();
  Status append(VkCommandBuffer commands);

 private:
  struct BoundDispatch {
    Pipeline pipeline;
    VkDescriptorSet set = VK_NULL_HANDLE;
  };
  Status bind_memory();
  Status bind_dispatches();
  Status make_descriptor_pool(size_t storage, size_t uniform);
  Result<VkDescriptorBufferInfo> describe(const Dispatch& dispatch, size_t binding,
                                          BindingType type) const;
  Status write_set(const Dispatch& dispatch, BoundDispatch& bound);
  Status make_pools();
  Status begin_chunk();
  Status end_chunk();
  Status record_dispatch(uint32_t index);
  Status record_parts(const Dispatch& dispatch);
  void record_indirect();
  void barrier_before(uint32_t index);
  void full_barrier(VkPipelineStageFlags from, VkAccessFlags from_access, VkPipelineStageFlags to,
                    VkAccessFlags to_access);
  bool writes_indirect_args(const Dispatch& dispatch) const;
  void timestamp(uint32_t query);

  Recording::Impl& out_;
  const Plan& plan_;
  const RecordingInputs& inputs_;
  Context& context_;
  std::vector<BoundDispatch> bound_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  double chunk_flops_ = 0;
  bool appending_ = false;
  size_t next_barrier_ = 0;
  uint64_t next_indirect_ = 0;
  // Hazards on the indirect arguments, which are no binding of the dispatches that read them.
  bool args_read_ = false;
  bool args_written_ = false;
};

}  // namespace vkformer
