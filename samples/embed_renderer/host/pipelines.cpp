#include "host/pipelines.h"

#include <shaders/backdrop.frag.h>
#include <shaders/full_screen.vert.h>
#include <shaders/head.frag.h>
#include <shaders/head.vert.h>
#include <shaders/kept.frag.h>
#include <shaders/overlay.frag.h>
#include <shaders/overlay.vert.h>

#include <array>
#include <cstddef>
#include <span>

namespace sample {

namespace {

// What the pipelines differ in.
struct Kind {
  std::span<const uint32_t> vertex, fragment;
  enum class Input : uint8_t { kNone, kMesh } input = Input::kNone;
  enum class Depth : uint8_t { kWrites, kTests, kIgnores } depth = Depth::kIgnores;
  enum class Blend : uint8_t { kOff, kOver } blend = Blend::kOff;
  int32_t group = 0;  // of the fragment shader's constant, where it has one
};

vkformer::Result<Owned<VkShaderModule>> make_module(const VulkanHost& host,
                                                    std::span<const uint32_t> spirv) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = spirv.size_bytes();
  info.pCode = spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  const VkResult made = host.vk().CreateShaderModule(host.device(), &info, nullptr, &module);
  if (made != VK_SUCCESS) return driver_error("vkCreateShaderModule", made);
  return Owned<VkShaderModule>(host.device(), module, host.vk().DestroyShaderModule);
}

VkPipelineShaderStageCreateInfo stage_of(VkShaderStageFlagBits stage, VkShaderModule module) {
  VkPipelineShaderStageCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage = stage;
  info.module = module;
  info.pName = "main";
  return info;
}

// The states that vkCreateGraphicsPipelines points to.
struct States {
  VkVertexInputBindingDescription binding{0, sizeof(Vertex), VK_VERTEX_INPUT_RATE_VERTEX};
  std::array<VkVertexInputAttributeDescription, 3> attributes = {
      {{0, 0, VK_FORMAT_R32G32B32_SFLOAT, offsetof(Vertex, position)},
       {1, 0, VK_FORMAT_R32G32B32_SFLOAT, offsetof(Vertex, normal)},
       {2, 0, VK_FORMAT_R32G32B32A32_SFLOAT, offsetof(Vertex, tint)}}};
  VkPipelineVertexInputStateCreateInfo input{
      VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  VkPipelineInputAssemblyStateCreateInfo assembly{
      VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
  VkPipelineViewportStateCreateInfo viewport{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
  VkPipelineRasterizationStateCreateInfo raster{
      VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
  VkPipelineMultisampleStateCreateInfo samples{
      VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
  VkPipelineDepthStencilStateCreateInfo depth{
      VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO};
  VkPipelineColorBlendAttachmentState blend{};
  VkPipelineColorBlendStateCreateInfo blending{
      VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
  std::array<VkDynamicState, 2> dynamic_list = {VK_DYNAMIC_STATE_VIEWPORT,
                                                VK_DYNAMIC_STATE_SCISSOR};
  VkPipelineDynamicStateCreateInfo dynamic{VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO};
};

void fill(States& states, const Kind& kind, VkSampleCountFlagBits samples) {
  if (kind.input == Kind::Input::kMesh) {
    states.input.vertexBindingDescriptionCount = 1;
    states.input.pVertexBindingDescriptions = &states.binding;
    states.input.vertexAttributeDescriptionCount = static_cast<uint32_t>(states.attributes.size());
    states.input.pVertexAttributeDescriptions = states.attributes.data();
  }
  states.assembly.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
  states.viewport.viewportCount = 1;
  states.viewport.scissorCount = 1;
  states.raster.polygonMode = VK_POLYGON_MODE_FILL;
  const bool mesh = kind.input == Kind::Input::kMesh;
  states.raster.cullMode = mesh ? VK_CULL_MODE_BACK_BIT : VK_CULL_MODE_NONE;
  states.raster.frontFace = VK_FRONT_FACE_COUNTER_CLOCKWISE;
  states.raster.lineWidth = 1.0F;
  states.samples.rasterizationSamples = samples;
  states.depth.depthTestEnable = kind.depth != Kind::Depth::kIgnores ? VK_TRUE : VK_FALSE;
  states.depth.depthWriteEnable = kind.depth == Kind::Depth::kWrites ? VK_TRUE : VK_FALSE;
  states.depth.depthCompareOp = VK_COMPARE_OP_LESS_OR_EQUAL;
  states.blend.blendEnable = kind.blend == Kind::Blend::kOver ? VK_TRUE : VK_FALSE;
  states.blend.srcColorBlendFactor = VK_BLEND_FACTOR_SRC_ALPHA;
  states.blend.dstColorBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA;
  states.blend.colorBlendOp = VK_BLEND_OP_ADD;
  states.blend.srcAlphaBlendFactor = VK_BLEND_FACTOR_ZERO;
  states.blend.dstAlphaBlendFactor = VK_BLEND_FACTOR_ONE;
  states.blend.alphaBlendOp = VK_BLEND_OP_ADD;
  states.blend.colorWriteMask = VK_COLOR_COMPONENT_R_BIT | VK_COLOR_COMPONENT_G_BIT |
                                VK_COLOR_COMPONENT_B_BIT | VK_COLOR_COMPONENT_A_BIT;
  states.blending.attachmentCount = 1;
  states.blending.pAttachments = &states.blend;
  states.dynamic.dynamicStateCount = static_cast<uint32_t>(states.dynamic_list.size());
  states.dynamic.pDynamicStates = states.dynamic_list.data();
}

vkformer::Result<Owned<VkPipeline>> make_pipeline(const VulkanHost& host, const Target& target,
                                                  VkPipelineLayout layout, const Kind& kind) {
  const auto vertex = make_module(host, kind.vertex);
  if (!vertex) return vertex.error();
  const auto fragment = make_module(host, kind.fragment);
  if (!fragment) return fragment.error();
  std::array<VkPipelineShaderStageCreateInfo, 2> stages = {
      stage_of(VK_SHADER_STAGE_VERTEX_BIT, vertex->get()),
      stage_of(VK_SHADER_STAGE_FRAGMENT_BIT, fragment->get())};
  const VkSpecializationMapEntry entry{0, 0, sizeof kind.group};
  const VkSpecializationInfo constants{1, &entry, sizeof kind.group, &kind.group};
  if (kind.input == Kind::Input::kMesh) stages[1].pSpecializationInfo = &constants;
  States states;
  fill(states, kind, target.samples);
  VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO};
  info.stageCount = static_cast<uint32_t>(stages.size());
  info.pStages = stages.data();
  info.pVertexInputState = &states.input;
  info.pInputAssemblyState = &states.assembly;
  info.pViewportState = &states.viewport;
  info.pRasterizationState = &states.raster;
  info.pMultisampleState = &states.samples;
  info.pDepthStencilState = &states.depth;
  info.pColorBlendState = &states.blending;
  info.pDynamicState = &states.dynamic;
  info.layout = layout;
  info.renderPass = target.pass.get();
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult made = host.vk().CreateGraphicsPipelines(host.device(), VK_NULL_HANDLE, 1, &info,
                                                          nullptr, &pipeline);
  if (made != VK_SUCCESS) return driver_error("vkCreateGraphicsPipelines", made);
  return Owned<VkPipeline>(host.device(), pipeline, host.vk().DestroyPipeline);
}

// No stage has more than four storage buffers, which is all that some devices take.
VkShaderStageFlags stages_of(uint32_t binding) {
  if (binding == kMorphsBinding) return VK_SHADER_STAGE_VERTEX_BIT;
  if (binding == kStrokesBinding || binding == kBackdropBinding) {
    return VK_SHADER_STAGE_FRAGMENT_BIT;
  }
  return VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
}

vkformer::Status make_layouts(const VulkanHost& host, Pipelines& pipelines) {
  std::array<VkDescriptorSetLayoutBinding, kBindings> bindings{};
  for (uint32_t i = 0; i < kBindings; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType =
        i == kSceneBinding ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = stages_of(i);
  }
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = static_cast<uint32_t>(bindings.size());
  set.pBindings = bindings.data();
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkResult made = host.vk().CreateDescriptorSetLayout(host.device(), &set, nullptr, &set_layout);
  if (made != VK_SUCCESS) return driver_error("vkCreateDescriptorSetLayout", made);
  pipelines.set_layout =
      Owned<VkDescriptorSetLayout>(host.device(), set_layout, host.vk().DestroyDescriptorSetLayout);
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &pipelines.set_layout.get();
  VkPipelineLayout layout = VK_NULL_HANDLE;
  made = host.vk().CreatePipelineLayout(host.device(), &info, nullptr, &layout);
  if (made != VK_SUCCESS) return driver_error("vkCreatePipelineLayout", made);
  pipelines.layout =
      Owned<VkPipelineLayout>(host.device(), layout, host.vk().DestroyPipelineLayout);
  return {};
}

}  // namespace

vkformer::Result<Pipelines> make_pipelines(const VulkanHost& host, const Target& target) {
  Pipelines pipelines;
  if (auto status = make_layouts(host, pipelines); !status) return status.error();
  const auto make = [&](const Kind& kind, Owned<VkPipeline>& pipeline) -> vkformer::Status {
    auto made = make_pipeline(host, target, pipelines.layout.get(), kind);
    if (!made) return made.error();
    pipeline = std::move(*made);
    return {};
  };
  Kind heads{kHeadVert, kHeadFrag, Kind::Input::kMesh, Kind::Depth::kWrites};
  for (size_t group = 0; group < kPartGroups; ++group) {
    heads.group = static_cast<int32_t>(group);
    if (auto status = make(heads, pipelines.heads[group]); !status) return status.error();
  }
  // The backdrop comes after the heads and fills what they leave.
  const Kind backdrop{kFullScreenVert, kBackdropFrag, Kind::Input::kNone, Kind::Depth::kTests};
  if (auto status = make(backdrop, pipelines.backdrop); !status) return status.error();
  const Kind kept{kFullScreenVert, kKeptFrag, Kind::Input::kNone, Kind::Depth::kTests};
  if (auto status = make(kept, pipelines.kept); !status) return status.error();
  const Kind overlay{kOverlayVert, kOverlayFrag, Kind::Input::kNone, Kind::Depth::kIgnores,
                     Kind::Blend::kOver};
  if (auto status = make(overlay, pipelines.overlay); !status) return status.error();
  return pipelines;
}

}  // namespace sample
