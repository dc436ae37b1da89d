// needs: GL_GOOGLE_include_directive. One piece of the overlay, as overlay/canvas.h has it.
struct Piece {
  vec4 box;    // left, top, right, bottom in pixels
  vec4 color;  // sRGB and coverage
  vec4 shape;  // kind; radius of corners or width of strokes; softness, in pixels; first stroke
  vec4 glyph;  // strokes; pixels per unit; origin x, y (base line) in pixels
};
layout(set = 0, binding = 3, std430) readonly buffer Pieces { Piece pieces[]; };
const int kBox = 0, kTail = 1, kGlyph = 2;
