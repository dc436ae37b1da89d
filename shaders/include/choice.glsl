// needs: sampling.h, a storage buffer with `uint choice[]`, settings `s`.
// Settings of a row in the choice buffer; params/sampling.h lists its parts.
ChoiceRow choice_row(uint row) {
  const uint at = row * VKF_CHOICE_WORDS;
  ChoiceRow c;
  c.temperature = uintBitsToFloat(choice[at]);
  c.top_p = uintBitsToFloat(choice[at + 1u]);
  c.min_p = uintBitsToFloat(choice[at + 2u]);
  c.typical_p = uintBitsToFloat(choice[at + 3u]);
  c.top_k = choice[at + 4u];
  c.seed_low = choice[at + 5u];
  c.seed_high = choice[at + 6u];
  c.stream = choice[at + 7u];
  c.repetition = uintBitsToFloat(choice[at + 8u]);
  c.presence = uintBitsToFloat(choice[at + 9u]);
  c.frequency = uintBitsToFloat(choice[at + 10u]);
  c.no_repeat = choice[at + 11u];
  c.masked = choice[at + 12u];
  c.rules = choice[at + 13u];
  c.next = choice[at + 14u];
  return c;
}

// Where what the row generated begins in its history of `length` tokens.
uint prompt_end(ChoiceRow c, uint length) {
  return c.next == 0u ? s.prompt_length : length + 1u - c.next;
}
