// The mouth and the face around it: a grid of rings about the slit between the lips, and the shapes
// that speech gives them.
//
// A place on the face has elliptic coordinates. Rings at mu = 0 are the slit itself, larger ones
// ellipses around it, and the last ones circles. The last closes at the back of the head. So the
// lips have an edge of vertices exactly where they part.
#pragma once

#include <array>
#include <glm/glm.hpp>

namespace sample {

// The shapes, in the order of the shader's weights.
enum class MouthShape : uint8_t { kJaw, kWide, kRound, kPress, kBite, kFlare, kSmile, kTongue };
inline constexpr int kMouthShapes = 8;
// Of each shape from 0 to 1.
using MouthWeights = std::array<float, kMouthShapes>;

// A place by elliptic coordinates.
struct FacePlace {
  float mu = 0.0F;     // 0 at the slit, grows outwards
  float theta = 0.0F;  // radians around it; 0 and pi are the corners, pi/2 is up
};

// The last ring's mu.
float last_ring();
// The outer edge of the lips at an angle.
float lip_edge(float theta);

// The surface of the face at rest, lips included.
glm::vec3 rest_position(const FacePlace& place);
// How far a shape moves that place at full weight.
glm::vec3 shape_offset(MouthShape shape, const FacePlace& place, const glm::vec3& rest);
// How far the jaw carries a point that is fixed to it, such as a tooth.
glm::vec3 jaw_offset(const glm::vec3& rest);

}  // namespace sample
