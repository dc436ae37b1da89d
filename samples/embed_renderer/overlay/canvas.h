// A list of flat pieces for the overlay's shader: boxes, tails, letters, drawn in order.
#pragma once

#include <glm/glm.hpp>
#include <string_view>
#include <vector>

#include "overlay/font.h"

namespace sample {

// As shaders/piece.glsl reads it.
struct Piece {
  glm::vec4 box{0.0F};
  glm::vec4 color{0.0F};
  glm::vec4 shape{0.0F};
  glm::vec4 glyph{0.0F};
};
static_assert(sizeof(Piece) == 64);

// A rectangle in pixels, y down.
struct Box {
  float left = 0.0F, top = 0.0F, right = 0.0F, bottom = 0.0F;
};

// How a text looks; sizes in pixels.
struct TextStyle {
  float capitals = 10.0F;  // their height
  float weight = 1.4F;     // of strokes, in font units
  glm::vec4 color{1.0F};
};

class Canvas {
 public:
  // More pieces than that are dropped.
  static constexpr size_t kMostPieces = 4096;

  explicit Canvas(const Font& font) : font_(&font) {}
  void clear() { pieces_.clear(); }
  const std::vector<Piece>& pieces() const { return pieces_; }

  // `soft` blurs the edge, as a shadow's.
  void box(const Box& box, float radius, const glm::vec4& color, float soft = 0.0F);
  // A triangle whose point is at the bottom; at the top where box.top > box.bottom.
  void tail(const Box& box, const glm::vec4& color);
  // Returns where the text ends.
  float text(float x, float baseline, std::string_view text, const TextStyle& style);
  float width(std::string_view text, const TextStyle& style) const;

 private:
  void add(const Piece& piece);

  const Font* font_;
  std::vector<Piece> pieces_;
};

}  // namespace sample
