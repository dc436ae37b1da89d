#version 450
// computes: places the vertices of all parts of a head: mouth shapes, lids, gaze, pose.
// shapes: one instance a head.
// mapping: one invocation a vertex.
// bounds: only the first scene.morphs.x vertices have mouth shapes.
// requires: nothing.
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(set = 0, binding = 2, std430) readonly buffer Morphs {
  vec4 morph_deltas[];  // (vertices, 8 shapes, position and normal)
};

layout(location = 0) in vec3 in_position;
layout(location = 1) in vec3 in_normal;
layout(location = 2) in vec4 in_tint;  // material, occlusion, u, v

layout(location = 0) out vec3 out_world;
layout(location = 1) out vec3 out_normal;
layout(location = 2) out vec3 out_local;
layout(location = 3) out vec4 out_tint;
layout(location = 4) flat out int out_head;
layout(location = 5) out vec2 out_reach;  // shares of the sun and the sky

const float kPi = 3.14159265;

void add_shape(int shape, float weight, inout vec3 position, inout vec3 normal) {
  if (weight < 0.001) return;
  int first = (gl_VertexIndex * 8 + shape) * 2;
  position += weight * morph_deltas[first].xyz;
  normal += weight * morph_deltas[first + 1].xyz;
}

// A lid is a shell around the eyeball whose meridians run from corner to corner; v goes from the
// socket to the lid's edge, and the edge alone moves.
void place_lid(Head head, inout vec3 position, out vec3 normal) {
  bool upper = in_position.y > 0.5;
  vec3 center = scene.eye_left.xyz;
  float side = in_position.x;  // -1 or 1 here: which eye
  center.x *= -side;
  float blink = head.look.z;
  float open_edge = 0.5 * kPi - head.iris.w + head.look.y * -0.8;
  float edge = upper ? mix(open_edge, 0.68 * kPi, blink) : mix(0.755, 0.68, blink) * kPi;
  float root = upper ? -0.25 * kPi : 1.2 * kPi;
  float a = in_tint.z * kPi, b = mix(root, edge, in_tint.w);
  // Corners are drawn inwards, or the shell would end in points beside the eye.
  normal = vec3(cos(a), sin(a) * cos(b), sin(a) * sin(b));
  float radius = scene.eye_left.w * (1.085 - 0.02 * in_tint.w + (upper ? 0.012 : 0.0));
  position = center + radius * normal;
}

// The sun's share that reaches a vertex past all heads, and the sky's: soft enough to be known at
// vertices only.
vec2 light_reaching(vec3 at, vec3 normal, bool of_bust) {
  float sun_share = 1.0, sky_share = 1.0;
  int count = int(scene.camera.w);
  for (int i = 0; i < count; ++i) {
    vec4 head_sphere = scene.occluders[2 * i], shoulders = scene.occluders[2 * i + 1];
    vec3 to = head_sphere.xyz - at;
    if (dot(to, to) > 30.0) continue;
    if (i != gl_InstanceIndex || of_bust) {
      sun_share *= sphere_shadow(at, scene.sun.xyz, head_sphere);
      sky_share *= 1.0 - 0.6 * sphere_occlusion(at, normal, head_sphere);
    }
    if (i != gl_InstanceIndex) sky_share *= 1.0 - 0.7 * sphere_occlusion(at, normal, shoulders);
  }
  return vec2(sun_share, sky_share);
}

void main() {
  Head head = heads[gl_InstanceIndex];
  int material = int(in_tint.x + 0.5);
  vec3 position = in_position, normal = in_normal;
  out_tint = in_tint;
  if (gl_VertexIndex < int(scene.morphs.x)) {
    for (int shape = 0; shape < 4; ++shape) {
      add_shape(shape, head.mouth_a[shape], position, normal);
      add_shape(shape + 4, head.mouth_b[shape], position, normal);
    }
  } else if (material == kLid) {
    place_lid(head, position, normal);
    out_tint.y = in_position.y > 0.5 ? 1.0 : 0.9;
  } else if (material == kBrow) {
    position.y += 0.09 * head.look.w;
  } else if (material == kEye) {
    position = position * scene.eye_left.w;  // a unit sphere until here; u says which eye
    position += scene.eye_left.xyz * vec3(in_tint.z, 1.0, 1.0);
  }
  mat4 world_of_part = material == kBust ? head.body : head.head;
  vec4 world = world_of_part * vec4(position, 1.0);
  world.y = max(world.y, 0.0);  // busts end on the floor, whatever row they stand in
  out_world = world.xyz;
  out_normal = mat3(world_of_part) * normal;
  out_local = material == kEye ? in_position : position;
  out_head = gl_InstanceIndex;
  out_reach = light_reaching(out_world, normalize(out_normal), material == kBust);
  gl_Position = scene.view_projection * world;
}
