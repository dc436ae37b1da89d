#include "scene/mouth.h"

#include <algorithm>
#include <cmath>
#include <glm/gtc/constants.hpp>

#include "scene/head_shape.h"

namespace sample {

namespace {

constexpr float kHalfWidth = 0.25F;  // of the slit, radians seen from the head's middle
constexpr float kLipMu = 0.40F;
constexpr float kMouthTilt = -0.40F;                  // radians below the horizon, from the middle
constexpr glm::vec3 kHinge = {0.0F, -0.12F, -0.12F};  // of the jaw, before the ears

float bell(float x, float width) {
  return std::exp(-(x / width) * (x / width));
}

float ease(float low, float high, float x) {
  const float t = std::clamp((x - low) / (high - low), 0.0F, 1.0F);
  return t * t * (3.0F - 2.0F * t);
}

// Radians from the slit, roughly.
float away(const FacePlace& place) {
  return kHalfWidth * std::sinh(place.mu);
}

// How much a place belongs to the lower lip's side.
float lower_side(const FacePlace& place) {
  return std::clamp(-std::sin(place.theta) * (1.0F + 1.2F * place.mu), 0.0F, 1.0F);
}

float upper_side(const FacePlace& place) {
  return std::clamp(std::sin(place.theta) * (1.0F + 1.2F * place.mu), 0.0F, 1.0F);
}

glm::vec3 direction(const FacePlace& place) {
  const float x = kHalfWidth * std::cosh(place.mu) * std::cos(place.theta);
  // The corners turn up a little: a friendly mouth.
  const float near_slit = bell(away(place), 0.25F);
  const float lift = 0.045F * near_slit * std::cos(place.theta) * std::cos(place.theta) - 0.012F;
  const float y = kHalfWidth * std::sinh(place.mu) * std::sin(place.theta) + lift * near_slit;
  const float radius = std::min(std::hypot(x, y), glm::pi<float>()), around = std::atan2(y, x);
  const glm::vec3 forward(0.0F, std::sin(kMouthTilt), std::cos(kMouthTilt));
  const glm::vec3 right(1.0F, 0.0F, 0.0F);
  const glm::vec3 up = glm::cross(forward, right);
  return std::cos(radius) * forward +
         std::sin(radius) * (std::cos(around) * right + std::sin(around) * up);
}

// Height of the lips over the face: thin at the inner edge, full in the middle, a crease outside.
float lip_height(const FacePlace& place) {
  const float t = place.mu / lip_edge(place.theta);
  const float fullness = std::sin(place.theta) < 0.0F ? 0.042F : 0.034F;
  const float profile = t < 1.0F ? std::sin(glm::pi<float>() * std::pow(std::max(t, 0.0F), 0.75F))
                                 : -0.35F * bell(t - 1.25F, 0.2F);
  const float corner = 0.25F + 0.75F * std::abs(std::sin(place.theta));
  return fullness * profile * corner - 0.02F * bell(place.mu, 0.06F);
}

}  // namespace

float last_ring() {
  return std::acosh(glm::pi<float>() / kHalfWidth);
}

float lip_edge(float theta) {
  if (std::sin(theta) < 0.0F) return kLipMu * 1.08F;
  const float x = std::cos(theta);
  return kLipMu * (0.98F - 0.20F * bell(x, 0.16F));  // Cupid's bow
}

glm::vec3 rest_position(const FacePlace& place) {
  const glm::vec3 ray = direction(place);
  return surface_point(&head_distance, kHeadMiddle, ray) + lip_height(place) * ray;
}

glm::vec3 jaw_offset(const glm::vec3& rest) {
  constexpr float kAngle = 0.26F;
  const glm::vec3 arm = rest - kHinge;
  return kAngle * glm::vec3(0.0F, -arm.z, arm.y);
}

glm::vec3 shape_offset(MouthShape shape, const FacePlace& place, const glm::vec3& rest) {
  const float d = away(place), lower = lower_side(place), upper = upper_side(place);
  const float near_lips = bell(d, 0.13F), around = bell(d, 0.30F);
  const float side = rest.x < 0.0F ? -1.0F : 1.0F;
  switch (shape) {
    case MouthShape::kJaw: {
      // Cheeks stretch: less of it the farther from lips and chin.
      const float share = lower * (1.0F - ease(0.42F, 1.0F, d));
      const glm::vec3 narrower(-0.10F * rest.x * around, 0.040F * upper * near_lips, 0.0F);
      return share * jaw_offset(rest) + narrower;
    }
    case MouthShape::kWide:
      return around * glm::vec3(0.30F * rest.x, 0.02F * std::abs(rest.x) - 0.008F * (upper - lower),
                                -0.10F * std::abs(rest.x) - 0.01F);
    case MouthShape::kRound:
      return around * glm::vec3(-0.52F * rest.x, 0.0F, 0.05F + 0.06F * near_lips) +
             near_lips * glm::vec3(0.0F, 0.034F * (upper - lower), 0.0F);
    case MouthShape::kPress: {
      // Lips roll in: the red gets narrow, the line between them stays.
      const float lip = bell(d, 0.10F);
      return lip * glm::vec3(0.0F, -0.45F * d * (upper - lower), -0.035F);
    }
    case MouthShape::kBite:
      return near_lips *
             (lower * glm::vec3(0.0F, 0.030F, -0.055F) + upper * glm::vec3(0.0F, 0.040F, 0.005F));
    case MouthShape::kFlare:
      return near_lips *
             (lower * glm::vec3(0.0F, -0.045F, 0.03F) + upper * glm::vec3(0.0F, 0.042F, 0.03F));
    case MouthShape::kSmile: {
      const float x = std::abs(rest.x) - 0.24F, y = d * std::sin(place.theta);
      const float corner = bell(std::hypot(x, y), 0.20F);
      return corner * glm::vec3(0.075F * side, 0.075F, -0.02F);
    }
    case MouthShape::kTongue:
      return glm::vec3(0.0F);
  }
  return glm::vec3(0.0F);
}

}  // namespace sample
