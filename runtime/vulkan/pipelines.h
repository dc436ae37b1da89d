// Compute pipelines, made when first needed and kept: one per kernel and values of its
// specialization constants, with layouts reflected from the SPIR-V.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/catalogue.h"
#include "plan/plan.h"
#include "vulkan/context.h"
#include "vulkan/executables.h"

namespace vkformer {

// A view; the store owns the handles, for as long as the device lives.
struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout table_layout = VK_NULL_HANDLE;  // of set 1; null: the kernel has no table
  const KernelInterface* interface = nullptr;
};

// What the driver's compiler made of a kernel and its constants.
struct CompiledPipeline {
  KernelId kernel{};
  std::vector<uint32_t> spec;
  double compile_ms = 0;  // of vkCreateComputePipelines, which may have found it in a cache
  std::vector<Executable> executables;
};

// How far PipelineStore::make_ahead has come, for other threads to read and to stop it.
struct PipelineCount {
  std::atomic<size_t> made{0};   // tried: what fails counts too
  std::atomic<size_t> total{0};  // 0 until it is known
  std::atomic<bool> stopped{false};
};

class PipelineStore {
 public:
  // `cache` is what cache_data gave in an earlier run on the same driver, or empty.
  static Result<std::unique_ptr<PipelineStore>> create(Context& context,
                                                       std::span<const std::byte> cache);
  // Precondition: nothing is in flight.
  ~PipelineStore();
  PipelineStore(const PipelineStore&) = delete;
  PipelineStore& operator=(const PipelineStore&) = delete;

  // The pipeline of that kernel, or of its reproducible form. Any thread; two that ask for the same
  // one at once compile twice and keep one.
  Result<Pipeline> get(KernelId kernel, std::span<const uint32_t> spec, bool reproducible = false);
  // Makes those that the plans need and that are not there, on several threads, until
  // count->stopped (null: nobody watches). What fails is left for `get` to say. kBesideFrames: the
  // calling thread is one of those that DeviceOptions::compile_threads allows.
  enum class Caller : uint8_t { kWaits, kBesideFrames };
  void make_ahead(std::span<const Plan* const> plans, Caller caller,
                  PipelineCount* count = nullptr);
  // Pipelines made so far.
  size_t made() const;
  // What the compiler says of each of them, in the order of kernels and constants; an error where
  // pipelines keep none of it (Context::capture).
  Result<std::vector<CompiledPipeline>> compiled() const;
  // The same of one, which has been made.
  Result<CompiledPipeline> compiled(KernelId kernel, std::span<const uint32_t> spec,
                                    bool reproducible = false) const;
  Result<std::vector<std::byte>> cache_data() const;
  // Adds what another cache_data gave.
  Status add_cache(std::span<const std::byte> data);

 private:
  struct Kernel {
    KernelInterface interface;
    VkShaderModule module = VK_NULL_HANDLE;  // none where each pipeline has a separate one
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkDescriptorSetLayout table_layout = VK_NULL_HANDLE;  // the store's
    VkPipelineLayout layout = VK_NULL_HANDLE;
  };
  // SPIR-V as it is, or with arithmetic that is the same on every device.
  struct Variant {
    KernelId id{};
    std::optional<ArithmeticModes> arithmetic = {};
    auto operator<=>(const Variant&) const = default;
  };
  using Key = std::pair<Variant, std::vector<uint32_t>>;
  struct Made {
    VkPipeline handle = VK_NULL_HANDLE;
    double compile_ms = 0;
  };

  explicit PipelineStore(Context& context) : context_(context) {}
  Variant variant_of(KernelId id, bool reproducible) const;
  Result<const Kernel*> kernel(const Variant& variant);
  Result<Kernel> make_kernel(const Variant& variant);
  Result<std::vector<uint32_t>> words_of(const Variant& variant) const;
  Result<VkShaderModule> make_module(std::span<const uint32_t> words, const std::string& name);
  Status make_layouts(Kernel& kernel, const std::string& name);
  void destroy_kernel(const Kernel& kernel);
  Result<Made> make_pipeline(const Kernel& kernel, const KernelInfo& about,
                             std::span<const uint32_t> spec);
  // The same with the values of its constants written into the SPIR-V.
  Result<Made> make_literal_pipeline(const Variant& variant, const Kernel& kernel,
                                     std::span<const uint32_t> spec);
  Result<CompiledPipeline> read(const Key& key, const Made& made) const;

  Context& context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout table_layout_ =
      VK_NULL_HANDLE;  // of every kernel with a table, once needed
  mutable std::mutex mutex_;
  std::map<Variant, std::unique_ptr<Kernel>> kernels_;
  std::map<Key, Made> pipelines_;
};

// Whether a kernel fits a device: its tier, bindings, push size and workgroup size with these
// specialization values. An error names the kernel.
Status check_kernel(std::string_view name, uint32_t features, const KernelInterface& interface,
                    std::span<const uint32_t> spec, const DeviceCaps& caps);

// Whether a dispatch states what its kernel's SPIR-V states: count of bindings, access, push size,
// specialization constants. An error names the kernel and the dispatch's label.
Status check_dispatch(const Dispatch& dispatch, const KernelInterface& interface);

}  // namespace vkformer
