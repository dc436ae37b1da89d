// needs: online_softmax.glsl, terms[], ScoreTermsParams p.terms (includes sink_scores.glsl).
// Sink scores among the terms of scores.
#ifndef VKF_SINK_TERMS_GLSL
#define VKF_SINK_TERMS_GLSL
uint sink_word(uint head) {
  return (p.terms.flags & VKF_TERM_SINKS) != 0u ? p.terms.sparse_offset + head : VKF_NO_TERM;
}
#define VKF_SINK_WORDS terms
#include "sink_scores.glsl"
#endif
