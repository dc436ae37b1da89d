#include "vulkan/buffer_tables.h"

#include <algorithm>

namespace vkformer {

Result<VkDescriptorSetLayout> make_table_layout(Context& context) {
  VkDescriptorSetLayoutBinding binding{};
  binding.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  binding.descriptorCount = context.caps.compiler.max_table_parts;
  binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  const VkDescriptorBindingFlags flags = VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT |
                                         VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT;
  VkDescriptorSetLayoutBindingFlagsCreateInfo flagged{
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO};
  flagged.bindingCount = 1;
  flagged.pBindingFlags = &flags;
  VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  info.pNext = &flagged;
  info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT;
  info.bindingCount = 1;
  info.pBindings = &binding;
  VkDescriptorSetLayout layout = VK_NULL_HANDLE;
  VKF_CHECK(context.check_made(
      context.api.CreateDescriptorSetLayout(context.device, &info, context.allocator, &layout),
      layout, "[table] vkCreateDescriptorSetLayout"));
  return layout;
}

size_t BufferTables::add(const Source& source) {
  const auto same = [&](const Table& t) {
    return t.source.range.buffer == source.range.buffer &&
           t.source.range.offset == source.range.offset &&
           t.source.range.range == source.range.range && t.source.part_bytes == source.part_bytes;
  };
  const auto found = std::find_if(tables_.begin(), tables_.end(), same);
  if (found == tables_.end()) {
    const uint64_t parts = std::min<uint64_t>(source.range.range / source.part_bytes,
                                              context_.caps.compiler.max_table_parts);
    tables_.push_back({source, static_cast<uint32_t>(parts), VK_NULL_HANDLE});
    return tables_.size() - 1;
  }
  return static_cast<size_t>(found - tables_.begin());
}

Result<VkDescriptorPool> BufferTables::make(VkDescriptorSetLayout layout) {
  VkDescriptorPool pool = VK_NULL_HANDLE;
  if (tables_.empty()) return pool;
  VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  for (const Table& t : tables_) size.descriptorCount += t.parts;
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.flags = VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT;
  info.maxSets = static_cast<uint32_t>(tables_.size());
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  VKF_CHECK(context_.check_made(
      context_.api.CreateDescriptorPool(context_.device, &info, context_.allocator, &pool), pool,
      "[table] vkCreateDescriptorPool"));
  const Status made = allocate(pool, layout);
  if (made) return pool;
  context_.api.DestroyDescriptorPool(context_.device, pool, context_.allocator);
  return made.error();
}

Status BufferTables::allocate(VkDescriptorPool pool, VkDescriptorSetLayout layout) {
  for (Table& table : tables_) {
    VkDescriptorSetVariableDescriptorCountAllocateInfo count{
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO};
    count.descriptorSetCount = 1;
    count.pDescriptorCounts = &table.parts;
    VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.pNext = &count;
    info.descriptorPool = pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    VKF_CHECK(
        context_.check(context_.api.AllocateDescriptorSets(context_.device, &info, &table.set),
                       "[table] vkAllocateDescriptorSets"));
    write(table);
  }
  return {};
}

void BufferTables::write(const Table& table) const {
  std::vector<VkDescriptorBufferInfo> parts(table.parts);
  for (uint32_t i = 0; i < table.parts; ++i) {
    parts[i] = {table.source.range.buffer,
                table.source.range.offset + uint64_t{i} * table.source.part_bytes,
                table.source.part_bytes};
  }
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = table.set;
  write.descriptorCount = table.parts;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = parts.data();
  context_.api.UpdateDescriptorSets(context_.device, 1, &write, 0, nullptr);
}

}  // namespace vkformer
