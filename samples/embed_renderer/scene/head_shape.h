// The shape of a head as a signed distance: a few round bodies that melt into each other (smooth
// minimum of Quilez, "Smooth minimum"). Meshes are made by walking from the inside to its surface.
//
// Head space: x to the head's left as the camera sees it from the front (the viewer's right), y up,
// z out of the face. The cranium's radius is about 1.
#pragma once

#include <glm/glm.hpp>

namespace sample {

// Rays to the surface start here, inside.
inline constexpr glm::vec3 kHeadMiddle = {0.0F, -0.08F, 0.0F};
// The left eye's center (of positive x); the right one mirrors it.
inline constexpr glm::vec3 kEye = {0.295F, 0.10F, 0.60F};
inline constexpr float kEyeRadius = 0.19F;

// Distance to the face and cranium, without eyes and hair.
float head_distance(const glm::vec3& p);
// Distance to the cranium alone, without nose and sockets: what hair lies on.
float scalp_distance(const glm::vec3& p);

// Where the ray from `from`, inside, in the unit direction `ray` leaves the shape.
glm::vec3 surface_point(float (*distance)(const glm::vec3&), const glm::vec3& from,
                        const glm::vec3& ray);

// The share of the sky that reaches a point with this normal. It comes from the distances along the
// normal (Evans 2006, "Fast Approximations for Global Illumination on Dynamic Scenes").
float sky_share(float (*distance)(const glm::vec3&), const glm::vec3& point,
                const glm::vec3& normal);

}  // namespace sample
