#include "scene/hair.h"

#include <algorithm>
#include <cmath>
#include <glm/gtc/constants.hpp>

#include "scene/head_shape.h"

namespace sample {

namespace {

constexpr float kBeyond = 0.13F;  // radians that the shell goes on under the skin

float ease(float low, float high, float x) {
  const float t = std::clamp((x - low) / (high - low), 0.0F, 1.0F);
  return t * t * (3.0F - 2.0F * t);
}

float bell(float x, float width) {
  return std::exp(-(x / width) * (x / width));
}

// A direction from the head's middle: radians above the horizon, and from the front, 0 to pi.
struct Bearing {
  float up = 0.0F;
  float turn = 0.0F;
  float side = 1.0F;  // -1 to the right

  glm::vec3 ray() const {
    return {side * std::cos(up) * std::sin(turn), std::sin(up), std::cos(up) * std::cos(turn)};
  }
};

// How a style grows: where hair ends (radians above the horizon) and how thick it is.
struct Growth {
  float line = 0.0F;
  float thickness = 0.0F;
};

// Front, temple, ear and nape are fixed points of a hairline; between them it is smooth.
float hairline(const Bearing& b, float front, float ear, float nape) {
  const float to_ear = ease(0.75F, 1.30F, b.turn), to_nape = ease(1.55F, 2.05F, b.turn);
  const float temple = 0.06F * bell(b.turn - 0.62F, 0.2F);
  return front + temple + (ear - front) * to_ear + (nape - ear) * to_nape;
}

float waves(const Bearing& b, float often) {
  return std::sin(often * b.up * 2.2F + 1.0F) * std::sin(often * b.turn * b.side) +
         0.5F * std::sin(1.7F * often * b.up) * std::cos(1.9F * often * b.turn * b.side + 0.5F);
}

Growth growth(HairStyle style, const Bearing& b) {
  const float front = bell(b.turn, 0.8F), top = ease(0.6F, 1.3F, b.up);
  switch (style) {
    case HairStyle::kShort:
      return {hairline(b, 0.80F, 0.08F, -0.42F), 0.085F + 0.035F * top};
    case HairStyle::kQuiff: {
      const float wave = 0.26F * front * bell(b.up - 0.95F, 0.36F);
      const float part = 0.03F * std::sin(22.0F * b.side * b.turn) * front;
      return {hairline(b, 0.80F, 0.05F, -0.40F), 0.075F + wave + part * top};
    }
    case HairStyle::kBob: {
      // A curtain at the back of the cheeks, parted above the left eye.
      const float parting = bell(b.side * b.turn - 0.35F, 0.10F) * ease(0.5F, 0.8F, b.up);
      const float curtain = 0.10F * ease(0.5F, -0.4F, b.up) * ease(0.9F, 1.3F, b.turn);
      return {hairline(b, 0.76F, -0.95F, -0.95F), 0.135F + curtain - 0.05F * parting};
    }
    case HairStyle::kCurls:
      return {hairline(b, 0.76F, -0.12F, -0.45F), 0.25F + 0.05F * waves(b, 7.0F)};
    case HairStyle::kBun: {
      const glm::vec3 knot = glm::normalize(glm::vec3(0.0F, 1.0F, -0.28F));
      const float off = std::acos(std::clamp(glm::dot(b.ray(), knot), -1.0F, 1.0F));
      const float ball = 0.40F * std::sqrt(std::max(0.0F, 1.0F - (off / 0.30F) * (off / 0.30F)));
      return {hairline(b, 0.84F, 0.10F, -0.38F), 0.065F + ball};
    }
    case HairStyle::kFringe: {
      const float tips = 0.03F * std::abs(std::sin(6.0F * b.side * b.turn + 0.4F));
      const float fringe = bell(b.turn, 0.75F);
      return {hairline(b, 0.68F + tips, -0.28F, -0.55F), 0.11F + 0.035F * fringe + 0.03F * top};
    }
  }
  return {};
}

}  // namespace

void add_hair(Mesh& mesh, HairStyle style, float detail) {
  const int rows = thinned(34, detail), columns = 2 * thinned(32, detail);
  const Grid grid{rows, columns, Grid::Columns::kClosed};
  add_grid(mesh, grid, [&](int row, int column) {
    const float v = static_cast<float>(row) / static_cast<float>(rows - 1);
    const float around =
        2.0F * glm::pi<float>() * static_cast<float>(column) / static_cast<float>(columns);
    Bearing b;
    b.turn = std::abs(around - glm::pi<float>());  // the seam is at the back
    b.side = around >= glm::pi<float>() ? 1.0F : -1.0F;
    // Rows end a little beyond the hairline and follow it, or its edge would show the grid.
    b.up =
        0.5F * glm::pi<float>() - v * (0.5F * glm::pi<float>() - growth(style, b).line + kBeyond);
    const Growth grown = growth(style, b);
    const float hair = ease(-0.03F, 0.10F, b.up - grown.line);
    const glm::vec3 ray = b.ray();
    const glm::vec3 scalp = surface_point(&scalp_distance, kHeadMiddle, ray);
    const glm::vec3 at = scalp + (grown.thickness * hair - 0.15F * (1.0F - hair)) * ray;
    const float sky = std::clamp(0.55F + 0.5F * (b.up + 0.6F), 0.35F, 1.0F);
    return Vertex{
        at, {}, {static_cast<float>(Material::kHair), sky, around / (2.0F * glm::pi<float>()), v}};
  });
}

}  // namespace sample
