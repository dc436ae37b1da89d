#version 450
// computes: what is behind the heads: a floor that bends into a wall of light, and the shadows on it.
// shapes: one pixel.
// mapping: one invocation a pixel that no head covers.
// bounds: occluders beyond the heads are not read.
// requires: nothing.
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(location = 0) in vec2 in_clip;
layout(location = 0) out vec4 out_color;

vec3 wall(float up) {
  vec3 low = vec3(0.93, 0.62, 0.42), middle = vec3(0.50, 0.42, 0.52), high = vec3(0.10, 0.19, 0.40);
  vec3 color = mix(low, middle, smoothstep(-0.02, 0.14, up));
  return mix(color, high, smoothstep(0.08, 0.42, up));
}

void main() {
  vec4 far = scene.world_of_clip * vec4(in_clip, 1.0, 1.0);
  vec3 ray = normalize(far.xyz / far.w - scene.camera.xyz);
  vec3 color = wall(ray.y);
  float glow = max(dot(ray, normalize(vec3(-0.25, 0.02, -1.0))), 0.0);
  color += vec3(0.30, 0.16, 0.06) * pow(glow, 40.0);
  if (ray.y < -0.001) {
    float along = -scene.camera.y / ray.y;
    vec3 at = scene.camera.xyz + along * ray;
    float sun_share = 1.0, sky_share = 1.0;
    int count = int(scene.camera.w);
    for (int i = 0; i < 2 * count; ++i) {
      vec4 sphere = scene.occluders[i];
      vec3 to = sphere.xyz - at;
      if (dot(to.xz, to.xz) > 50.0) continue;
      sun_share *= sphere_shadow(at, scene.sun.xyz, sphere);
      sky_share *= 1.0 - 0.85 * sphere_occlusion(at, vec3(0.0, 1.0, 0.0), sphere);
    }
    vec3 floor_color = vec3(0.62, 0.40, 0.30) * (0.95 * sun_share + vec3(0.42, 0.46, 0.55) * sky_share);
    color = mix(floor_color, color, smoothstep(16.0, 46.0, along));
  }
  vec2 from_middle = in_clip * vec2(0.5, 0.45);
  color *= 1.0 - 0.45 * dot(from_middle, from_middle);
  out_color = vec4(display(color), 1.0);
}
