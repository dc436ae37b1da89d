// Draws a crowd and an overlay into the target, and copies the picture out.
#pragma once

#include <array>
#include <cstdint>
#include <glm/glm.hpp>
#include <vector>

#include "host/pipelines.h"
#include "overlay/canvas.h"
#include "scene/gpu_data.h"
#include "scene/head_mesh.h"

namespace sample {

// What one frame shows.
struct Picture {
  SceneData scene;
  std::vector<HeadData> heads;  // by style of hair
  std::vector<int> styles;      // heads of each style
  const std::vector<Piece>* overlay = nullptr;
};

class Renderer {
 public:
  static vkformer::Result<Renderer> create(const VulkanHost& host, VkExtent2D size,
                                           const HeadMesh& mesh, const Font& font);

  // Records the painting of the backdrop alone, and a copy of it to host memory; once that has run,
  // keep_backdrop() takes it for all frames. Before the first draw().
  void paint_backdrop(VkCommandBuffer commands, const SceneData& scene);
  void keep_backdrop();
  // Writes what the shaders read and records the drawing. The last frame must be done.
  void draw(VkCommandBuffer commands, const Picture& picture);
  // Records a copy of the picture to host memory; once it has run, pixels() has it.
  void copy_out(VkCommandBuffer commands);
  // Rows of RGBA from the top.
  const uint8_t* pixels() const { return static_cast<const uint8_t*>(readback_.mapped); }

  VkExtent2D size() const { return target_.size; }
  VkImage image() const { return target_.resolved.image.get(); }

 private:
  explicit Renderer(const VulkanHost& host) : host_(&host) {}
  vkformer::Status make_buffers(const HeadMesh& mesh, const Font& font);
  vkformer::Status make_descriptors();
  void begin_pass(VkCommandBuffer commands);
  void draw_heads(VkCommandBuffer commands, const Picture& picture);

  const VulkanHost* host_;
  Target target_;
  Pipelines pipelines_;
  Buffer vertices_, indices_, scene_, heads_, morphs_, pieces_, strokes_, backdrop_, readback_;
  Owned<VkDescriptorPool> pool_;
  VkDescriptorSet set_ = VK_NULL_HANDLE;  // of the pool
  std::array<IndexRange, kPartGroups> groups_;
  std::vector<IndexRange> hair_;
};

}  // namespace sample
