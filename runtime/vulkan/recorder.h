// Turns a plan into command buffers: descriptor sets, barriers, dispatches, labels, timestamps.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/slicing.h"
#include "vulkan/buffer_tables.h"
#include "vulkan/device_impl.h"
#include "vulkan/recording.h"

namespace vkformer {

class Recorder;

// What a recording owns; destroyed after the device has finished with it.
struct Recording::Impl {
  std::shared_ptr<VulkanDevice> device;
  Buffer arena;
  std::vector<BufferSpan> spans;  // per plan buffer; the arena's point into `arena`
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkDescriptorPool tables = VK_NULL_HANDLE;
  VkCommandPool commands = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE;
  std::vector<SubmitChunk> chunks;
  size_t cut_chunk = 0;  // the first one after the cut
  uint32_t dispatches = 0;
  uint32_t barriers = 0;
  uint64_t workgroups = 0;
  LastValue last_value;   // of the last submit that named it, or pieces of it
  LastValue timed_value;  // of the last of this object's command buffers
  uint32_t profiled = 0;  // its number with the device's profiler
  Plan plan;
  RecordingInputs inputs;
  std::unique_ptr<Recorder> recorder;
  std::vector<Buffer::Impl*> used;  // every buffer that its commands name, once

  // Says that a submit of this timeline value runs commands of this recording.
  void submitted(uint64_t value);
  // The dispatches of a part: the first, and the first after it.
  std::pair<uint32_t, uint32_t> dispatches_of(RecordingPart part) const;
  std::span<const SubmitChunk> chunks_of(RecordingPart part) const;
  ~Impl();
};

// Where the pieces of a slice write their times: two queries each, from `next` on.
struct PieceQueries {
  VkQueryPool pool = VK_NULL_HANDLE;  // null: not timed
  uint32_t next = 0;
};

class Recorder {
 public:
  Recorder(Recording::Impl& out, const Plan& plan, const RecordingInputs& inputs);
  // Pipelines, sets and the arena.
  Status prepare();
  // Then either everything into command buffers of `out`; nothing is submitted.
  Status record();
  // Or consecutive pieces, with the barriers before and between them, as often as wanted. The
  // command buffer is neither begun nor ended.
  Status append(VkCommandBuffer commands, std::span<const PlanPiece> pieces, PieceQueries& queries);

 private:
  struct BoundDispatch {
    Pipeline pipeline;
    VkDescriptorSet set = VK_NULL_HANDLE;
    VkDescriptorSet table = VK_NULL_HANDLE;
    uint64_t indirect = 0;  // its place among the indirect arguments
  };
  Status bind_memory();
  Status bind_dispatches();
  void list_used_buffers();
  Status make_descriptor_pool(size_t storage, size_t uniform);
  Result<VkDescriptorBufferInfo> describe(const Dispatch& dispatch, size_t binding,
                                          BindingType type) const;
  Status write_set(const Dispatch& dispatch, BoundDispatch& bound);
  Status make_tables();
  Status make_pools();
  Status begin_chunk();
  void see_all_before();
  Status end_chunk();
  Status record_dispatch(uint32_t index);
  Status record_parts(uint32_t index);
  void record_indirect(uint32_t index);
  Status check_part(const Dispatch& dispatch, const DispatchPart& part) const;
  void start_barriers(uint32_t first_dispatch);
  void bind(uint32_t index);
  void dispatch_part(const DispatchPart& part);
  void barrier_before(uint32_t index);
  bool writes_indirect_args(const Dispatch& dispatch) const;
  void timestamp(VkQueryPool pool, uint32_t query);

  Recording::Impl& out_;
  const Plan& plan_;
  const RecordingInputs& inputs_;
  Context& context_;
  std::vector<BoundDispatch> bound_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  double chunk_flops_ = 0;
  size_t next_barrier_ = 0;
  bool has_base_ = false;  // of the last dispatch in this command buffer, as far as is known
  // Hazards on the indirect arguments, which are no binding of the dispatches that read them.
  bool args_read_ = false;
  bool args_written_ = false;
};

}  // namespace vkformer
