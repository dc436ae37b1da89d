// needs: kLocalSize, row_best.glsl, uvec2 candidate_at(uint i).
// The best elements of a row one after the other. An invocation keeps the four best of its elements
// from one pass. It goes over them again only when all four were the row's next.
#ifndef VKF_ROW_KEPT_GLSL
#define VKF_ROW_KEPT_GLSL

// Four variables, and no array: some compilers keep arrays in memory.
uvec2 kept_0, kept_1, kept_2, kept_3;  // best first; no_best() where there is none

// Keeps the best of this invocation's elements; with `limited` only of those that come after
// `last`.
void keep_best(bool limited, uvec2 last, uint count) {
  kept_0 = kept_1 = kept_2 = kept_3 = no_best();
  [[dont_unroll]] for (uint i = gl_LocalInvocationID.x; i < count; i += kLocalSize) {
    const uvec2 candidate = candidate_at(i);
    if ((!limited || is_better(last, candidate)) && is_better(candidate, kept_3)) {
      const bool first = is_better(candidate, kept_0);
      const bool second = is_better(candidate, kept_1);
      const bool third = is_better(candidate, kept_2);
      kept_3 = choose(third, kept_2, candidate);
      kept_2 = choose(second, kept_1, choose(third, candidate, kept_2));
      kept_1 = choose(first, kept_0, choose(second, candidate, kept_1));
      kept_0 = choose(first, candidate, kept_0);
    }
  }
}

// The row's next best, the same for every invocation; no_best() after the last.
uvec2 next_best(uint count) {
  const uvec2 best = workgroup_best(kept_0);
  if (kept_0 == best && best != no_best()) {  // one invocation's
    kept_0 = kept_1;
    kept_1 = kept_2;
    kept_2 = kept_3;
    kept_3 = no_best();
    if (kept_0 == no_best()) keep_best(true, best, count);
  }
  return best;
}
#endif
