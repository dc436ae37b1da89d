#include "host/renderer.h"

#include <array>
#include <cstring>

namespace sample {

namespace {

template <class T>
vkformer::Status fill(const VulkanHost& host, Buffer& buffer, const std::vector<T>& values,
                      VkBufferUsageFlags usage) {
  auto made = make_buffer(host, values.size() * sizeof(T), usage);
  if (!made) return made.error();
  buffer = std::move(*made);
  std::memcpy(buffer.mapped, values.data(), values.size() * sizeof(T));
  return {};
}

vkformer::Status reserve(const VulkanHost& host, Buffer& buffer, VkDeviceSize bytes,
                         VkBufferUsageFlags usage) {
  auto made = make_buffer(host, bytes, usage);
  if (!made) return made.error();
  buffer = std::move(*made);
  return {};
}

}  // namespace

vkformer::Result<Renderer> Renderer::create(const VulkanHost& host, VkExtent2D size,
                                            const HeadMesh& mesh, const Font& font) {
  Renderer renderer(host);
  auto target = make_target(host, size);
  if (!target) return target.error();
  renderer.target_ = std::move(*target);
  auto pipelines = make_pipelines(host, renderer.target_);
  if (!pipelines) return pipelines.error();
  renderer.pipelines_ = std::move(*pipelines);
  if (auto status = renderer.make_buffers(mesh, font); !status) return status.error();
  if (auto status = renderer.make_descriptors(); !status) return status.error();
  return renderer;
}

vkformer::Status Renderer::make_buffers(const HeadMesh& mesh, const Font& font) {
  groups_ = mesh.groups;
  hair_ = mesh.hair;
  const VkDeviceSize picture = VkDeviceSize{4} * target_.size.width * target_.size.height;
  constexpr VkBufferUsageFlags kStorage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  const vkformer::Status all[] = {
      fill(*host_, vertices_, mesh.mesh.vertices, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT),
      fill(*host_, indices_, mesh.mesh.indices, VK_BUFFER_USAGE_INDEX_BUFFER_BIT),
      fill(*host_, morphs_, mesh.deltas, kStorage),
      fill(*host_, strokes_, font.strokes(), kStorage),
      reserve(*host_, scene_, sizeof(SceneData), VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT),
      reserve(*host_, heads_, kMostHeads * sizeof(HeadData), kStorage),
      reserve(*host_, pieces_, Canvas::kMostPieces * sizeof(Piece), kStorage),
      reserve(*host_, backdrop_, picture, kStorage),
      reserve(*host_, readback_, picture, VK_BUFFER_USAGE_TRANSFER_DST_BIT)};
  for (const vkformer::Status& status : all) {
    if (!status) return status.error();
  }
  return {};
}

vkformer::Status Renderer::make_descriptors() {
  const std::array<VkDescriptorPoolSize, 2> sizes = {
      {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1}, {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBindings - 1}}};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = 1;
  info.poolSizeCount = static_cast<uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  VkDescriptorPool pool = VK_NULL_HANDLE;
  VkResult made = host_->vk().CreateDescriptorPool(host_->device(), &info, nullptr, &pool);
  if (made != VK_SUCCESS) return driver_error("vkCreateDescriptorPool", made);
  pool_ = Owned<VkDescriptorPool>(host_->device(), pool, host_->vk().DestroyDescriptorPool);
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = pool;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &pipelines_.set_layout.get();
  made = host_->vk().AllocateDescriptorSets(host_->device(), &allocate, &set_);
  if (made != VK_SUCCESS) return driver_error("vkAllocateDescriptorSets", made);
  const std::array<const Buffer*, kBindings> buffers = {&scene_,  &heads_,   &morphs_,
                                                        &pieces_, &strokes_, &backdrop_};
  std::array<VkDescriptorBufferInfo, kBindings> ranges{};
  std::array<VkWriteDescriptorSet, kBindings> writes{};
  for (uint32_t i = 0; i < kBindings; ++i) {
    ranges[i] = {buffers[i]->buffer.get(), 0, VK_WHOLE_SIZE};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set_;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType =
        i == kSceneBinding ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &ranges[i];
  }
  host_->vk().UpdateDescriptorSets(host_->device(), kBindings, writes.data(), 0, nullptr);
  return {};
}

void Renderer::draw_heads(VkCommandBuffer commands, const Picture& picture) {
  const Functions& vk = host_->vk();
  const VkDeviceSize offset = 0;
  vk.CmdBindVertexBuffers(commands, 0, 1, &vertices_.buffer.get(), &offset);
  vk.CmdBindIndexBuffer(commands, indices_.buffer.get(), 0, VK_INDEX_TYPE_UINT32);
  const auto heads = static_cast<uint32_t>(picture.heads.size());
  const auto bind = [&](size_t group) {
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipelines_.heads[group].get());
  };
  bind(static_cast<size_t>(PartGroup::kHair));
  uint32_t first = 0;
  for (size_t style = 0; style < picture.styles.size(); ++style) {
    const auto count = static_cast<uint32_t>(picture.styles[style]);
    if (count > 0) {
      vk.CmdDrawIndexed(commands, hair_[style].count, count, hair_[style].first, 0, first);
    }
    first += count;
  }
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (groups_[group].count == 0) continue;
    bind(group);
    vk.CmdDrawIndexed(commands, groups_[group].count, heads, groups_[group].first, 0, 0);
  }
}

void Renderer::begin_pass(VkCommandBuffer commands) {
  const Functions& vk = host_->vk();
  std::array<VkClearValue, 3> clear{};
  clear[1].depthStencil.depth = 1.0F;
  VkRenderPassBeginInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  pass.renderPass = target_.pass.get();
  pass.framebuffer = target_.framebuffer.get();
  pass.renderArea.extent = target_.size;
  pass.clearValueCount = static_cast<uint32_t>(clear.size());
  pass.pClearValues = clear.data();
  vk.CmdBeginRenderPass(commands, &pass, VK_SUBPASS_CONTENTS_INLINE);
  const VkViewport viewport{
      0.0F, 0.0F, static_cast<float>(target_.size.width), static_cast<float>(target_.size.height),
      0.0F, 1.0F};
  const VkRect2D scissor{{0, 0}, target_.size};
  vk.CmdSetViewport(commands, 0, 1, &viewport);
  vk.CmdSetScissor(commands, 0, 1, &scissor);
  vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipelines_.layout.get(), 0, 1,
                           &set_, 0, nullptr);
}

void Renderer::paint_backdrop(VkCommandBuffer commands, const SceneData& scene) {
  std::memcpy(scene_.mapped, &scene, sizeof scene);
  begin_pass(commands);
  host_->vk().CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipelines_.backdrop.get());
  host_->vk().CmdDraw(commands, 3, 1, 0, 0);
  host_->vk().CmdEndRenderPass(commands);
  copy_out(commands);
}

void Renderer::keep_backdrop() {
  std::memcpy(backdrop_.mapped, pixels(), backdrop_.bytes);
}

void Renderer::draw(VkCommandBuffer commands, const Picture& picture) {
  const Functions& vk = host_->vk();
  std::memcpy(scene_.mapped, &picture.scene, sizeof picture.scene);
  std::memcpy(heads_.mapped, picture.heads.data(), picture.heads.size() * sizeof(HeadData));
  std::memcpy(pieces_.mapped, picture.overlay->data(), picture.overlay->size() * sizeof(Piece));
  begin_pass(commands);
  draw_heads(commands, picture);
  vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipelines_.kept.get());
  vk.CmdDraw(commands, 3, 1, 0, 0);
  const auto pieces = static_cast<uint32_t>(picture.overlay->size());
  if (pieces > 0) {
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipelines_.overlay.get());
    vk.CmdDraw(commands, 6, pieces, 0, 0);
  }
  vk.CmdEndRenderPass(commands);
}

void Renderer::copy_out(VkCommandBuffer commands) {
  const Functions& vk = host_->vk();
  VkBufferImageCopy region{};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = {target_.size.width, target_.size.height, 1};
  vk.CmdCopyImageToBuffer(commands, image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                          readback_.buffer.get(), 1, &region);
  VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  to_host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                        &to_host, 0, nullptr, 0, nullptr);
}

}  // namespace sample
