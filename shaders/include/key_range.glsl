// needs: score_terms.h, VKF_TERM_KEYS (an expression for S).
// The keys [x, y) that causal and window conditions leave to queries first ... last; outside it
// every pair is masked. Empty where x >= y.
uvec2 key_range(ScoreTermsParams t, uint first, uint last) {
  int begin = 0;
  int end = int(VKF_TERM_KEYS);
  const int low = int(first) + t.causal_offset;
  const int high = int(last) + t.causal_offset;
  if ((t.flags & VKF_TERM_CAUSAL) != 0u) end = min(end, high + 1);
  if ((t.flags & VKF_TERM_WINDOW_RIGHT) != 0u) end = min(end, high + t.window_right + 1);
  if ((t.flags & VKF_TERM_WINDOW_LEFT) != 0u) begin = max(begin, low - t.window_left);
  return uvec2(uint(begin), uint(max(end, 0)));
}
