// Tables: the parts of a buffer as an array of buffers in descriptor set 1. A kernel indexes it
// (VK_EXT_descriptor_indexing, core from Vulkan 1.2 on).
#pragma once

#include <vulkan/vulkan_core.h>

#include <vector>

#include "vulkan/context.h"

namespace vkformer {

// The layout of set 1, for tables of any length.
Result<VkDescriptorSetLayout> make_table_layout(Context& context);

// The tables of one recording, each buffer once. `add` all of them, then `make`.
class BufferTables {
 public:
  explicit BufferTables(Context& context) : context_(context) {}

  struct Source {
    VkDescriptorBufferInfo range;
    uint32_t part_bytes;
  };
  // Its number, for set(); the same for the same source.
  size_t add(const Source& source);
  // A pool and the sets, written. Nothing where nothing was added; the pool is the caller's.
  Result<VkDescriptorPool> make(VkDescriptorSetLayout layout);
  VkDescriptorSet set(size_t number) const { return tables_[number].set; }

 private:
  struct Table {
    Source source;
    uint32_t parts;
    VkDescriptorSet set;
  };
  Status allocate(VkDescriptorPool pool, VkDescriptorSetLayout layout);
  void write(const Table& table) const;

  Context& context_;
  std::vector<Table> tables_;
};

}  // namespace vkformer
