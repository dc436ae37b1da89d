// What the shaders read, as shaders/scene.glsl has it.
#pragma once

#include <array>
#include <glm/glm.hpp>

namespace sample {

inline constexpr int kMostHeads = 60;

struct SceneData {
  glm::mat4 view_projection;
  glm::mat4 world_of_clip;
  glm::vec4 camera;    // position; w: heads
  glm::vec4 sun;       // direction towards it
  glm::vec4 screen;    // width, height in pixels; seconds
  glm::vec4 eye_left;  // in head space; w: radius
  glm::vec4 morphs;    // vertices that the mouth moves
  std::array<glm::vec4, 128> occluders;
};
static_assert(sizeof(SceneData) == 128 + 5 * 16 + 128 * 16);

struct HeadData {
  glm::mat4 body;
  glm::mat4 head;
  glm::vec4 skin;
  glm::vec4 hair;
  glm::vec4 cloth;
  glm::vec4 iris;
  glm::vec4 lips;
  glm::vec4 look;
  glm::vec4 mouth_a;
  glm::vec4 mouth_b;
};
static_assert(sizeof(HeadData) == 256);

}  // namespace sample
