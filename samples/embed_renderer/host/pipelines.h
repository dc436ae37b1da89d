// The pipelines of the picture, and the one layout of what they read.
#pragma once

#include <array>

#include "host/target.h"
#include "scene/head_mesh.h"

namespace sample {

struct Pipelines {
  Owned<VkDescriptorSetLayout> set_layout;
  Owned<VkPipelineLayout> layout;
  std::array<Owned<VkPipeline>, kPartGroups> heads;  // by PartGroup
  Owned<VkPipeline> backdrop;                        // paints it
  Owned<VkPipeline> kept;                            // shows what was painted
  Owned<VkPipeline> overlay;
};

// Bindings of the set: the scene, then storage buffers.
enum Binding : uint32_t {
  kSceneBinding,
  kHeadsBinding,
  kMorphsBinding,
  kPiecesBinding,
  kStrokesBinding,
  kBackdropBinding,
  kBindings
};

vkformer::Result<Pipelines> make_pipelines(const VulkanHost& host, const Target& target);

}  // namespace sample
