// needs: nothing.
// Floats as unsigned integers of the same order: a NaN is above everything, the two zeros are
// equal.
uint order_key(float value) {
  uint bits = floatBitsToUint(value);
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0xffffffffu;
  if (magnitude == 0u) bits = 0u;
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

// The value that has this key: 0 of both zeros.
float value_of_key(uint key) {
  if (key == 0xffffffffu) return uintBitsToFloat(0x7fc00000u);
  return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}
