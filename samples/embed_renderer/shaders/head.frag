#version 450
// computes: the light on a head: skin, eyes, hair, cloth, teeth under one sun and a sky.
// shapes: one pixel.
// mapping: one invocation a pixel of a head.
// bounds: nothing is ragged.
// requires: nothing.
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

// What of a head this pipeline draws: a pixel pays for its own materials only.
layout(constant_id = 0) const int kGroup = 0;
const int kSkinGroup = 0, kEyeGroup = 1, kBustGroup = 2, kMouthGroup = 3, kHairGroup = 4;

layout(location = 0) in vec3 in_world;
layout(location = 1) in vec3 in_normal;
layout(location = 2) in vec3 in_local;
layout(location = 3) in vec4 in_tint;
layout(location = 4) flat in int in_head;
layout(location = 5) in vec2 in_reach;
layout(location = 0) out vec4 out_color;

struct Surface {
  vec3 color;
  vec3 normal;
  float gloss;      // strength of the highlight
  float sharpness;  // its exponent
  float wrap;       // how far light creeps around, as under skin
  float occlusion;
};

// The eyeball, by the angle between a point of it and the gaze: pupil, iris with fibres, limbus,
// the white of the eye.
void paint_eye(Head head, inout Surface s) {
  float right = head.look.x, up = head.look.y;
  vec3 gaze = vec3(sin(right) * cos(up), sin(up), cos(right) * cos(up));
  vec3 at = normalize(in_local);
  float off = acos(clamp(dot(at, gaze), -1.0, 1.0));
  vec3 across = at - gaze * dot(at, gaze);
  float fibre = 0.85 + 0.15 * sin(atan(across.y, across.x) * 24.0);
  vec3 iris = head.iris.rgb * fibre * mix(0.75, 1.6, smoothstep(0.2, 0.5, off - across.y * 0.5));
  vec3 white = vec3(0.86, 0.84, 0.82) * mix(vec3(1.0), vec3(0.85, 0.7, 0.68),
                                            smoothstep(0.9, 1.5, off));
  s.color = mix(iris, white, smoothstep(0.52, 0.58, off));
  s.color *= 1.0 - 0.75 * smoothstep(0.09, 0.0, abs(off - 0.53));
  s.color = mix(vec3(0.008), s.color, smoothstep(0.23, 0.28, off));
  s.gloss = 0.0;
  // The upper lid's shadow.
  s.occlusion = mix(0.55, 1.0, smoothstep(0.75, 0.1, at.y));
}

void paint_skin(Head head, inout Surface s) {
  vec3 p = in_local;
  s.color = head.skin.rgb;
  vec2 cheek = (vec2(abs(p.x), p.y) - vec2(0.42, -0.2)) / vec2(0.24, 0.17);
  float blush = exp(-dot(cheek, cheek)) * step(0.0, p.z);
  vec2 tip = (p.xy - vec2(0.0, -0.12)) / vec2(0.13, 0.1);
  blush = max(blush, 0.6 * exp(-dot(tip, tip)) * smoothstep(0.8, 0.95, p.z));
  s.color = mix(s.color, s.color * vec3(1.15, 0.62, 0.58), blush * head.skin.w);
  float lip = in_tint.z;
  s.color = mix(s.color, head.lips.rgb, lip);
  s.gloss = mix(0.16, 0.32, lip);
  s.sharpness = mix(18.0, 42.0, lip);
  s.wrap = 0.45;
}

void paint_bust(Head head, inout Surface s) {
  float collar = in_local.y + 1.16 - 0.10 * in_local.z;
  if (collar > 0.0) {
    s.color = head.skin.rgb * 0.95;
    s.wrap = 0.35;
    s.gloss = 0.1;
    return;
  }
  s.color = head.cloth.rgb;
  float band = sin(in_local.y * 21.0);
  if (head.cloth.w > 0.5) s.color = mix(s.color, vec3(0.82, 0.8, 0.75), smoothstep(0.1, 0.3, band));
  // A ribbed collar, and the weave as a little noise of the normal's.
  float rib = smoothstep(-0.11, -0.09, collar);
  s.color *= 1.0 - 0.35 * smoothstep(0.02, 0.0, abs(collar + 0.10));
  s.color *= mix(1.0, 0.92 + 0.08 * sin(atan(in_local.x, in_local.z) * 90.0), rib);
  s.gloss = 0.04;
  s.sharpness = 8.0;
  s.wrap = 0.2;
}

// Hair: strands along v, with a highlight that lies across them (Kajiya and Kay 1989).
vec3 hair_light(Head head, vec3 n, vec3 view, vec3 sun, float strand) {
  vec3 axis = normalize(mat3(head.head) * vec3(0.0, 1.0, -0.25));
  vec3 tangent = normalize(axis - n * dot(axis, n) + 1e-4);
  vec3 half_way = normalize(view + sun);
  float across = dot(tangent, half_way) + 0.12 * (strand - 0.5);
  float shine = pow(sqrt(max(0.0, 1.0 - across * across)), 60.0) * max(dot(n, sun) * 0.8 + 0.2, 0.0);
  return (head.hair.rgb * 1.6 + 0.10) * shine * head.hair.w;
}

float strands(vec2 uv) {
  float a = sin(uv.x * 410.0 + 3.0 * sin(uv.y * 9.0)), b = sin(uv.x * 173.0 + 2.0 * sin(uv.y * 5.0));
  return 0.5 + 0.25 * a + 0.25 * b;
}

void paint_lid(Head head, inout Surface s) {
  // The lashes' line.
  float lash = smoothstep(0.93, 0.965, in_tint.w) * (in_tint.y > 0.95 ? 1.0 : 0.2);
  s.color = mix(head.skin.rgb * 0.9, head.hair.rgb * 0.25, lash);
  s.gloss = 0.08;
  s.wrap = 0.35;
}

void paint_mouth(int material, inout Surface s) {
  if (material == kTeeth) {
    s.color = vec3(0.86, 0.84, 0.78);
    s.gloss = 0.3;
    s.sharpness = 40.0;
  } else if (material == kTongue) {
    s.color = vec3(0.55, 0.16, 0.15);
    s.gloss = 0.2;
  } else {
    s.color = mix(vec3(0.35, 0.09, 0.08), vec3(0.03, 0.005, 0.005), in_tint.w);
  }
}

Surface surface_here(Head head, int material) {
  Surface s = Surface(vec3(0.8), normalize(in_normal), 0.0, 16.0, 0.0, in_tint.y);
  if (kGroup == kSkinGroup) {
    if (material == kLid) paint_lid(head, s);
    else if (material == kBrow) s.color = head.hair.rgb * 0.75;
    else paint_skin(head, s);
  }
  if (kGroup == kEyeGroup) paint_eye(head, s);
  if (kGroup == kBustGroup) paint_bust(head, s);
  if (kGroup == kMouthGroup) paint_mouth(material, s);
  if (kGroup == kHairGroup) s.color = head.hair.rgb * mix(0.6, 1.15, strands(in_tint.zw));
  return s;
}

void main() {
  Head head = heads[in_head];
  int material = int(in_tint.x + 0.5);
  Surface s = surface_here(head, material);
  vec3 view = normalize(scene.camera.xyz - in_world), sun = scene.sun.xyz;
  vec2 reach = in_reach;

  float facing = dot(s.normal, sun);
  float lit = max((facing + s.wrap) / (1.0 + s.wrap), 0.0) * reach.x;
  // Light that has been under skin comes out redder.
  vec3 sunlight = vec3(2.0, 1.78, 1.5) * lit * mix(vec3(1.0), vec3(1.0, 0.82, 0.74),
      s.wrap * 2.0 * smoothstep(0.6, 0.0, facing));
  float up = s.normal.y * 0.5 + 0.5;
  vec3 sky = mix(vec3(0.42, 0.34, 0.30), vec3(0.62, 0.72, 0.92), up) * s.occlusion * reach.y;
  float bounce = max(-s.normal.y, 0.0) * 0.22 * s.occlusion;
  vec3 color = s.color * (sunlight * mix(0.6, 1.0, s.occlusion) + sky + bounce * vec3(1.0, 0.8, 0.6));

  if (kGroup != kEyeGroup && kGroup != kHairGroup) {
    vec3 half_way = normalize(view + sun);
    float highlight = pow(max(dot(s.normal, half_way), 0.0), s.sharpness) * s.gloss * reach.x;
    color += vec3(1.6, 1.5, 1.35) * highlight * s.occlusion;
  }
  if (kGroup == kHairGroup) color += hair_light(head, s.normal, view, sun, strands(in_tint.zw)) * reach.x;
  if (kGroup == kEyeGroup) {
    vec3 mirrored = reflect(-view, s.normal);
    color += vec3(1.5) * smoothstep(0.93, 0.96, dot(mirrored, normalize(vec3(-0.35, 0.6, 0.8))));
    color += vec3(0.25) * smoothstep(0.9, 0.97, dot(mirrored, normalize(vec3(0.5, -0.2, 0.8))));
  }
  // A cool light from behind separates heads from the background.
  float edge = pow(1.0 - max(dot(s.normal, view), 0.0), 3.5);
  float behind = smoothstep(-0.2, 0.7, dot(s.normal, normalize(vec3(0.75, 0.45, -0.55))));
  if (kGroup != kMouthGroup) {
    color += vec3(0.55, 0.68, 0.9) * edge * behind * (0.25 + 0.75 * s.color) * in_tint.y;
  }
  out_color = vec4(display(color), 1.0);
}
