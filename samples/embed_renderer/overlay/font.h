// A font of strokes: letters are lines and arcs of one thickness with round ends, drawn by distance
// in the fragment shader. So they are sharp at any size and need no file.
#pragma once

#include <glm/glm.hpp>
#include <string_view>
#include <vector>

namespace sample {

// Font units: capitals are 10 high, small letters 7.
struct Glyph {
  float first = 0.0F;  // index of its first stroke
  float count = 0.0F;
  float left = 0.0F, right = 0.0F, bottom = 0.0F, top = 0.0F;
  float advance = 0.0F;
};

class Font {
 public:
  Font();
  // Printable ASCII; a small box for what it lacks.
  const Glyph& glyph(char letter) const;
  // Straight strokes of all glyphs: from x, y to x, y, y up.
  const std::vector<glm::vec4>& strokes() const { return strokes_; }
  // Width of a text in font units.
  float width(std::string_view text) const;

 private:
  Glyph add(std::string_view path);

  std::vector<glm::vec4> strokes_;
  std::vector<Glyph> glyphs_;  // from ' ' to '~', then the box
};

}  // namespace sample
