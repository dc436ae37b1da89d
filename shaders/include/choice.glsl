// needs: sampling.h, settings `s`, and a storage buffer with `uint choice[]` or the name of another
// array in VKF_CHOICE.
#ifndef VKF_CHOICE
#define VKF_CHOICE choice
#endif

// Settings of a row in the choice buffer; params/sampling.h lists its parts.
ChoiceRow choice_row_at(uint at) {
  ChoiceRow c;
  c.temperature = uintBitsToFloat(VKF_CHOICE[at]);
  c.top_p = uintBitsToFloat(VKF_CHOICE[at + 1u]);
  c.min_p = uintBitsToFloat(VKF_CHOICE[at + 2u]);
  c.typical_p = uintBitsToFloat(VKF_CHOICE[at + 3u]);
  c.top_k = VKF_CHOICE[at + 4u];
  c.seed_low = VKF_CHOICE[at + 5u];
  c.seed_high = VKF_CHOICE[at + 6u];
  c.stream = VKF_CHOICE[at + 7u];
  c.repetition = uintBitsToFloat(VKF_CHOICE[at + 8u]);
  c.presence = uintBitsToFloat(VKF_CHOICE[at + 9u]);
  c.frequency = uintBitsToFloat(VKF_CHOICE[at + 10u]);
  c.no_repeat = VKF_CHOICE[at + 11u];
  c.masked = VKF_CHOICE[at + 12u];
  c.rules = VKF_CHOICE[at + 13u];
  c.next = VKF_CHOICE[at + 14u];
  return c;
}

ChoiceRow choice_row(uint row) { return choice_row_at(row * VKF_CHOICE_WORDS); }

// Where what the row generated begins in its history of `length` tokens.
uint prompt_end(ChoiceRow c, uint length) {
  return c.next == 0u ? s.prompt_length : length + 1u - c.next;
}
