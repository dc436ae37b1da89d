#version 450
// computes: how much of a pixel a box with round corners, a bubble's tail or a letter covers.
// shapes: one pixel.
// mapping: one invocation a pixel of a piece.
// bounds: a letter's strokes are `glyph.x` from `shape.w` on.
// requires: nothing.
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"
#include "piece.glsl"

layout(set = 0, binding = 4, std430) readonly buffer Strokes {
  vec4 strokes[];  // from x, y to x, y in font units, y up
};

layout(location = 0) in vec2 in_pixel;
layout(location = 1) flat in int in_piece;
layout(location = 0) out vec4 out_color;

float to_segment(vec2 p, vec2 a, vec2 b) {
  vec2 ab = b - a, ap = p - a;
  return length(ap - ab * clamp(dot(ap, ab) / max(dot(ab, ab), 1e-6), 0.0, 1.0));
}

float to_box(vec2 p, vec4 box, float radius) {
  vec2 half_size = 0.5 * (box.zw - box.xy), q = abs(p - 0.5 * (box.xy + box.zw)) - half_size + radius;
  return length(max(q, 0.0)) + min(max(q.x, q.y), 0.0) - radius;
}

// A triangle that narrows to the bottom of its box, or to the top where the box is upside down.
float to_tail(vec2 p, vec4 box) {
  float middle = 0.5 * (box.x + box.z), half_width = 0.5 * (box.z - box.x);
  float down = (p.y - box.y) / (box.w - box.y);
  float side = abs(p.x - middle) - half_width * (1.0 - down);
  return max(side * 0.8, max(-down, down - 1.0) * abs(box.w - box.y));
}

float to_glyph(vec2 p, Piece piece) {
  vec2 at = vec2(p.x - piece.glyph.z, piece.glyph.w - p.y) / piece.glyph.y;
  int first = int(piece.shape.w), count = int(piece.glyph.x);
  float nearest = 1e3;
  for (int i = first; i < first + count; ++i) {
    nearest = min(nearest, to_segment(at, strokes[i].xy, strokes[i].zw));
  }
  return nearest * piece.glyph.y - 0.5 * piece.shape.y;
}

void main() {
  Piece piece = pieces[in_piece];
  int kind = int(piece.shape.x + 0.5);
  float distance = kind == kBox    ? to_box(in_pixel, piece.box, piece.shape.y)
                   : kind == kTail ? to_tail(in_pixel, piece.box)
                                   : to_glyph(in_pixel, piece);
  float soft = max(piece.shape.z, 0.5);
  out_color = vec4(piece.color.rgb, piece.color.a * smoothstep(soft, -soft, distance));
}
