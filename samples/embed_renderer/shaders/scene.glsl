// needs: GL_GOOGLE_include_directive. What all stages read: the frame's numbers and the heads.
// scene/gpu_data.h has the same structs for C++.
layout(set = 0, binding = 0, std140) uniform Scene {
  mat4 view_projection;
  mat4 world_of_clip;   // its inverse, for the backdrop's rays
  vec4 camera;          // position; w: heads
  vec4 sun;             // direction towards it
  vec4 screen;          // width, height in pixels; z: seconds
  vec4 eye_left;        // center of the left eye in head space; w: radius
  vec4 morphs;          // vertices that the mouth moves
  vec4 occluders[128];  // two spheres a head, head then shoulders: center, radius
} scene;

struct Head {
  mat4 body;     // world from bust space
  mat4 head;     // world from head space
  vec4 skin;     // linear rgb; w: strength of the blush
  vec4 hair;     // linear rgb; w: gloss
  vec4 cloth;    // linear rgb; w: 1 striped
  vec4 iris;     // linear rgb; w: how far lids stand open, radians
  vec4 lips;     // linear rgb
  vec4 look;     // gaze to the right and up in radians, blink 0 to 1, raise of the brows
  vec4 mouth_a;  // weights of jaw, wide, round, press
  vec4 mouth_b;  // weights of bite, flare, smile, tongue
};
layout(set = 0, binding = 1, std430) readonly buffer Heads { Head heads[]; };

// Materials, as scene/mesh.h numbers them.
const int kSkin = 0, kEye = 1, kLid = 2, kBrow = 3, kBust = 4, kHair = 5, kTeeth = 6, kTongue = 7,
          kCavity = 8;

// The share of the sun that a sphere lets pass: a penumbra that widens with distance (Quilez,
// "Sphere - soft shadow").
float sphere_shadow(vec3 from, vec3 sun, vec4 sphere) {
  vec3 to = from - sphere.xyz;
  float b = dot(to, sun), c = dot(to, to) - sphere.w * sphere.w, h = b * b - c;
  float nearest = sqrt(max(0.0, sphere.w * sphere.w - h)) - sphere.w;
  float along = -b - sqrt(max(h, 0.0));
  return along < 0.0 ? 1.0 : smoothstep(0.0, 1.0, 0.5 + 2.2 * nearest / along);
}

// How much of the sky above a surface a sphere hides (Quilez, "Sphere - ambient occlusion").
float sphere_occlusion(vec3 from, vec3 normal, vec4 sphere) {
  vec3 to = sphere.xyz - from;
  float distance2 = max(dot(to, to), sphere.w * sphere.w);
  float facing = max(dot(normal, to) * inversesqrt(distance2), 0.0);
  return clamp(facing * sphere.w * sphere.w / distance2, 0.0, 1.0);
}

// Linear light to what a display takes: a filmic curve (Narkowicz 2016, "ACES Filmic Tone Mapping
// Curve") and the gamma of sRGB, roughly.
vec3 display(vec3 color) {
  color *= 0.82;
  color = color * (2.51 * color + 0.03) / (color * (2.43 * color + 0.59) + 0.14);
  return pow(clamp(color, 0.0, 1.0), vec3(1.0 / 2.2));
}
