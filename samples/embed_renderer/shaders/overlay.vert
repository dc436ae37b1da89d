#version 450
// computes: the corners of the overlay's pieces: boxes, tails of bubbles, letters.
// shapes: one instance a piece, two triangles each.
// mapping: one invocation a corner.
// bounds: nothing is ragged.
// requires: nothing.
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"
#include "piece.glsl"

layout(location = 0) out vec2 out_pixel;
layout(location = 1) flat out int out_piece;

const vec2 kCorners[6] =
    vec2[](vec2(0, 0), vec2(1, 0), vec2(0, 1), vec2(0, 1), vec2(1, 0), vec2(1, 1));

void main() {
  Piece piece = pieces[gl_InstanceIndex];
  vec2 margin = vec2(piece.shape.z + 1.5);
  out_pixel = mix(piece.box.xy - margin, piece.box.zw + margin, kCorners[gl_VertexIndex]);
  out_piece = gl_InstanceIndex;
  gl_Position = vec4(out_pixel / scene.screen.xy * 2.0 - 1.0, 0.0, 1.0);
}
