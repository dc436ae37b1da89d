#include "overlay/font.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace sample {

namespace {

constexpr char kFirst = ' ', kLast = '~';
constexpr float kGap = 2.5F;  // between letters
constexpr float kSpace = 4.2F;

// M x y: go there. L x y: a line from here. O x y rx ry from to: an arc, degrees. A: the same,
// joined to what came before.
struct Drawing {
  char letter;
  std::string_view path;
};

constexpr Drawing kDrawings[] = {
    {'A', "M0 0 L3.6 10 L7.2 0 M1.2 3.3 L6 3.3"},
    {'B',
     "M0 0 L0 10 L3.2 10 A3.2 7.6 2.4 2.4 90 -90 L0 5.2 M3.2 5.2 A3.4 2.6 2.7 2.6 90 -90 L0 0"},
    {'C', "O4.5 5 4.5 5 48 312"},
    {'D', "M0 0 L0 10 L2.6 10 A2.6 5 4.8 5 90 -90 L0 0"},
    {'E', "M5.4 10 L0 10 L0 0 L5.4 0 M0 5.2 L4.7 5.2"},
    {'F', "M5.2 10 L0 10 L0 0 M0 5 L4.5 5"},
    {'G', "O4.5 5 4.5 5 48 350 L8.9 4.7 L5.2 4.7"},
    {'H', "M0 0 L0 10 M6.8 0 L6.8 10 M0 5.2 L6.8 5.2"},
    {'I', "M0 0 L0 10"},
    {'J', "M4 10 L4 2.8 A1.9 2.8 2.1 2.8 0 -155"},
    {'K', "M0 0 L0 10 M6 10 L0 4 M2.3 6.2 L6.4 0"},
    {'L', "M0 10 L0 0 L5 0"},
    {'M', "M0 0 L0 10 L4.2 3.4 L8.4 10 L8.4 0"},
    {'N', "M0 0 L0 10 L6.8 0 L6.8 10"},
    {'O', "O4.7 5 4.7 5 0 360"},
    {'P', "M0 0 L0 10 L3.2 10 A3.2 7.2 2.8 2.8 90 -90 L0 4.4"},
    {'Q', "O4.7 5 4.7 5 0 360 M6 2.6 L8.8 -0.6"},
    {'R', "M0 0 L0 10 L3.2 10 A3.2 7.2 2.8 2.8 90 -90 L0 4.4 M3 4.4 L6.2 0"},
    {'S', "O3 7.45 2.7 2.55 35 270 A3 2.45 3 2.45 90 -145"},
    {'T', "M0 10 L6.8 10 M3.4 10 L3.4 0"},
    {'U', "M0 10 L0 3.5 A3.4 3.5 3.4 3.5 180 360 L6.8 10"},
    {'V', "M0 10 L3.6 0 L7.2 10"},
    {'W', "M0 10 L2.7 0 L5.4 8.8 L8.1 0 L10.8 10"},
    {'X', "M0 10 L6.6 0 M6.6 10 L0 0"},
    {'Y', "M0 10 L3.4 4.8 L6.8 10 M3.4 4.8 L3.4 0"},
    {'Z', "M0.2 10 L6.2 10 L0 0 L6.4 0"},
    {'a', "O3 3.5 3 3.5 0 360 M6 7 L6 0"},
    {'b', "M0 10.5 L0 0 O3 3.5 3 3.5 0 360"},
    {'c', "O3 3.5 3 3.5 45 315"},
    {'d', "O3 3.5 3 3.5 0 360 M6 10.5 L6 0"},
    {'e', "M0.1 3.6 L6 3.6 A3 3.5 3 3.5 2 318"},
    {'f', "M1.4 0 L1.4 8 A3.3 8 1.9 2.5 180 70 M0 6.6 L3.7 6.6"},
    {'g', "O3 3.5 3 3.5 0 360 M6 7 L6 -0.4 A3 -0.4 3 2.7 0 -150"},
    {'h', "M0 10.5 L0 0 M0 3.4 A2.7 3.9 2.7 3.1 180 0 L5.4 0"},
    {'i', "M0 7 L0 0 M0 9.9 L0 10"},
    {'j', "M1.6 7 L1.6 -1 A-0.2 -1 1.8 2.2 0 -90 M1.6 9.9 L1.6 10"},
    {'k', "M0 10.5 L0 0 M4.9 7 L0 2.7 M1.9 4.3 L5.2 0"},
    {'l', "M0 10.5 L0 0"},
    {'m', "M0 7 L0 0 M0 3.8 A2.3 4.3 2.3 2.7 180 0 L4.6 0 M4.6 3.8 A6.9 4.3 2.3 2.7 180 0 L9.2 0"},
    {'n', "M0 7 L0 0 M0 3.4 A2.7 3.9 2.7 3.1 180 0 L5.4 0"},
    {'o', "O3.1 3.5 3.1 3.5 0 360"},
    {'p', "M0 7 L0 -3.2 O3 3.5 3 3.5 0 360"},
    {'q', "O3 3.5 3 3.5 0 360 M6 7 L6 -3.2"},
    {'r', "M0 7 L0 0 M0 3.6 A2.6 4 2.6 3 180 62"},
    {'s', "O2.3 5.25 2.1 1.75 35 270 A2.3 1.75 2.3 1.75 90 -145"},
    {'t', "M1.4 9.4 L1.4 2.2 A3.2 2.2 1.8 2.2 180 300 M0 6.8 L3.8 6.8"},
    {'u', "M0 7 L0 3.1 A2.7 3.1 2.7 3.1 180 360 M5.4 7 L5.4 0"},
    {'v', "M0 7 L2.7 0 L5.4 7"},
    {'w', "M0 7 L2.1 0 L4.2 6.4 L6.3 0 L8.4 7"},
    {'x', "M0 7 L4.9 0 M4.9 7 L0 0"},
    {'y', "M0 7 L2.8 0 M5.5 7 L1.7 -3.1"},
    {'z', "M0.1 7 L4.7 7 L0 0 L4.9 0"},
    {'0', "O3 5 3 5 0 360"},
    {'1', "M1 7.8 L3.4 10 L3.4 0"},
    {'2', "O3 7.2 2.8 2.8 165 -35 L0.2 0 L6 0"},
    {'3', "O2.8 7.55 2.4 2.45 150 -90 A2.8 2.55 3 2.55 90 -150"},
    {'4', "M4.5 0 L4.5 10 L0 2.9 L6 2.9"},
    {'5', "M5.3 10 L1 10 L0.6 5.4 A2.9 3.2 3 3.2 125 -150"},
    {'6', "O3 3.1 3 3.1 0 360 M4.7 10 L0.5 4.8"},
    {'7', "M0 10 L6 10 L2 0"},
    {'8', "O3 7.55 2.4 2.45 0 360 O3 2.55 2.9 2.55 0 360"},
    {'9', "O3 6.9 3 3.1 0 360 M5.5 5.2 L1.4 0"},
    {'.', "M0 0.2 L0 0.3"},
    {',', "M0.5 0.3 L0 -1.6"},
    {'\'', "M0 10.3 L0 8"},
    {'"', "M0 10.3 L0 8 M2 10.3 L2 8"},
    {'!', "M0 10 L0 3.4 M0 0.2 L0 0.3"},
    {'?', "O2.5 7.5 2.5 2.5 170 -50 L2.5 3.4 M2.5 0.2 L2.5 0.3"},
    {'-', "M0 3.8 L3.2 3.8"},
    {'+', "M0 4.2 L5 4.2 M2.5 1.7 L2.5 6.7"},
    {':', "M0 0.4 L0 0.5 M0 5.8 L0 5.9"},
    {';', "M0.5 0.3 L0 -1.6 M0.5 5.8 L0.5 5.9"},
    {'/', "M0 -1 L4 11"},
    {'(', "O3.6 4.5 3.6 7 125 235"},
    {')', "O-1.4 4.5 3.6 7 55 -55"},
    {'<', "M4.5 7 L0 4 L4.5 1"},
    {'=', "M0 5.4 L4.6 5.4 M0 2.8 L4.6 2.8"},
    {'*', "M0 3.9 L0 4"},
    {'%', "O1.7 7.9 1.7 2.1 0 360 O6.5 2.1 1.7 2.1 0 360 M1.4 0 L6.8 10"},
};
constexpr std::string_view kBox = "M0 0 L0 7 L4.5 7 L4.5 0 L0 0";

// Reads the numbers of a path one after the other.
class Pen {
 public:
  Pen(std::string_view path, std::vector<glm::vec4>& strokes) : text_(path), strokes_(&strokes) {}

  void draw() {
    const char* at = text_.c_str();
    while (*at != '\0') {
      const char step = *at++;
      if (step == ' ') continue;
      float n[6] = {};
      const int count = step == 'M' || step == 'L' ? 2 : 6;
      for (int i = 0; i < count; ++i) {
        char* end = nullptr;
        n[i] = std::strtof(at, &end);
        at = end;
      }
      if (step == 'M') here_ = {n[0], n[1]};
      if (step == 'L') line_to({n[0], n[1]});
      if (step == 'A' || step == 'O') arc({n[0], n[1]}, {n[2], n[3]}, n[4], n[5], step == 'A');
    }
  }

 private:
  void line_to(const glm::vec2& to) {
    strokes_->emplace_back(here_, to);
    here_ = to;
  }

  void arc(const glm::vec2& center, const glm::vec2& radii, float from, float to, bool joined) {
    const int pieces = std::max(4, static_cast<int>(std::abs(to - from) / 20.0F));
    for (int i = 0; i <= pieces; ++i) {
      const float share = static_cast<float>(i) / static_cast<float>(pieces);
      const float angle = glm::radians(from + (to - from) * share);
      const glm::vec2 point = center + radii * glm::vec2(std::cos(angle), std::sin(angle));
      if (i == 0 && !joined) {
        here_ = point;
      } else {
        line_to(point);
      }
    }
  }

  std::string text_;
  std::vector<glm::vec4>* strokes_;
  glm::vec2 here_{0.0F};
};

}  // namespace

Font::Font() {
  const Glyph box = add(kBox);
  glyphs_.assign(static_cast<size_t>(kLast - kFirst + 2), box);
  for (const Drawing& drawing : kDrawings) {
    glyphs_[static_cast<size_t>(drawing.letter - kFirst)] = add(drawing.path);
  }
  glyphs_.front() = {};
  glyphs_.front().advance = kSpace;
  // Figures stand in columns.
  for (char digit = '0'; digit <= '9'; ++digit) {
    glyphs_[static_cast<size_t>(digit - kFirst)].advance = 6.0F + kGap;
  }
}

Glyph Font::add(std::string_view path) {
  Glyph glyph;
  const size_t first = strokes_.size();
  Pen(path, strokes_).draw();
  glyph.first = static_cast<float>(first);
  glyph.count = static_cast<float>(strokes_.size() - first);
  for (size_t i = first; i < strokes_.size(); ++i) {
    const glm::vec4& s = strokes_[i];
    glyph.left = std::min({glyph.left, s.x, s.z});
    glyph.right = std::max({glyph.right, s.x, s.z});
    glyph.bottom = std::min({glyph.bottom, s.y, s.w});
    glyph.top = std::max({glyph.top, s.y, s.w});
  }
  glyph.advance = glyph.right + kGap;
  return glyph;
}

const Glyph& Font::glyph(char letter) const {
  const bool known = letter >= kFirst && letter <= kLast;
  return known ? glyphs_[static_cast<size_t>(letter - kFirst)] : glyphs_.back();
}

float Font::width(std::string_view text) const {
  float width = 0.0F;
  for (const char letter : text) width += glyph(letter).advance;
  return text.empty() ? 0.0F : width - kGap;
}

}  // namespace sample
