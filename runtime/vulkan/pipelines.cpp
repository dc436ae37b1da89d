#include "vulkan/pipelines.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>

#include "base/message.h"
#include "base/work_sharing.h"
#include "reproducible/pin_arithmetic.h"
#include "software/compiler.h"
#include "vulkan/buffer_tables.h"

namespace vkformer {
namespace {

std::string kernel_name(KernelId id) {
  return std::string(kernel_info(id).name);
}

std::string quoted(std::string_view name) {
  return "[" + std::string(name) + "]";
}

const char* access_name(Access access) {
  switch (access) {
    case Access::kRead:
      return "read";
    case Access::kWrite:
      return "write";
    case Access::kReadWrite:
      return "read and write";
  }
  return "";
}

}  // namespace

Status check_kernel(std::string_view name, uint32_t features, const KernelInterface& interface,
                    std::span<const uint32_t> spec, const DeviceCaps& caps) {
  const bool tier_ok = ((features & kFeature_subgroup) == 0 || caps.subgroup()) &&
                       ((features & kFeature_fp16) == 0 || caps.fp16()) &&
                       ((features & kFeature_matrix) == 0 || caps.matrix());
  if ((features & kFeature_matrix2) != 0 && !caps.matrix2()) {
    return unsupported(quoted(name) +
                       " needs VK_NV_cooperative_matrix2, which is not in use; choose another "
                       "kernel");
  }
  if ((features & kFeature_dot8) != 0 && !caps.dot8()) {
    return unsupported(quoted(name) +
                       " needs integer dot products (shaderIntegerDotProduct), which are not in "
                       "use; choose another kernel");
  }
  if ((features & kFeature_absent) != 0) {
    return unsupported(quoted(name) + " was omitted from this build; choose another kernel");
  }
  if (!tier_ok) {
    return unsupported(message({quoted(name), " needs a higher tier than '", choice_name(caps.tier),
                                "', the one in use; choose another kernel"}));
  }
  if (interface.has_table && !caps.tables()) {
    return unsupported(quoted(name) +
                       " indexes an array of buffers (descriptor indexing), which this device or "
                       "tier has not; choose another kernel");
  }
  const DeviceLimits& limits = caps.limits;
  const auto storage =
      std::count_if(interface.bindings.begin(), interface.bindings.end(),
                    [](const KernelBinding& b) { return b.type == BindingType::kStorage; });
  if (storage > static_cast<int64_t>(limits.max_storage_buffers)) {
    return unsupported(
        message({quoted(name), " binds ", storage, " storage buffers, but this device allows ",
                 limits.max_storage_buffers, "; choose another kernel"}));
  }
  if (interface.push_bytes > limits.max_push_bytes) {
    return unsupported(message({quoted(name), " has ", interface.push_bytes,
                                " bytes of push constants, but this device allows ",
                                limits.max_push_bytes, "; choose another kernel"}));
  }
  uint64_t invocations = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    uint64_t size = interface.local_size[axis];
    const uint32_t id = interface.local_size_spec_id[axis];
    if (id < spec.size()) size = spec[id];
    if (size == 0 || size > limits.max_group_size[axis]) {
      return unsupported(message(
          {quoted(name), " has a workgroup of ", size, " invocations along axis ", axis,
           ", but this device allows 1 to ", limits.max_group_size[axis], "; use a smaller one"}));
    }
    invocations *= size;
  }
  if (invocations > limits.max_invocations) {
    return unsupported(message({quoted(name), " has a workgroup of ", invocations,
                                " invocations, but this device allows ", limits.max_invocations,
                                "; use a smaller one"}));
  }
  return {};
}

Status check_dispatch(const Dispatch& dispatch, const KernelInterface& interface) {
  const std::string who =
      quoted(kernel_info(dispatch.kernel).name) + " in '" + dispatch.label + "'";
  if (dispatch.bindings.size() != interface.bindings.size()) {
    return internal_error(
        message({who, " is given ", dispatch.bindings.size(), " bindings, but its shader declares ",
                 interface.bindings.size(), "; correct the lowering"}));
  }
  if (dispatch.push.size() != interface.push_bytes) {
    return internal_error(message({who, " is given ", dispatch.push.size(),
                                   " bytes of push constants, but its shader declares ",
                                   interface.push_bytes, "; correct the lowering"}));
  }
  const KernelInfo& info = kernel_info(dispatch.kernel);
  // Nobody sets the constants of a kernel that has none.
  const std::string_view list = info.constants > 0 ? info.constants_list : std::string_view();
  if (dispatch.spec_list != list) {
    return internal_error(
        message({who, " is given the specialization constants of '", dispatch.spec_list,
                 "', but its shader declares '", list, "'; correct the lowering"}));
  }
  // Defaults are never relied on: those of a constant and of a workgroup axis may differ.
  if (!interface.spec_ids.empty() && interface.spec_ids.back() >= dispatch.spec.size()) {
    return internal_error(message({who, " is given ", dispatch.spec.size(),
                                   " specialization constants, but its shader has one of id ",
                                   interface.spec_ids.back(), "; correct the lowering"}));
  }
  const bool read = dispatch.table_binding < dispatch.bindings.size() &&
                    dispatch.bindings[dispatch.table_binding].access == Access::kRead;
  if (interface.has_table != (dispatch.table_part_bytes > 0) || (interface.has_table && !read)) {
    return internal_error(message(
        {who, " has parts of ", dispatch.table_part_bytes, " bytes of binding ",
         dispatch.table_binding, " in its table, but its shader ",
         (interface.has_table ? "reads one of a binding that is only read" : "declares none"),
         "; correct the lowering"}));
  }
  for (size_t i = 0; i < interface.bindings.size(); ++i) {
    const KernelBinding& binding = interface.bindings[i];
    Access shader = Access::kReadWrite;
    if (binding.readonly) shader = Access::kRead;
    if (binding.writeonly && !binding.readonly) shader = Access::kWrite;
    if (dispatch.bindings[i].access == shader) continue;
    return internal_error(
        message({who, " declares access '", access_name(dispatch.bindings[i].access),
                 "' for binding ", i, ", but its shader declares '", access_name(shader),
                 "'; correct the lowering or the shader"}));
  }
  return {};
}

Result<std::unique_ptr<PipelineStore>> PipelineStore::create(Context& context,
                                                             std::span<const std::byte> cache) {
  std::unique_ptr<PipelineStore> self(new PipelineStore(context));
  self->cache_ = context.adopted_cache;
  if (self->cache_) return self;
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = cache.size();
  info.pInitialData = cache.data();
  VKF_CHECK(context.check_made(
      context.api.CreatePipelineCache(context.device, &info, context.allocator, &self->cache_),
      self->cache_, "[pipelines] vkCreatePipelineCache"));
  return self;
}

PipelineStore::~PipelineStore() {
  for (const auto& [key, pipeline] : pipelines_) {
    context_.api.DestroyPipeline(context_.device, pipeline.handle, context_.allocator);
  }
  for (const auto& [id, kernel] : kernels_) destroy_kernel(*kernel);
  if (table_layout_) {
    context_.api.DestroyDescriptorSetLayout(context_.device, table_layout_, context_.allocator);
  }
  if (cache_ == context_.adopted_cache) return;
  if (cache_) context_.api.DestroyPipelineCache(context_.device, cache_, context_.allocator);
}

void PipelineStore::destroy_kernel(const Kernel& kernel) {
  const DeviceApi& api = context_.api;
  if (kernel.layout) api.DestroyPipelineLayout(context_.device, kernel.layout, context_.allocator);
  if (kernel.set_layout) {
    api.DestroyDescriptorSetLayout(context_.device, kernel.set_layout, context_.allocator);
  }
  if (kernel.module) api.DestroyShaderModule(context_.device, kernel.module, context_.allocator);
}

Status PipelineStore::make_layouts(Kernel& kernel, const std::string& name) {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (const KernelBinding& b : kernel.interface.bindings) {
    VkDescriptorSetLayoutBinding v{};
    v.binding = b.binding;
    v.descriptorType = b.type == BindingType::kStorage ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                       : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    v.descriptorCount = 1;
    v.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    bindings.push_back(v);
  }
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = static_cast<uint32_t>(bindings.size());
  set.pBindings = bindings.data();
  VKF_CHECK(context_.check_made(context_.api.CreateDescriptorSetLayout(
                                    context_.device, &set, context_.allocator, &kernel.set_layout),
                                kernel.set_layout, quoted(name) + " vkCreateDescriptorSetLayout"));
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 (kernel.interface.push_bytes + 3) / 4 * 4};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  if (kernel.interface.has_table && context_.caps.tables()) {  // else check_kernel refuses it
    if (!table_layout_) {
      VKF_ASSIGN(table_layout_, make_table_layout(context_));
    }
    kernel.table_layout = table_layout_;
  }
  const std::array layouts = {kernel.set_layout, kernel.table_layout};
  info.setLayoutCount = kernel.table_layout ? 2 : 1;
  info.pSetLayouts = layouts.data();
  info.pushConstantRangeCount = push.size > 0 ? 1 : 0;
  info.pPushConstantRanges = &push;
  return context_.check_made(
      context_.api.CreatePipelineLayout(context_.device, &info, context_.allocator, &kernel.layout),
      kernel.layout, quoted(name) + " vkCreatePipelineLayout");
}

Result<std::vector<uint32_t>> PipelineStore::words_of(const Variant& variant) const {
  if (variant.arithmetic) {
    const auto wrong = context_.planted_reproducible.find(variant.id);
    if (wrong != context_.planted_reproducible.end()) return wrong->second;
  }
  const auto planted = context_.planted.find(variant.id);
  std::vector<uint32_t> words =
      planted == context_.planted.end() ? kernel_spirv(variant.id) : planted->second;
  if (!variant.arithmetic) return words;
  return pin_arithmetic(words, *variant.arithmetic);
}

PipelineStore::Variant PipelineStore::variant_of(KernelId id, bool reproducible) const {
  return reproducible ? Variant{id, context_.arithmetic} : Variant{id};
}

Result<VkShaderModule> PipelineStore::make_module(std::span<const uint32_t> words,
                                                  const std::string& name) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = words.size_bytes();
  info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  VKF_CHECK(context_.check_made(
      context_.api.CreateShaderModule(context_.device, &info, context_.allocator, &module), module,
      quoted(name) + " vkCreateShaderModule"));
  context_.set_name(VK_OBJECT_TYPE_SHADER_MODULE, handle_bits(module), name);
  return module;
}

Result<PipelineStore::Kernel> PipelineStore::make_kernel(const Variant& variant) {
  const std::string name = kernel_name(variant.id);
  Kernel kernel;
  const auto made = words_of(variant);
  if (!made) return made.error().with_context(quoted(name));
  const std::vector<uint32_t>& words = *made;
  auto interface = reflect_spirv(words);
  if (!interface) return interface.error().with_context(quoted(name));
  kernel.interface = std::move(*interface);
  if (!context_.caps.compiler.wants_literals) {
    VKF_ASSIGN(kernel.module, make_module(words, name));
  }
  const Status status = make_layouts(kernel, name);
  if (!status) {
    destroy_kernel(kernel);
    return status.error();
  }
  return kernel;
}

Result<const PipelineStore::Kernel*> PipelineStore::kernel(const Variant& variant) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = kernels_.find(variant);
  if (it != kernels_.end()) return static_cast<const Kernel*>(it->second.get());
  VKF_ASSIGN(Kernel made, make_kernel(variant));
  auto& slot = kernels_[variant] = std::make_unique<Kernel>(std::move(made));
  return static_cast<const Kernel*>(slot.get());
}

Result<PipelineStore::Made> PipelineStore::make_literal_pipeline(const Variant& variant,
                                                                 const Kernel& kernel,
                                                                 std::span<const uint32_t> spec) {
  const std::string name = kernel_name(variant.id);
  VKF_ASSIGN(const std::vector<uint32_t> open, words_of(variant));
  auto words = literal_module(open, spec);
  if (!words) return words.error().with_context(quoted(name));
  Kernel literal = kernel;
  VKF_ASSIGN(literal.module, make_module(*words, name));
  Result<Made> made = make_pipeline(literal, kernel_info(variant.id), {});
  context_.api.DestroyShaderModule(context_.device, literal.module, context_.allocator);
  return made;
}

Result<PipelineStore::Made> PipelineStore::make_pipeline(const Kernel& kernel,
                                                         const KernelInfo& about,
                                                         std::span<const uint32_t> spec) {
  const std::string name(about.name);
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t id : kernel.interface.spec_ids) {
    if (id < spec.size()) entries.push_back({id, id * 4u, 4});
  }
  VkSpecializationInfo values{};
  values.mapEntryCount = static_cast<uint32_t>(entries.size());
  values.pMapEntries = entries.data();
  values.dataSize = spec.size_bytes();
  values.pData = spec.data();
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT | capture_flags(context_.capture);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = kernel.module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = entries.empty() ? nullptr : &values;
  info.layout = kernel.layout;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  size.requiredSubgroupSize = context_.caps.unit_lanes;
  if (context_.sizes_subgroups && (about.features & kFeature_matrix) != 0) {
    info.stage.pNext = &size;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  Made made;
  const auto start = std::chrono::steady_clock::now();
  VKF_CHECK(context_.check(context_.api.CreateComputePipelines(context_.device, cache_, 1, &info,
                                                               context_.allocator, &made.handle),
                           quoted(name) + " vkCreateComputePipelines"));
  made.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  context_.set_name(VK_OBJECT_TYPE_PIPELINE, handle_bits(made.handle), name);
  return made;
}

Result<Pipeline> PipelineStore::get(KernelId id, std::span<const uint32_t> spec,
                                    bool reproducible) {
  const Variant variant = variant_of(id, reproducible);
  VKF_CHECK(context_.check_alive());
  if (variant.id >= KernelId::kCount)
    return internal_error("[pipelines] no kernel has this number");
  VKF_ASSIGN(const Kernel* found, kernel(variant));
  const Key key{variant, {spec.begin(), spec.end()}};
  auto view = [&](VkPipeline handle) {
    return Pipeline{handle, found->layout, found->set_layout, found->table_layout,
                    &found->interface};
  };
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = pipelines_.find(key);
    if (it != pipelines_.end()) return view(it->second.handle);
  }
  const KernelInfo& info = kernel_info(variant.id);
  VKF_CHECK(check_kernel(info.name, info.features, found->interface, spec, context_.caps));
  VKF_ASSIGN(const Made made, context_.caps.compiler.wants_literals
                                  ? make_literal_pipeline(variant, *found, spec)
                                  : make_pipeline(*found, info, spec));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, inserted] = pipelines_.try_emplace(key, made);
  if (!inserted) context_.api.DestroyPipeline(context_.device, made.handle, context_.allocator);
  return view(it->second.handle);
}

Result<CompiledPipeline> PipelineStore::read(const Key& key, const Made& made) const {
  if (context_.capture == Capture::kNone) return unsupported(context_.why_no_capture);
  auto executables = read_executables(context_.api, context_.device, made.handle, context_.capture);
  if (!executables) return executables.error().with_context(quoted(kernel_name(key.first.id)));
  return CompiledPipeline{key.first.id, key.second, made.compile_ms, std::move(*executables)};
}

Result<std::vector<CompiledPipeline>> PipelineStore::compiled() const {
  if (context_.capture == Capture::kNone) return unsupported(context_.why_no_capture);
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<CompiledPipeline> list;
  for (const auto& [key, made] : pipelines_) {
    VKF_ASSIGN(CompiledPipeline one, read(key, made));
    list.push_back(std::move(one));
  }
  return list;
}

Result<CompiledPipeline> PipelineStore::compiled(KernelId kernel, std::span<const uint32_t> spec,
                                                 bool reproducible) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found =
      pipelines_.find({variant_of(kernel, reproducible), {spec.begin(), spec.end()}});
  if (found == pipelines_.end()) return internal_error("[pipelines] this one was not made");
  return read(found->first, found->second);
}

void PipelineStore::make_ahead(std::span<const Plan* const> plans, Caller caller,
                               PipelineCount* count) {
  std::set<Key> missing;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Plan* plan : plans) {
      for (const Dispatch& d : plan->dispatches) {
        Key key{variant_of(d.kernel, d.reproducible), d.spec};
        if (pipelines_.count(key) == 0) missing.insert(std::move(key));
      }
    }
  }
  const std::vector<Key> list(missing.begin(), missing.end());
  if (count != nullptr) count->total = list.size();
  Helpers helpers = context_.helpers();
  if (caller == Caller::kBesideFrames && helpers.most > 0) --helpers.most;
  const auto make = [&](size_t i) {
    if (count != nullptr && count->stopped) return;
    (void)get(list[i].first.id, list[i].second, list[i].first.arithmetic.has_value());
    if (count != nullptr) ++count->made;
  };
  try {
    share_work(helpers, list.size(), make);
  } catch (const std::exception&) {
    // Out of host memory; who needs the missing ones says so.
  }
}

size_t PipelineStore::made() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return pipelines_.size();
}

Status PipelineStore::add_cache(std::span<const std::byte> data) {
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  VkPipelineCache made = VK_NULL_HANDLE;
  VKF_CHECK(context_.check_made(
      context_.api.CreatePipelineCache(context_.device, &info, context_.allocator, &made), made,
      "[pipelines] vkCreatePipelineCache"));
  const VkResult merged = context_.api.MergePipelineCaches(context_.device, cache_, 1, &made);
  context_.api.DestroyPipelineCache(context_.device, made, context_.allocator);
  return context_.check(merged, "[pipelines] vkMergePipelineCaches");
}

Result<std::vector<std::byte>> PipelineStore::cache_data() const {
  size_t bytes = 0;
  VKF_CHECK(
      context_.check(context_.api.GetPipelineCacheData(context_.device, cache_, &bytes, nullptr),
                     "[pipelines] vkGetPipelineCacheData"));
  std::vector<std::byte> data(bytes);
  VKF_CHECK(context_.check(
      context_.api.GetPipelineCacheData(context_.device, cache_, &bytes, data.data()),
      "[pipelines] vkGetPipelineCacheData"));
  data.resize(bytes);
  return data;
}

}  // namespace vkformer
