// needs: nothing; injected before a shader's text by tests/emulated/CMakeLists.txt.
// Subgroups of any size on a device that has others: the operations that our shaders use, done
// through shared memory. Correct where control flow is uniform over the workgroup, as our shaders
// keep it around every one of these operations. The size is a specialization constant that nobody
// sets; a test changes its default in the SPIR-V.
layout(constant_id = 60) const uint kEmulatedSubgroup = 32u;

shared vec4 emulated_lanes[128];

uint emulated_first() { return gl_LocalInvocationIndex / kEmulatedSubgroup * kEmulatedSubgroup; }
uint emulated_lane() { return gl_LocalInvocationIndex % kEmulatedSubgroup; }

// Every lane's value, to be read by all; the first barrier waits for the readers before.
void emulated_share(vec4 value) {
  barrier();
  emulated_lanes[gl_LocalInvocationIndex] = value;
  barrier();
}

float emulated_add(float value, uint size) {
  emulated_share(vec4(value));
  const uint end = min(emulated_first() + kEmulatedSubgroup, size);
  float sum = 0.0;
  for (uint i = emulated_first(); i < end; ++i) sum += emulated_lanes[i].x;
  return sum;
}

// As drivers do it: where one side is a NaN, the other.
float emulated_max(float value, uint size) {
  emulated_share(vec4(value));
  const uint end = min(emulated_first() + kEmulatedSubgroup, size);
  float highest = emulated_lanes[emulated_first()].x;
  for (uint i = emulated_first() + 1u; i < end; ++i) highest = max(highest, emulated_lanes[i].x);
  return highest;
}

uint emulated_max(uint value, uint size) {
  emulated_share(vec4(uintBitsToFloat(value), 0.0, 0.0, 0.0));
  const uint end = min(emulated_first() + kEmulatedSubgroup, size);
  uint highest = 0u;
  for (uint i = emulated_first(); i < end; ++i) {
    highest = max(highest, floatBitsToUint(emulated_lanes[i].x));
  }
  return highest;
}

uint emulated_min(uint value, uint size) {
  emulated_share(vec4(uintBitsToFloat(value), 0.0, 0.0, 0.0));
  const uint end = min(emulated_first() + kEmulatedSubgroup, size);
  uint lowest = 0xffffffffu;
  for (uint i = emulated_first(); i < end; ++i) {
    lowest = min(lowest, floatBitsToUint(emulated_lanes[i].x));
  }
  return lowest;
}

vec4 emulated_shuffle(vec4 value, uint lane) {
  emulated_share(value);
  return emulated_lanes[emulated_first() + lane];
}

float emulated_shuffle(float value, uint lane) { return emulated_shuffle(vec4(value), lane).x; }

#define subgroupAdd(v) emulated_add(v, gl_WorkGroupSize.x)
#define subgroupMax(v) emulated_max(v, gl_WorkGroupSize.x)
#define subgroupMin(v) emulated_min(v, gl_WorkGroupSize.x)
#define subgroupShuffle(v, lane) emulated_shuffle(v, lane)
#define subgroupElect() (emulated_lane() == 0u)
#define gl_SubgroupInvocationID emulated_lane()
#define gl_SubgroupID (gl_LocalInvocationIndex / kEmulatedSubgroup)
#define gl_NumSubgroups ((gl_WorkGroupSize.x + kEmulatedSubgroup - 1u) / kEmulatedSubgroup)
