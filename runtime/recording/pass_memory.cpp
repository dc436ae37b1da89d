#include "recording/pass_memory.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"

namespace vkformer {
namespace {

constexpr uint64_t kBlockAlignment = 16;  // bytes, of a tensor's place in a block

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Takes `bytes` from the end of a block.
uint64_t next_place(uint64_t& block_bytes, uint64_t bytes) {
  const uint64_t at = block_bytes;
  block_bytes += (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  return at;
}

MemoryUse use_of(bool host_writes) {
  return host_writes ? MemoryUse::kHostWritten : MemoryUse::kDevice;
}

}  // namespace

HostBlockSizes::Places HostBlockSizes::add(const std::string& name, uint64_t bytes,
                                           const HostAccess& access) {
  Places places;
  const bool writes = among(access.writes, name);
  const HostReach reach = device_.host_reach(use_of(writes));
  if (writes && !reach.mapped) places.sent_at = next_place(sent_, bytes);
  if (among(access.reads, name) && !reach.cached) places.returned_at = next_place(returned_, bytes);
  return places;
}

Status PassMemory::add(const std::string& name, uint64_t bytes, const HostAccess& access) {
  const auto known = tensors_.find(name);
  if (known != tensors_.end()) {
    const uint64_t has = known->second.buffer->bytes();
    if (has >= bytes) return {};
    return internal_error(message(
        {"[", name, "] is ", bytes, " bytes in one pass and ", has, " in another that shares it"}));
  }
  Tensor tensor;
  tensor.writes = among(access.writes, name);
  tensor.reads = among(access.reads, name);
  VKF_ASSIGN(Buffer buffer, device_->make_buffer(bytes, use_of(tensor.writes), name));
  tensor.buffer = std::make_unique<Buffer>(std::move(buffer));
  tensor.at = blocks_.add(name, bytes, access);
  tensors_.emplace(name, std::move(tensor));
  return {};
}

Status PassMemory::allocate(const Plan& plan, const HostAccess& access) {
  for (const PlanBuffer& b : plan.buffers) {
    if (b.source != BufferSource::kExternal || placed(b.name)) continue;
    VKF_CHECK(add(b.name, b.bytes, access));
  }
  return {};
}

RecordingInputs PassMemory::bind(const Plan& plan, const LoadedModel* model) const {
  RecordingInputs inputs;
  inputs.memory.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& b = plan.buffers[i];
    const auto place = places_.find(b.name);
    if (b.source == BufferSource::kConstant && model != nullptr) {
      inputs.memory[i] = model->weight_memory(b.constant);
    } else if (b.source == BufferSource::kExternal && place != places_.end()) {
      inputs.memory[i] = {place->second.view.get(), place->second.offset, place->second.bytes};
    } else if (b.source == BufferSource::kExternal) {
      inputs.memory[i] = {&buffer(b.name), 0, b.bytes};
    }
  }
  return inputs;
}

Status PassMemory::make_block(std::unique_ptr<Buffer>& block, uint64_t bytes, const char* name) {
  if (block && block->bytes() >= bytes) return {};
  VKF_ASSIGN(Buffer made, device_->make_buffer(bytes, MemoryUse::kHost, name));
  if (!made.mapped()) return internal_error(message({"[", name, "] is host memory without a map"}));
  block = std::make_unique<Buffer>(std::move(made));
  return {};
}

// Joins the range with those it overlaps or touches: all of them were written by the host, and two
// copies to one place would race.
void PassMemory::add_pending(const Tensor& tensor, uint64_t begin, uint64_t end) {
  for (auto it = pending_.begin(); it != pending_.end();) {
    const uint64_t other = it->offset;
    if (it->to != tensor.buffer.get() || other > end || other + it->from.bytes < begin) {
      ++it;
      continue;
    }
    begin = std::min(begin, other);
    end = std::max(end, other + it->from.bytes);
    it = pending_.erase(it);
  }
  pending_.push_back(
      {{sent_.get(), tensor.at.sent_at + begin, end - begin}, tensor.buffer.get(), begin});
}

Status PassMemory::wait_to_write(const Tensor& tensor) {
  if (writes_directly(tensor)) return device_->wait(tensor.buffer->last_use());
  return sent_ ? device_->wait(sent_->last_use()) : Status{};
}

Status PassMemory::write(const std::string& name, uint64_t word, std::span<const uint32_t> values,
                         InFlight in_flight) {
  if (values.empty()) return {};
  const Tensor& tensor = tensors_.at(name);
  const uint64_t offset = 4 * word;
  if (!tensor.writes || offset + values.size_bytes() > tensor.buffer->bytes()) {
    return internal_error(
        message({"[", name, "] ", values.size(), " words from word ", word,
                 " on are not the host's to write; it has ", tensor.buffer->bytes(), " bytes"}));
  }
  if (in_flight == InFlight::kMayRead) VKF_CHECK(wait_to_write(tensor));
  std::byte* to = tensor.buffer->mapped();
  if (to == nullptr) {
    // A larger block takes the place of one whose copies are under way.
    if (sent_ && sent_->bytes() < blocks_.sent()) VKF_CHECK(send());
    VKF_CHECK(make_block(sent_, blocks_.sent(), "inputs on their way"));
    to = sent_->mapped() + tensor.at.sent_at;
    add_pending(tensor, offset, offset + values.size_bytes());
  }
  std::memcpy(to + offset, values.data(), values.size_bytes());
  return {};
}

Result<std::vector<BufferCopy>> PassMemory::copies_of(std::span<const TensorPart> reads) {
  std::vector<BufferCopy> copies;
  for (const TensorPart& from : reads) {
    const Tensor& tensor = tensors_.at(from.name);
    if (!tensor.reads)
      return internal_error(message({"[", from.name, "] is not the host's to read"}));
    if (reads_directly(tensor) || from.bytes == 0) continue;
    VKF_CHECK(make_block(returned_, blocks_.returned(), "results on their way"));
    copies.push_back({{tensor.buffer.get(), from.offset, from.bytes},
                      returned_.get(),
                      tensor.at.returned_at + from.offset});
  }
  return copies;
}

Status PassMemory::submit(std::span<const RecordingRange> ranges, std::span<const TensorPart> reads,
                          std::span<const BufferCopy> copies) {
  VKF_ASSIGN(std::vector<BufferCopy> after, copies_of(reads));
  after.insert(after.begin(), copies.begin(), copies.end());
  if (ranges.empty() && pending_.empty() && after.empty()) return {};
  // What was written stays pending if the submit is refused.
  VKF_ASSIGN(last_value_, device_->submit({.before = pending_, .ranges = ranges, .after = after}));
  pending_.clear();
  ++submits_;
  return {};
}

Status PassMemory::read(const TensorPart& from, std::span<std::byte> values) const {
  const Tensor& tensor = tensors_.at(from.name);
  const uint64_t bytes = tensor.buffer->bytes();
  if (values.size() > from.bytes || from.offset > bytes || from.bytes > bytes - from.offset) {
    return internal_error(message({"[", from.name, "] ", values.size(), " of ", from.bytes,
                                   " bytes from byte ", from.offset, " on exceed ", bytes}));
  }
  const std::byte* block = tensor.buffer->mapped();
  if (!reads_directly(tensor)) block = returned_->mapped() + tensor.at.returned_at;
  std::memcpy(values.data(), block + from.offset, values.size());
  return {};
}

}  // namespace vkformer
