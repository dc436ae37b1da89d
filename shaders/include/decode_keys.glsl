// needs: AttentionDecodeParams p, a readonly storage block with `uint aux[]`, cache_line.glsl,
//        online_softmax.glsl; kCross and kRolls, constants that say where keys lie (includes
//        sink_scores.glsl).
// Which keys the query of a decoding step sees, and where they lie.

// The line of key j in Kv: of the row that owns the position, or of the batch item.
uint line_of(uint row, uint j) {
  if (kCross != 0u) return row / p.beams * p.lines + j;
  const uint owner = p.has_aux != 0u && p.beams > 1u ? aux[row * p.positions + j] : row;
  return owner * p.lines + (kRolls != 0u ? cache_line(j, p.sinks, p.lines) : j);
}

bool key_allowed(uint row, uint j) {
  if (kCross == 0u || p.has_aux == 0u) return true;
  const uint words = (p.lines + 31u) >> 5u;
  return (aux[row / p.beams * words + (j >> 5u)] & (1u << (j & 31u))) != 0u;
}

uint position;    // of the query in its own row
uint sinks_seen;  // keys that are seen before those of [recent.x, recent.y)
uint first_sink;  // the first of them
uvec2 recent;

// The keys that the query attends to. These are the last ones and, once keys are omitted, the
// sinks, as far as the window reaches within what is left.
void find_keys() {
  sinks_seen = 0u;
  first_sink = 0u;
  recent = uvec2(0u, p.lines);
  if (kCross != 0u) return;
  const bool rolled = p.context != 0u && position >= p.context;
  recent.y = min(position + 1u, p.positions);
  uint seen = rolled ? p.context - p.sinks : position + 1u;
  if (p.window != 0u) seen = min(seen, p.window);
  recent.x = min(position + 1u - seen, recent.y);
  if (!rolled) return;
  if (p.window != 0u && p.window < p.context) first_sink = min(p.sinks, p.context - p.window);
  sinks_seen = p.sinks - first_sink;
}

// Keys between the beginning of a prompt's tiles and the n-th attended key. A step that begins its
// tiles there, too, gives the bits of the same query in a prompt, where tiles begin at multiples of
// `step`,
uint keys_from_multiple(uint n, uint step) {
  return n == 0u && sinks_seen == 0u ? recent.x % step : 0u;
}
// or at the first key that a group of `queries` sees.
uint keys_from_group(uint n, uint queries) {
  if (n != 0u || sinks_seen != 0u || kCross != 0u) return 0u;
  const uint end = position - position % queries + 1u;  // after the first query of the group
  const uint begin = p.window != 0u && end > p.window ? end - p.window : 0u;
  return recent.x - min(begin, recent.x);
}

// The position of the n-th key that is seen.
uint key_at(uint n) { return n < sinks_seen ? first_sink + n : recent.x + (n - sinks_seen); }

// What the distance to a key adds.
float distance_bias(uint head, int distance) {
  float value = 0.0;
  if (p.slopes_offset != VKF_NO_TERM) {
    value = uintBitsToFloat(aux[p.slopes_offset + head]) * float(distance);
  }
  if (p.distance_offset != VKF_NO_TERM) {
    const int reach = int(aux[p.distance_offset]);
    const uint column = uint(clamp(distance, -reach, reach) + reach);
    value += uintBitsToFloat(aux[p.distance_offset + 1u + head * uint(2 * reach + 1) + column]);
  }
  return value;
}

// Sink scores belong to the first part of the keys.
uint sink_word(uint head) {
  const bool here = p.sink_scores_offset != VKF_NO_TERM && gl_WorkGroupID.z == 0u;
  return here ? p.sink_scores_offset + head : VKF_NO_TERM;
}
#define VKF_SINK_WORDS aux
#include "sink_scores.glsl"

// Which of the seen keys a workgroup takes: parts of kPartKeys of them, along z; 0: all.
uvec2 part_of(uint end) {
  if (kPartKeys == 0u) return uvec2(0u, end);
  const uint begin = min(gl_WorkGroupID.z * kPartKeys, end);
  return uvec2(begin, min(begin + kPartKeys, end));
}

// Where a part's results begin in Y. It has the largest score and the sum of weights under it, then
// the sums of values (Ev), to be merged by attention_merge.
uint part_result(uint slot, uint head, uint width) {
  return ((slot * p.heads + head) * kParts + gl_WorkGroupID.z) * (width + 2u);
}
