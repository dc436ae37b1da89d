// Weights that a file holds as GPUs read them, so that loading copies them and packs nothing. The
// layout is the same on every device; matrices are in slices that every device can bind.
// docs/files.md has the files.
//
// Threading: pure functions; what is read is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"
#include "checkpoint/sparse_file.h"
#include "weights/weight_table.h"

namespace vkformer {

// Bytes of a slice: what Vulkan promises of maxStorageBufferRange.
inline constexpr uint64_t kDeviceWeightsSlice = uint64_t{1} << 27;

// The text of the index. It has the version of the layouts, and so differs where they changed.
std::string device_weights_index(const std::vector<PackedWeight>& weights);

// The bytes of all weights, packed, with zeros before some of them.
Result<std::vector<std::byte>> make_device_weights(const std::vector<PackedWeight>& weights,
                                                   const Checkpoint& checkpoint,
                                                   const Helpers& helpers);

// Weights one after the other, and the pages of the system that they lie in.
struct PageRun {
  std::span<const std::byte> pages;
  size_t first = 0, end = 0;  // weights [first, end)
};

class DeviceWeights {
 public:
  // Of a store that has an index. `weights`: what the model needs, resolved with slices of
  // kDeviceWeightsSlice. An error names the first weight that the index has otherwise.
  static Result<DeviceWeights> open(const FileStore& files,
                                    const std::vector<PackedWeight>& weights);

  std::span<const std::byte> bytes_of(size_t weight) const {
    return file_->bytes().subspan(places_[weight].begin,
                                  places_[weight].end - places_[weight].begin);
  }
  // All bytes, which live as long as it.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  // Runs of the weights that `wanted` names. Their pages begin and end at multiples of `alignment`,
  // and have at most `most_bytes` where that holds a weight. None if the file is not mapped, or if
  // devices could not bind its weights where they are.
  std::vector<PageRun> page_runs(const std::vector<bool>& wanted, uint64_t alignment,
                                 uint64_t most_bytes) const;

 private:
  DeviceWeights(MappedFile file, std::vector<ByteRange> places)
      : file_(std::make_shared<const MappedFile>(std::move(file))), places_(std::move(places)) {}

  std::shared_ptr<const MappedFile> file_;
  std::vector<ByteRange> places_;  // by weight
};

// An error where a store has weights only as GPUs read them, which `who` cannot use.
Status check_stores_values(const FileStore& files, const std::string& who);

}  // namespace vkformer
