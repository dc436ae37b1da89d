#version 450
// computes: the backdrop as it was painted once, for nothing in it moves.
// shapes: one pixel.
// mapping: one invocation a pixel that no head covers.
// bounds: nothing is ragged.
// requires: nothing.
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(set = 0, binding = 5, std430) readonly buffer Backdrop {
  uint backdrop_rgba[];  // rows from the top
};
layout(location = 0) out vec4 out_color;

void main() {
  uint pixel = uint(gl_FragCoord.y) * uint(scene.screen.x) + uint(gl_FragCoord.x);
  out_color = unpackUnorm4x8(backdrop_rgba[pixel]);
}
