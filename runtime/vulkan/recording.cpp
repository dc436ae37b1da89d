#include "vulkan/recording.h"

#include <chrono>
#include <utility>

#include "vulkan/command_buffers.h"
#include "vulkan/copy_commands.h"
#include "vulkan/dispatch_profiler.h"
#include "vulkan/recorder.h"
#include "vulkan/slice_stream.h"
#include "vulkan/submission.h"

namespace vkformer {

void Recording::Impl::submitted(uint64_t value) {
  last_value.raise_to(value);
  for (Buffer::Impl* buffer : used) buffer->last_use.raise_to(value);
}

std::pair<uint32_t, uint32_t> Recording::Impl::dispatches_of(RecordingPart part) const {
  const auto count = static_cast<uint32_t>(plan.dispatches.size());
  switch (part) {
    case RecordingPart::kBeforeCut:
      return {0, inputs.cut};
    case RecordingPart::kAfterCut:
      return {inputs.cut, count};
    case RecordingPart::kAll:
      break;
  }
  return {0, count};
}

std::span<const SubmitChunk> Recording::Impl::chunks_of(RecordingPart part) const {
  const std::span<const SubmitChunk> all = chunks;
  if (part == RecordingPart::kBeforeCut) return all.first(cut_chunk);
  return part == RecordingPart::kAfterCut ? all.subspan(cut_chunk) : all;
}

Recording::Impl::~Impl() {
  if (!device) return;
  VulkanDevice::Impl& owner = device->impl();
  owner.timeline->settle(last_value.load());
  const DeviceApi& api = owner.context.api;
  const VkDevice handle = owner.context.device;
  const VkAllocationCallbacks* allocator = owner.context.allocator;
  if (queries) api.DestroyQueryPool(handle, queries, allocator);
  if (commands) destroy_command_pool(owner.context, commands);
  if (descriptors) api.DestroyDescriptorPool(handle, descriptors, allocator);
  if (tables) api.DestroyDescriptorPool(handle, tables, allocator);
}

Recording::Recording(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

Result<Recording> Recording::create(std::shared_ptr<VulkanDevice> device, Plan plan,
                                    const RecordingInputs& inputs) {
  RecordingInputs timed = inputs;
  const auto profiler = device ? device->impl().profiler : nullptr;
  // What is watched runs dispatch by dispatch, and has no times.
  if (profiler != nullptr) {
    timed.profile =
        profiler->watches() ? RecordingInputs::Profile::kOff : RecordingInputs::Profile::kOn;
  }
  VKF_ASSIGN(Recording made, prepare(std::move(device), std::move(plan), timed));
  VKF_CHECK(made.impl_->recorder->record());
  if (profiler != nullptr) made.impl_->profiled = profiler->recorded(made.plan());
  return made;
}

Result<Recording> Recording::prepare(std::shared_ptr<VulkanDevice> device, Plan plan,
                                     const RecordingInputs& inputs) {
  if (!device) return invalid_argument("[recording] the device is null; make a Device first");
  VKF_CHECK(device->impl().context.check_alive());
  auto impl = std::make_unique<Impl>();
  impl->device = std::move(device);
  impl->plan = std::move(plan);
  impl->inputs = inputs;
  impl->recorder = std::make_unique<Recorder>(*impl, impl->plan, impl->inputs);
  VKF_CHECK(impl->recorder->prepare());
  return Recording(std::move(impl));
}

Status Recording::append(VkCommandBuffer_T* commands) {
  if (commands == VK_NULL_HANDLE) {
    return invalid_argument("[record] the command buffer is null; begin one first");
  }
  const Context& context = impl_->device->impl().context;
  VKF_CHECK(context.check_alive());
  PieceQueries untimed;
  lower_occupancy(context, commands);
  const Status appended = impl_->recorder->append(
      commands, all_pieces(impl_->plan, context.caps.max_dispatch_flops), untimed);
  restore_occupancy(context, commands);
  return appended;
}

const Plan& Recording::plan() const {
  return impl_->plan;
}

uint64_t Recording::direct_workgroups() const {
  return impl_->workgroups;
}
uint32_t Recording::dispatch_count() const {
  return impl_->dispatches;
}
uint32_t Recording::barrier_count() const {
  return impl_->barriers;
}
uint64_t Recording::arena_bytes() const {
  return impl_->arena.bytes();
}

Status Recording::fill_arena(uint32_t word) const {
  if (!impl_->arena.valid()) return {};
  return impl_->device->fill(impl_->arena, 0, impl_->arena.bytes(), word);
}

BufferSpan Recording::arena_span(uint32_t index) const {
  if (index >= impl_->spans.size() || impl_->spans[index].buffer != &impl_->arena) return {};
  return impl_->spans[index];
}

BufferSpan Recording::span_of(uint32_t index) const {
  return index < impl_->spans.size() ? impl_->spans[index] : BufferSpan{};
}

Result<std::vector<double>> Recording::dispatch_times() const {
  VKF_ASSIGN(const std::vector<Span> spans, dispatch_spans(RecordingPart::kAll));
  std::vector<double> times;
  for (const Span& span : spans) times.push_back(span.ns);
  return times;
}

Result<std::vector<Recording::Span>> Recording::dispatch_spans(RecordingPart part) const {
  std::vector<Span> spans;
  if (!impl_->queries) return spans;
  VulkanDevice::Impl& owner = impl_->device->impl();
  const uint64_t value = impl_->timed_value.load();
  if (value == 0) {
    return invalid_argument("[recording] was never submitted, so it has no times; submit it first");
  }
  VKF_CHECK(owner.timeline->wait(value));
  Context& context = owner.context;
  const auto [first, end] = impl_->dispatches_of(part);
  const uint32_t count = 2 * (end - first);
  std::vector<uint64_t> ticks(count);
  VKF_CHECK(context.check(
      context.api.GetQueryPoolResults(
          context.device, impl_->queries, 2 * first, count, ticks.size() * sizeof(uint64_t),
          ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
      "[recording] vkGetQueryPoolResults"));
  const uint64_t mask = context.timestamp_bits >= 64 ? ~0ull : (1ull << context.timestamp_bits) - 1;
  for (uint32_t i = 0; i < end - first; ++i) {
    const uint64_t ticked = (ticks[2 * i + 1] - ticks[2 * i]) & mask;
    spans.push_back({static_cast<double>(ticks[2 * i] & mask) * context.timestamp_period,
                     static_cast<double>(ticked) * context.timestamp_period});
  }
  return spans;
}

void VulkanDevice::set_profiler(std::shared_ptr<DispatchProfiler> profiler) {
  impl_->profiler = std::move(profiler);
}

std::shared_ptr<DispatchProfiler> VulkanDevice::profiler() const {
  return impl_->profiler;
}

namespace {

// The copies of a submission as command buffers. They come back to their owner with the value of
// the submit, or with 0 where there was none.
class CopyChunk {
 public:
  explicit CopyChunk(CopyCommands& owner) : owner_(owner) {}
  CopyChunk(const CopyChunk&) = delete;
  CopyChunk& operator=(const CopyChunk&) = delete;
  ~CopyChunk() {
    if (recorded_) owner_.submitted(*recorded_, value_);
  }
  Status record(std::span<const BufferCopy> copies, CopyCommands::When when,
                std::vector<SubmitChunk>& chunks) {
    if (copies.empty()) return {};
    VKF_ASSIGN(recorded_, owner_.record(copies, when));
    chunks.push_back(CopyCommands::chunk(*recorded_));
    return {};
  }
  void submitted(uint64_t value) { value_ = value; }

 private:
  CopyCommands& owner_;
  CopyCommands::Recorded* recorded_ = nullptr;
  uint64_t value_ = 0;
};

}  // namespace

Result<uint64_t> VulkanDevice::submit(const Submission& submission) {
  for (const RecordingRange& range : submission.ranges) {
    if (!range.recording || range.recording->impl().device.get() != this) {
      return invalid_argument(
          "[submit] a recording is null or was made on another device; submit it there");
    }
  }
  return impl_->profiler == nullptr ? submit_now(submission) : submit_profiled(submission);
}

Result<uint64_t> VulkanDevice::submit_now(const Submission& submission) {
  std::vector<SubmitChunk> chunks;
  CopyChunk before(*impl_->copies), after(*impl_->copies);
  chunks.reserve(2 + 2 * submission.ranges.size());
  VKF_CHECK(before.record(submission.before, CopyCommands::When::kBeforeKernels, chunks));
  for (const RecordingRange& range : submission.ranges) {
    const auto own = range.recording->impl().chunks_of(range.part);
    chunks.insert(chunks.end(), own.begin(), own.end());
  }
  VKF_CHECK(after.record(submission.after, CopyCommands::When::kAfterKernels, chunks));
  VKF_ASSIGN(const uint64_t value, impl_->timeline->submit(chunks));
  before.submitted(value);
  after.submitted(value);
  mark_used(submission.before, value);
  mark_used(submission.after, value);
  const Recording* last = nullptr;
  for (const RecordingRange& range : submission.ranges) {
    if (std::exchange(last, range.recording) == range.recording) continue;  // a step several times
    range.recording->impl().submitted(value);
    range.recording->impl().timed_value.raise_to(value);
  }
  return value;
}

// Every range is its own submit that is waited for, or every dispatch where the profiler wants
// to see what each wrote.
Result<uint64_t> VulkanDevice::submit_profiled(const Submission& submission) {
  const size_t count = submission.ranges.size();
  if (count == 0) return submit_now(submission);
  if (impl_->profiler->watches() && !submission.before.empty()) {
    VKF_CHECK(submit_now({.before = submission.before}));
  }
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const RecordingRange& range = submission.ranges[i];
    if (impl_->profiler->watches()) {
      VKF_ASSIGN(value, submit_watched(*range.recording, range.part));
      continue;
    }
    Submission one{.ranges = {&range, 1}};
    if (i == 0) one.before = submission.before;
    if (i + 1 == count) one.after = submission.after;
    const auto begin = std::chrono::steady_clock::now();
    VKF_ASSIGN(value, submit_now(one));
    VKF_CHECK(wait(value));
    const std::chrono::duration<double, std::nano> wall = std::chrono::steady_clock::now() - begin;
    VKF_ASSIGN(const std::vector<Recording::Span> spans,
               range.recording->dispatch_spans(range.part));
    const Recording::Impl& recording = range.recording->impl();
    const auto [first, end] = recording.dispatches_of(range.part);
    impl_->profiler->finished({recording.profiled, first, end - first}, spans, wall.count());
  }
  if (!impl_->profiler->watches() || submission.after.empty()) return value;
  return submit_now({.after = submission.after});
}

Result<uint64_t> VulkanDevice::submit_watched(const Recording& recording, RecordingPart part) {
  VKF_ASSIGN(const std::unique_ptr<SliceStream> stream, SliceStream::create(shared_from_this()));
  const auto [first, end] = recording.impl().dispatches_of(part);
  Slice slice;
  slice.parts = {{&recording, {}}};
  std::vector<PlanPiece>& now = slice.parts[0].pieces;
  const std::vector<PlanPiece> pieces = all_pieces(recording.plan(), caps().max_dispatch_flops);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].dispatch < first || pieces[i].dispatch >= end) continue;
    now.push_back(pieces[i]);
    const bool last = i + 1 == pieces.size() || pieces[i + 1].dispatch != pieces[i].dispatch;
    if (!last && now.size() < SliceStream::kMostPieces) continue;
    VKF_CHECK(stream->submit(slice, {}));
    VKF_CHECK(stream->wait());
    stream->forget_all();
    now.clear();
    if (last) VKF_CHECK(impl_->profiler->executed(recording, pieces[i].dispatch));
  }
  return impl_->timeline->last_submitted();
}

}  // namespace vkformer
