// A model on a device: its family, its packed weights in device memory, its facts.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "load/model_split.h"
#include "model/model.h"
#include "vkformer/model.h"
#include "vulkan/recording.h"
#include "weights/device_weights.h"
#include "weights/merge_adapters.h"
#include "weights/request_adapters.h"

namespace vkformer {

// Where each weight lies: in chunks of device memory, or of host memory that the device reads, or
// in a pack's own pages.
struct WeightLayoutPlan {
  std::vector<uint64_t> chunks;    // bytes
  std::vector<MemoryUse> uses;     // by chunk
  std::vector<uint32_t> chunk_of;  // by weight
  std::vector<uint64_t> offsets;   // by weight, bytes
  std::vector<PageRun> runs;  // of weights that are in no chunk, since the file has their pages
};

// A model as its files say, before anything is on the device.
struct ModelWeights {
  std::unique_ptr<ModelFamily> family;
  std::optional<Checkpoint> checkpoint;
  std::vector<PackedWeight> weights;
  // Tensors whose elements the table was made of.
  std::shared_ptr<std::set<std::string>> reads = std::make_shared<std::set<std::string>>();
  Precision precision = Precision::kF32;
  uint64_t device_memory = 0;           // ModelOptions::device_memory
  bool copy_weights = false;            // ModelOptions::copy_weights
  std::optional<DeviceWeights> packed;  // of files that have them as GPUs read them
  std::vector<ScaledAdapter> adapters;
  WeightTable table;                          // where there are adapters
  std::vector<std::string> request_adapters;  // names, in the order of their scales
};
// `caps`: of the device that is to bind them. `parts`: devices among which every layer is divided.
Result<ModelWeights> read_model_weights(const DeviceCaps& caps, const FileStore& files,
                                        const ModelOptions& options, int64_t parts = 1);

// Where weights lie on a device, of those that `held` names (empty: all).
WeightLayoutPlan plan_chunks(const VulkanDevice& device, const ModelWeights& read,
                             const std::vector<bool>& held);

class LoadedModel {
 public:
  // Memory for the weights of `read`, whose checkpoint stays there; upload fills it.
  static Result<std::shared_ptr<LoadedModel>> create(std::shared_ptr<VulkanDevice> device,
                                                     ModelWeights& read);
  // The whole of it as its members hold it: `split` has no parts yet, which are made here, with
  // memory for the weights of each.
  static Result<std::shared_ptr<LoadedModel>> create_split(ModelSplit split, ModelWeights& read);
  // Keeps what set_adapter_scales needs of `read`, if it has adapters.
  void keep_adapters(ModelWeights& read);
  // Precondition: nothing that uses the weights runs or is recorded to run.
  Status set_adapter_scales(const std::vector<float>& scales) const;
  // Packs every weight and copies it to the device; `options` may watch and cancel.
  Status upload(const ModelWeights& read, const ModelOptions& options);

  const std::shared_ptr<VulkanDevice>& device() const { return device_; }
  const ModelFamily& family() const { return *family_; }
  const std::vector<PackedWeight>& weights() const { return weights_; }
  // Which device has which layers, where several have them; null: one device has all. A model that
  // is split holds no weights; its parts hold them.
  const ModelSplit* split() const { return split_.get(); }
  // Memory of weight `index`; none where another part has it.
  BufferSpan weight_memory(uint32_t index) const { return spans_[index]; }
  const ModelInfo& info() const { return info_; }
  Precision precision() const { return precision_; }
  uint64_t weight_bytes() const { return weight_bytes_; }
  // Of these, in host memory.
  uint64_t host_weight_bytes() const { return host_weight_bytes_; }
  // Names of adapters that each sequence has its own scales of, in the order of these.
  const std::vector<std::string>& request_adapters() const { return request_adapters_; }

 private:
  LoadedModel() = default;
  // Of the weights that `held` names; empty: all.
  Status make_chunks(ModelWeights& read, const std::vector<bool>& held);
  // Buffers of the pages of these runs, or of none where the driver does not take them.
  std::vector<Buffer> import_runs(const std::vector<PageRun>& runs, const DeviceWeights& packed);
  Status upload_own(const ModelWeights& read, const ModelOptions& options, uint64_t& done,
                    uint64_t total);
  // A weight's bytes as the GPU reads them. `before_copy` as in ModelOptions; may be empty.
  Status copy_weight(size_t index, std::span<const std::byte> bytes,
                     const std::function<void(uint64_t bytes)>& before_copy) const;
  // Packs a weight first, into `packed`.
  Status upload_weight(size_t index, const Checkpoint& checkpoint, std::vector<std::byte>& packed,
                       const std::function<void(uint64_t bytes)>& before_copy) const;

  std::shared_ptr<VulkanDevice> device_;
  std::unique_ptr<ModelFamily> family_;
  std::vector<PackedWeight> weights_;
  std::vector<Buffer> chunks_;
  std::vector<uint32_t> chunk_of_;  // by weight
  std::vector<BufferSpan> spans_;   // by weight
  std::vector<bool> in_pages_;      // by weight: it is where the file has it, and not copied
  // A model's files and adapters, of which weights are packed again.
  struct Adapters {
    std::mutex changing;
    std::optional<Checkpoint> checkpoint;
    std::vector<ScaledAdapter> adapters;
    WeightTable table;
  };
  std::unique_ptr<Adapters> adapters_;  // null: there are none
  std::unique_ptr<ModelSplit> split_;
  std::vector<std::string> request_adapters_;
  ModelInfo info_;
  Precision precision_ = Precision::kF32;
  uint64_t weight_bytes_ = 0;
  uint64_t host_weight_bytes_ = 0;
};

// The adapters of these directories and files, opened.
Result<std::vector<ScaledAdapter>> open_adapters(const FileStore& model,
                                                 const std::vector<AdapterChoice>& choices);

// Facts of a directory without a device: the configuration is parsed and every tensor checked.
Result<ModelInfo> read_model_info(const std::string& directory);

}  // namespace vkformer
