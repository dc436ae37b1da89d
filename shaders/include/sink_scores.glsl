// needs: online_softmax.glsl; uint sink_word(uint head): the word of a head's sink score in
//        VKF_SINK_WORDS, or VKF_NO_TERM.
// A learned score of each head that joins the softmax as one more column without a value (OpenAI,
// 2025, gpt-oss). A running maximum begins at it, and a total at its own weight, 1.
#ifndef VKF_SINK_SCORES_GLSL
#define VKF_SINK_SCORES_GLSL

// Of a head; -inf where there is none.
float sink_score(uint head) {
  const uint word = sink_word(head);
  return word == VKF_NO_TERM ? negative_infinity() : uintBitsToFloat(VKF_SINK_WORDS[word]);
}

float sink_highest(float score) { return is_negative_infinity(score) ? kLowestFloat : score; }
float sink_total(float score) { return is_negative_infinity(score) ? 0.0 : 1.0; }
#endif
