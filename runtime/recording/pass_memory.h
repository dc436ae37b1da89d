// The memory of a pass: its external tensors by name, in our memory or the application's, and what
// the host exchanges with them.
//
// Where the host can map a tensor's memory it writes there. Elsewhere it writes into one block of
// host memory, from which the pass's next submit copies. Results come back into another block in
// the same submit. So an exchange never takes its own submit, and waits for this pass only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "load/loaded_model.h"
#include "vulkan/submission.h"

namespace vkformer {

// Where the application wants a tensor to be.
struct TensorPlace {
  std::shared_ptr<Buffer> view;  // of the application's buffer
  uint64_t handle = 0;           // its bits, which tell views apart
  uint64_t offset = 0;           // bytes
  uint64_t bytes = 0;

  bool operator==(const TensorPlace& other) const {
    return handle == other.handle && offset == other.offset && bytes == other.bytes;
  }
};

// What the host does with external tensors, by name; what it names in neither list is the GPU's
// own.
struct HostAccess {
  std::vector<std::string> writes;
  std::vector<std::string> reads;
};

// Part of a tensor.
struct TensorPart {
  std::string name;
  uint64_t offset = 0;  // bytes
  uint64_t bytes = 0;
};

// The blocks of host memory of a pass, added up before it is made.
class HostBlockSizes {
 public:
  explicit HostBlockSizes(const VulkanDevice& device) : device_(device) {}
  // The places of a tensor in the blocks.
  struct Places {
    uint64_t sent_at = 0, returned_at = 0;  // bytes
  };
  Places add(const std::string& name, uint64_t bytes, const HostAccess& access);
  uint64_t sent() const { return sent_; }          // bytes
  uint64_t returned() const { return returned_; }  // bytes

 private:
  const VulkanDevice& device_;
  uint64_t sent_ = 0, returned_ = 0;
};

class PassMemory {
 public:
  explicit PassMemory(std::shared_ptr<VulkanDevice> device)
      : device_(std::move(device)), blocks_(*device_) {}
  PassMemory(const PassMemory&) = delete;
  PassMemory& operator=(const PassMemory&) = delete;

  const std::shared_ptr<VulkanDevice>& device() const { return device_; }
  // Before allocate: these tensors are in the application's buffers.
  void place(const std::map<std::string, TensorPlace>& places) { places_ = places; }
  bool placed(const std::string& name) const { return places_.count(name) != 0; }
  // Makes sure that every external tensor of the plan has memory of at least its size. A tensor
  // that several plans name is one; its host access is that of the first.
  Status allocate(const Plan& plan, const HostAccess& access);
  // Memory for what the recording needs beside the plan's tensors: arguments of indirect
  // dispatches.
  Status add(const std::string& name, uint64_t bytes, const HostAccess& access);
  // The memory of every external and constant buffer of the plan. `model` has the constants; null:
  // there are none.
  RecordingInputs bind(const Plan& plan, const LoadedModel* model) const;

  // Whether a plan of the pass has the tensor, in our memory.
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  // Precondition: has(name).
  const Buffer& buffer(const std::string& name) const { return *tensors_.at(name).buffer; }

  // What a part of the tensor holds from the next submit on. The tensor must be among
  // HostAccess::writes.
  enum class InFlight : uint8_t {
    kMayRead,      // waits until the last submit that uses the tensor has run
    kDoesNotRead,  // what is in flight does not read this part: goes on at once
  };
  Status write(const std::string& name, uint64_t word, std::span<const uint32_t> values,
               InFlight in_flight = InFlight::kMayRead);
  // Runs the ranges after what was written, then makes `copies` to other passes' tensors and hands
  // out `reads` for `read`, of tensors among HostAccess::reads.
  Status submit(std::span<const RecordingRange> ranges, std::span<const TensorPart> reads,
                std::span<const BufferCopy> copies = {});
  // Sends what was written at once, for what is written once and must outlive a pass that is given
  // up.
  Status send() { return submit({}, {}); }
  // Until the last submit has run.
  Status wait() { return device_->wait(last_value_); }
  // After wait: what the last submit, or the last slices, left there.
  Status read(const TensorPart& from, std::span<std::byte> values) const;

  // For slices instead of submit: copies before the first and after the last piece.
  std::vector<BufferCopy> take_writes() { return std::exchange(pending_, {}); }
  Result<std::vector<BufferCopy>> copies_of(std::span<const TensorPart> reads);
  // Submits so far.
  int64_t submits() const { return submits_; }

 private:
  struct Tensor {
    std::unique_ptr<Buffer> buffer;  // does not move: spans point at it
    // Of no meaning where the host writes or reads the buffer itself.
    HostBlockSizes::Places at;
    bool writes = false, reads = false;
  };
  // Waits until the host may write where `write` writes for the tensor.
  Status wait_to_write(const Tensor& tensor);
  bool writes_directly(const Tensor& t) const { return t.buffer->mapped() != nullptr; }
  bool reads_directly(const Tensor& t) const { return t.buffer->host_cached(); }
  // A block of host memory of at least `bytes`; what it held is lost where it grows.
  Status make_block(std::unique_ptr<Buffer>& block, uint64_t bytes, const char* name);
  void add_pending(const Tensor& tensor, uint64_t begin, uint64_t end);

  std::shared_ptr<VulkanDevice> device_;
  std::unordered_map<std::string, Tensor> tensors_;
  std::map<std::string, TensorPlace> places_;
  std::unique_ptr<Buffer> sent_, returned_;  // the blocks; null until they are needed
  HostBlockSizes blocks_;
  std::vector<BufferCopy> pending_;  // of what was written since the last submit; none overlap
  uint64_t last_value_ = 0;
  int64_t submits_ = 0;
};

}  // namespace vkformer
