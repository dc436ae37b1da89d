#include "overlay/canvas.h"

namespace sample {

namespace {

// As shaders/piece.glsl numbers them.
constexpr float kBoxKind = 0.0F, kTailKind = 1.0F, kGlyphKind = 2.0F;

}  // namespace

void Canvas::add(const Piece& piece) {
  if (pieces_.size() < kMostPieces) pieces_.push_back(piece);
}

void Canvas::box(const Box& box, float radius, const glm::vec4& color, float soft) {
  add({{box.left, box.top, box.right, box.bottom}, color, {kBoxKind, radius, soft, 0.0F}, {}});
}

void Canvas::tail(const Box& box, const glm::vec4& color) {
  add({{box.left, box.top, box.right, box.bottom}, color, {kTailKind, 0.0F, 0.0F, 0.0F}, {}});
}

float Canvas::text(float x, float baseline, std::string_view text, const TextStyle& style) {
  const float unit = style.capitals / 10.0F;
  const float stroke = style.weight * unit;
  for (const char letter : text) {
    const Glyph& glyph = font_->glyph(letter);
    if (glyph.count > 0.0F) {
      const float half = 0.5F * stroke;
      add({{x + glyph.left * unit - half, baseline - glyph.top * unit - half,
            x + glyph.right * unit + half, baseline - glyph.bottom * unit + half},
           style.color,
           {kGlyphKind, stroke, 0.0F, glyph.first},
           {glyph.count, unit, x, baseline}});
    }
    x += glyph.advance * unit;
  }
  return x;
}

float Canvas::width(std::string_view text, const TextStyle& style) const {
  return font_->width(text) * style.capitals / 10.0F;
}

}  // namespace sample
