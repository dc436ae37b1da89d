#include "scene/head_shape.h"

#include <algorithm>

namespace sample {

namespace {

float join(float a, float b, float softness) {
  const float h = std::max(softness - std::abs(a - b), 0.0F) / softness;
  return std::min(a, b) - h * h * softness * 0.25F;
}

float carve(float a, float b, float softness) {
  return -join(-a, b, softness);
}

float sphere(const glm::vec3& p, const glm::vec3& center, float radius) {
  return glm::length(p - center) - radius;
}

float ellipsoid(const glm::vec3& p, const glm::vec3& center, const glm::vec3& radii) {
  const glm::vec3 q = p - center;
  const float k = glm::length(q / radii), slope = glm::length(q / (radii * radii));
  return slope > 1e-6F ? k * (k - 1.0F) / slope : -std::min(radii.x, std::min(radii.y, radii.z));
}

float capsule(const glm::vec3& p, const glm::vec3& a, const glm::vec3& b, float radius) {
  const glm::vec3 ap = p - a, ab = b - a;
  const float along = std::clamp(glm::dot(ap, ab) / glm::dot(ab, ab), 0.0F, 1.0F);
  return glm::length(ap - ab * along) - radius;
}

}  // namespace

float scalp_distance(const glm::vec3& p) {
  const glm::vec3 q(std::abs(p.x), p.y, p.z);
  const float cranium = ellipsoid(q, {0.0F, 0.22F, -0.08F}, {0.80F, 0.84F, 0.90F});
  const float face = ellipsoid(q, {0.0F, -0.24F, 0.10F}, {0.63F, 0.66F, 0.70F});
  float d = join(cranium, face, 0.30F);
  d = join(d, sphere(q, {0.0F, -0.76F, 0.42F}, 0.17F), 0.24F);      // chin
  return join(d, sphere(q, {0.36F, -0.24F, 0.46F}, 0.27F), 0.20F);  // cheek
}

float head_distance(const glm::vec3& p) {
  const glm::vec3 q(std::abs(p.x), p.y, p.z);
  float d = scalp_distance(p);
  d = join(d, capsule(q, {0.12F, 0.36F, 0.74F}, {0.42F, 0.35F, 0.60F}, 0.09F), 0.16F);  // brow
  d = join(d, ellipsoid(q, {0.0F, -0.45F, 0.58F}, {0.30F, 0.20F, 0.24F}), 0.16F);       // mouth
  d = carve(d, sphere(q, kEye + glm::vec3(0.0F, 0.01F, 0.11F), 0.195F), 0.17F);         // socket
  float nose = capsule(q, {0.0F, 0.20F, 0.76F}, {0.0F, -0.10F, 0.91F}, 0.065F);
  nose = join(nose, sphere(q, {0.0F, -0.12F, 0.92F}, 0.105F), 0.08F);
  nose = join(nose, sphere(q, {0.085F, -0.145F, 0.85F}, 0.065F), 0.05F);
  return join(d, nose, 0.09F);
}

glm::vec3 surface_point(float (*distance)(const glm::vec3&), const glm::vec3& from,
                        const glm::vec3& ray) {
  // Bisection between a point inside and one outside: the shape is near enough to star-shaped.
  float inside = 0.0F, outside = 0.0F;
  while (outside < 3.0F && distance(from + outside * ray) < 0.0F) {
    inside = outside;
    outside += 0.05F;
  }
  for (int i = 0; i < 20; ++i) {
    const float middle = 0.5F * (inside + outside);
    (distance(from + middle * ray) < 0.0F ? inside : outside) = middle;
  }
  return from + outside * ray;
}

float sky_share(float (*distance)(const glm::vec3&), const glm::vec3& point,
                const glm::vec3& normal) {
  float hidden = 0.0F, weight = 1.0F;
  for (int i = 1; i <= 5; ++i) {
    const float step = 0.05F * static_cast<float>(i);
    hidden += weight * std::max(step - distance(point + step * normal), 0.0F);
    weight *= 0.75F;
  }
  return std::clamp(1.0F - 1.2F * hidden, 0.25F, 1.0F);
}

}  // namespace sample
