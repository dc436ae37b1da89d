#include "vulkan/recorder.h"

#include <algorithm>

#include "base/message.h"
#include "vulkan/command_buffers.h"

namespace vkformer {
namespace {

constexpr VkAccessFlags kComputeAccess =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT;

std::string who(const Dispatch& dispatch) {
  return "[" + std::string(kernel_info(dispatch.kernel).name) + "] in '" + dispatch.label + "'";
}

void begin_label(const Context& context, VkCommandBuffer commands, const Dispatch& dispatch) {
  begin_label(context, commands, dispatch.label, kernel_info(dispatch.kernel).name);
}

}  // namespace

Recorder::Recorder(Recording::Impl& out, const Plan& plan, const RecordingInputs& inputs)
    : out_(out), plan_(plan), inputs_(inputs), context_(out.device->impl().context) {}

Status Recorder::prepare() {
  VKF_CHECK(bind_memory());
  VKF_CHECK(bind_dispatches());
  list_used_buffers();
  return {};
}

void Recorder::list_used_buffers() {
  std::vector<Buffer::Impl*>& used = out_.used;
  for (const BufferSpan& span : out_.spans) {
    if (span.buffer && span.buffer->valid()) used.push_back(span.buffer->impl().get());
  }
  const Buffer* args = inputs_.indirect_args.buffer;
  if (args && args->valid()) used.push_back(args->impl().get());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
}

// The barriers of the plan before that dispatch are done.
void Recorder::start_barriers(uint32_t first_dispatch) {
  args_read_ = args_written_ = false;
  const auto later = [](uint32_t dispatch, const Barrier& b) {
    return dispatch < b.before_dispatch;
  };
  next_barrier_ = static_cast<size_t>(
      std::upper_bound(plan_.barriers.begin(), plan_.barriers.end(), first_dispatch, later) -
      plan_.barriers.begin());
}

Status Recorder::append(VkCommandBuffer commands, std::span<const PlanPiece> pieces,
                        PieceQueries& queries) {
  if (pieces.empty()) return {};
  commands_ = commands;
  has_base_ = true;
  start_barriers(pieces.front().dispatch);
  // Whatever wrote the inputs or used the arena before, on this queue, is done with from here on.
  constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
  context_.memory_barrier(commands_, kStages | VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kStages,
                          kComputeAccess | VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
  for (const PlanPiece& piece : pieces) {
    const Dispatch& dispatch = plan_.dispatches[piece.dispatch];
    if (&piece != pieces.data() && piece.starts()) barrier_before(piece.dispatch);
    begin_label(context_, commands_, dispatch);
    timestamp(queries.pool, queries.next++);
    bind(piece.dispatch);
    const bool indirect = is_indirect(dispatch, context_.caps.max_dispatch_flops);
    if (indirect && piece.is_whole(dispatch)) {
      record_indirect(piece.dispatch);
    } else {
      VKF_CHECK(check_part(dispatch, piece.part));
      dispatch_part(piece.part);
    }
    timestamp(queries.pool, queries.next++);
    end_label(context_, commands_);
    if (writes_indirect_args(dispatch)) args_written_ = true;
  }
  return {};
}

// Whatever came before on this queue, or from the host, is visible from here on; so the same
// recording may follow itself.
void Recorder::see_all_before() {
  context_.memory_barrier(
      commands_,
      VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
          VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
      VK_ACCESS_HOST_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
      kComputeAccess | VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
}

Status Recorder::record() {
  next_barrier_ = 0;
  VKF_CHECK(make_pools());
  VKF_CHECK(begin_chunk());
  if (out_.queries) {
    context_.api.CmdResetQueryPool(commands_, out_.queries, 0,
                                   static_cast<uint32_t>(2 * plan_.dispatches.size()));
  }
  see_all_before();
  for (uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
    if (i != 0 && i == inputs_.cut) {
      VKF_CHECK(end_chunk());
      out_.cut_chunk = out_.chunks.size();
      VKF_CHECK(begin_chunk());
      see_all_before();
    }
    VKF_CHECK(record_dispatch(i));
  }
  context_.memory_barrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                          VK_ACCESS_SHADER_WRITE_BIT,
                          VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT);
  VKF_CHECK(end_chunk());
  out_.dispatches = static_cast<uint32_t>(plan_.dispatches.size());
  return {};
}

// Gives every plan buffer its span of memory and checks what the caller brought.
Status Recorder::bind_memory() {
  if (plan_.arena_bytes > 0) {
    VKF_ASSIGN(out_.arena,
               out_.device->make_buffer(plan_.arena_bytes, MemoryUse::kDevice, "arena"));
  }
  out_.spans.resize(plan_.buffers.size());
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const PlanBuffer& planned = plan_.buffers[i];
    if (planned.source == BufferSource::kArena) {
      if (planned.offset > plan_.arena_bytes ||
          planned.bytes > plan_.arena_bytes - planned.offset) {
        return internal_error(message({"[", planned.name, "] lies outside its arena of ",
                                       plan_.arena_bytes, " bytes; run plan_memory first"}));
      }
      out_.spans[i] = {&out_.arena, planned.offset, planned.bytes};
      continue;
    }
    if (i >= inputs_.memory.size() || !inputs_.memory[i].buffer) continue;  // see describe
    const BufferSpan& span = inputs_.memory[i];
    const uint64_t have = span.buffer->bytes();
    if (span.offset > have || span.bytes > have - span.offset || span.bytes < planned.bytes) {
      return invalid_argument(
          message({"[", planned.name, "] needs ", planned.bytes, " bytes, but is given ",
                   span.bytes, " at offset ", span.offset, " of a buffer of ", have, " bytes"}));
    }
    out_.spans[i] = {span.buffer, span.offset, planned.bytes > 0 ? planned.bytes : span.bytes};
  }
  return {};
}

Result<VkDescriptorBufferInfo> Recorder::describe(const Dispatch& dispatch, size_t binding,
                                                  BindingType type) const {
  const DeviceLimits& limits = context_.caps.limits;
  const BoundBuffer& bound = dispatch.bindings[binding];
  const uint32_t index = bound.buffer;
  const std::string place = who(dispatch) + " binding " + std::to_string(binding);
  if (index >= plan_.buffers.size()) {
    return internal_error(message(
        {place, " names buffer ", index, " of ", plan_.buffers.size(), "; correct the lowering"}));
  }
  const std::string name = "[" + plan_.buffers[index].name + "] for " + place;
  const BufferSpan& span = out_.spans[index];
  if (!span.buffer || !span.buffer->valid() || span.bytes == 0) {
    return invalid_argument(name + " has no memory; bind it in RecordingInputs::memory");
  }
  const bool storage = type == BindingType::kStorage;
  const uint64_t alignment = storage ? limits.storage_alignment : limits.uniform_alignment;
  const uint64_t offset = span.offset + bound.offset;
  if (offset % alignment != 0) {
    return invalid_argument(
        message({name, " starts at offset ", offset, ", which this device wants aligned to ",
                 alignment, " bytes; align it"}));
  }
  if (bound.offset + bound.bytes > span.bytes) {
    return internal_error(message({name, " covers ", bound.bytes, " bytes at ", bound.offset,
                                   " of ", span.bytes, "; correct the lowering"}));
  }
  // Kernels read and write whole words; every buffer is padded to 16 bytes.
  const uint64_t range = ((bound.bytes > 0 ? bound.bytes : span.bytes) + 3) / 4 * 4;
  const uint64_t most = storage ? limits.max_storage_range : limits.max_uniform_range;
  if (range > most) {
    return unsupported(message({name, " covers ", range, " bytes, but one ",
                                storage ? "binding" : "uniform binding", " may cover ", most,
                                " on this device; use a smaller batch or sequence, or slice it"}));
  }
  return VkDescriptorBufferInfo{span.buffer->impl()->placed.handle, offset, range};
}

Status Recorder::make_descriptor_pool(size_t storage, size_t uniform) {
  std::vector<VkDescriptorPoolSize> sizes;
  if (storage > 0) {
    sizes.push_back({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, static_cast<uint32_t>(storage)});
  }
  if (uniform > 0) {
    sizes.push_back({VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, static_cast<uint32_t>(uniform)});
  }
  if (sizes.empty()) return {};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = static_cast<uint32_t>(plan_.dispatches.size());
  info.poolSizeCount = static_cast<uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  return context_.check_made(context_.api.CreateDescriptorPool(
                                 context_.device, &info, context_.allocator, &out_.descriptors),
                             out_.descriptors, "[recording] vkCreateDescriptorPool");
}

Status Recorder::write_set(const Dispatch& dispatch, BoundDispatch& bound) {
  const std::vector<KernelBinding>& bindings = bound.pipeline.interface->bindings;
  if (bindings.empty()) return {};
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorPool = out_.descriptors;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &bound.pipeline.set_layout;
  VKF_CHECK(context_.check(context_.api.AllocateDescriptorSets(context_.device, &info, &bound.set),
                           who(dispatch) + " vkAllocateDescriptorSets"));
  std::vector<VkDescriptorBufferInfo> ranges(bindings.size());
  std::vector<VkWriteDescriptorSet> writes(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    VKF_ASSIGN(ranges[i], describe(dispatch, i, bindings[i].type));
    VkWriteDescriptorSet& w = writes[i];
    w = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    w.dstSet = bound.set;
    w.dstBinding = bindings[i].binding;
    w.descriptorCount = 1;
    w.descriptorType = bindings[i].type == BindingType::kStorage
                           ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                           : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    w.pBufferInfo = &ranges[i];
  }
  context_.api.UpdateDescriptorSets(context_.device, static_cast<uint32_t>(writes.size()),
                                    writes.data(), 0, nullptr);
  return {};
}

Status Recorder::bind_dispatches() {
  PipelineStore& store = *out_.device->impl().pipelines;
  const Plan* const plans[] = {&plan_};
  store.make_ahead(plans, PipelineStore::Caller::kWaits);
  size_t storage = 0, uniform = 0, indirect = 0;
  for (const Dispatch& dispatch : plan_.dispatches) {
    auto pipeline = store.get(dispatch.kernel, dispatch.spec, dispatch.reproducible);
    if (!pipeline) return pipeline.error().with_context(message({"'", dispatch.label, "'"}));
    VKF_CHECK(check_dispatch(dispatch, *pipeline->interface));
    for (const KernelBinding& b : pipeline->interface->bindings) {
      ++(b.type == BindingType::kStorage ? storage : uniform);
    }
    bound_.push_back({*pipeline, VK_NULL_HANDLE, VK_NULL_HANDLE, indirect});
    if (dispatch.live_axis >= 0) ++indirect;
  }
  const BufferSpan& args = inputs_.indirect_args;
  if (indirect > 0 &&
      (!args.buffer || args.bytes < indirect * kIndirectCommandBytes || args.offset % 4 != 0 ||
       args.offset > args.buffer->bytes() || args.bytes > args.buffer->bytes() - args.offset)) {
    return invalid_argument(
        message({"[indirect arguments] ", indirect, " dispatches need ",
                 indirect * kIndirectCommandBytes, " bytes at a multiple of 4, but the span has ",
                 args.bytes, " bytes at offset ", args.offset, "; bind enough"}));
  }
  VKF_CHECK(make_descriptor_pool(storage, uniform));
  for (size_t i = 0; i < bound_.size(); ++i) {
    VKF_CHECK(write_set(plan_.dispatches[i], bound_[i]));
  }
  return make_tables();
}

Status Recorder::make_tables() {
  BufferTables tables(context_);
  VkDescriptorSetLayout layout = VK_NULL_HANDLE;
  std::vector<std::pair<BoundDispatch*, size_t>> wanted;
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (!bound_[i].pipeline.table_layout) continue;
    const Dispatch& dispatch = plan_.dispatches[i];
    layout = bound_[i].pipeline.table_layout;
    VKF_ASSIGN(const VkDescriptorBufferInfo range,
               describe(dispatch, dispatch.table_binding, BindingType::kStorage));
    wanted.push_back({&bound_[i], tables.add({range, dispatch.table_part_bytes})});
  }
  VKF_ASSIGN(out_.tables, tables.make(layout));
  for (const auto& [bound, number] : wanted) bound->table = tables.set(number);
  return {};
}

Status Recorder::make_pools() {
  VKF_ASSIGN(out_.commands, make_command_pool(context_, 0, "[recording]"));
  const bool profile = inputs_.profile == RecordingInputs::Profile::kOn;
  if (!profile || context_.timestamp_bits == 0 || plan_.dispatches.empty()) return {};
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = static_cast<uint32_t>(2 * plan_.dispatches.size());
  return context_.check_made(
      context_.api.CreateQueryPool(context_.device, &info, context_.allocator, &out_.queries),
      out_.queries, "[recording] vkCreateQueryPool");
}

Status Recorder::begin_chunk() {
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = out_.commands;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VKF_CHECK(context_.check(context_.api.AllocateCommandBuffers(context_.device, &info, &commands_),
                           "[recording] vkAllocateCommandBuffers"));
  chunk_flops_ = 0;
  return begin_commands(context_, commands_, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
                        "[recording]");
}

Status Recorder::end_chunk() {
  VKF_CHECK(
      context_.check(context_.api.EndCommandBuffer(commands_), "[recording] vkEndCommandBuffer"));
  out_.chunks.push_back({commands_, chunk_flops_});
  return {};
}

bool Recorder::writes_indirect_args(const Dispatch& dispatch) const {
  const BufferSpan& args = inputs_.indirect_args;
  if (!args.buffer) return false;
  for (const BoundBuffer& b : dispatch.bindings) {
    const BufferSpan& span = out_.spans[b.buffer];
    if (b.access == Access::kRead || !span.buffer) continue;
    const bool same = span.buffer->impl() == args.buffer->impl();
    if (same && span.offset < args.offset + args.bytes && args.offset < span.offset + span.bytes) {
      return true;
    }
  }
  return false;
}

// The plan's barriers before this dispatch, joined into one, and those for the indirect arguments.
// They take part only where this dispatch reads or writes them. For a barrier that NVIDIA's driver
// must make visible to the reader of arguments it stops the whole queue, which doubles its time.
void Recorder::barrier_before(uint32_t index) {
  const Dispatch& dispatch = plan_.dispatches[index];
  const bool reads_args = dispatch.live_axis >= 0 && args_written_;
  const bool after_args_read = args_read_ && writes_indirect_args(dispatch);
  bool memory = reads_args;
  bool execution = after_args_read;
  for (; next_barrier_ < plan_.barriers.size() &&
         plan_.barriers[next_barrier_].before_dispatch <= index;
       ++next_barrier_) {
    const bool light = plan_.barriers[next_barrier_].write_after_read_only;
    (light ? execution : memory) = true;
  }
  if (!memory && !execution) return;
  ++out_.barriers;
  VkPipelineStageFlags from = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  VkPipelineStageFlags to = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  VkAccessFlags reads = kComputeAccess;
  if (after_args_read) {
    from |= VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
    args_read_ = false;
  }
  if (reads_args) {
    to |= VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
    reads |= VK_ACCESS_INDIRECT_COMMAND_READ_BIT;
    args_written_ = false;
  }
  if (!memory) {
    context_.api.CmdPipelineBarrier(commands_, from, to, 0, 0, nullptr, 0, nullptr, 0, nullptr);
    return;
  }
  context_.memory_barrier(commands_, from, VK_ACCESS_SHADER_WRITE_BIT, to, reads);
}

void Recorder::timestamp(VkQueryPool pool, uint32_t query) {
  if (!pool) return;
  context_.api.CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, query);
}

// Validation layers look closer at vkCmdDispatch, so the common case uses it.
void Recorder::dispatch_part(const DispatchPart& part) {
  const auto& [x, y, z] = part.groups;
  has_base_ = part.base != std::array<uint32_t, 3>{};
  if (has_base_) {
    context_.api.CmdDispatchBase(commands_, part.base[0], part.base[1], part.base[2], x, y, z);
  } else {
    context_.api.CmdDispatch(commands_, x, y, z);
  }
}

void Recorder::record_indirect(uint32_t index) {
  // Whatever the application or we recorded before may have had a base.
  if (context_.caps.keeps_dispatch_base && has_base_) dispatch_part({{0, 0, 0}, {0, 0, 0}, 0});
  const BufferSpan& args = inputs_.indirect_args;
  context_.api.CmdDispatchIndirect(commands_, args.buffer->impl()->placed.handle,
                                   args.offset + bound_[index].indirect * kIndirectCommandBytes);
  args_read_ = true;
}

// What vkCmdBindPipeline and its company need again in every command buffer.
void Recorder::bind(uint32_t index) {
  const DeviceApi& api = context_.api;
  const BoundDispatch& bound = bound_[index];
  const std::vector<std::byte>& push = plan_.dispatches[index].push;
  api.CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound.pipeline.handle);
  if (bound.set) {
    const std::array sets = {bound.set, bound.table};
    api.CmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound.pipeline.layout, 0,
                              bound.table ? 2 : 1, sets.data(), 0, nullptr);
  }
  if (!push.empty()) {
    api.CmdPushConstants(commands_, bound.pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                         static_cast<uint32_t>(push.size()), push.data());
  }
}

Status Recorder::check_part(const Dispatch& dispatch, const DispatchPart& part) const {
  const DeviceLimits& limits = context_.caps.limits;
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint64_t end = uint64_t{part.base[axis]} + part.groups[axis];
    if (part.groups[axis] > 0 && end <= limits.max_group_count[axis]) continue;
    return unsupported(
        message({who(dispatch), " has ", part.groups[axis], " workgroups from ", part.base[axis],
                 " along axis ", axis, ", but this device allows 1 to ",
                 limits.max_group_count[axis], "; use a smaller batch or sequence"}));
  }
  return {};
}

Status Recorder::record_parts(uint32_t index) {
  const Dispatch& dispatch = plan_.dispatches[index];
  const double limit = context_.caps.max_dispatch_flops * kDispatchesPerSubmit;
  const bool scattered = context_.scatter_seed != 0;
  for (const DispatchPart& part :
       scattered ? scattered_parts(dispatch, context_.scatter_seed + index)
                 : split_dispatch(dispatch, context_.caps.max_dispatch_flops)) {
    VKF_CHECK(check_part(dispatch, part));
    if (scattered) see_all_before();
    if (chunk_flops_ > 0 && chunk_flops_ + part.flops > limit) {
      end_label(context_, commands_);
      VKF_CHECK(end_chunk());
      VKF_CHECK(begin_chunk());
      begin_label(context_, commands_, dispatch);
      bind(index);
    }
    chunk_flops_ += part.flops;
    dispatch_part(part);
    out_.workgroups += uint64_t{part.groups[0]} * part.groups[1] * part.groups[2];
  }
  return {};
}

Status Recorder::record_dispatch(uint32_t index) {
  const Dispatch& dispatch = plan_.dispatches[index];
  const double limit = context_.caps.max_dispatch_flops * kDispatchesPerSubmit;
  const bool full = chunk_flops_ > 0 && chunk_flops_ + dispatch.flops > limit;
  const bool indirect = is_indirect(dispatch, context_.caps.max_dispatch_flops);
  if (indirect && full) {
    VKF_CHECK(end_chunk());
    VKF_CHECK(begin_chunk());
  }
  barrier_before(index);
  begin_label(context_, commands_, dispatch);
  timestamp(out_.queries, 2 * index);
  bind(index);
  if (indirect) {
    chunk_flops_ += dispatch.flops;
    record_indirect(index);
  } else {
    VKF_CHECK(record_parts(index));
  }
  timestamp(out_.queries, 2 * index + 1);
  end_label(context_, commands_);
  if (writes_indirect_args(dispatch)) args_written_ = true;
  return {};
}

}  // namespace vkformer
