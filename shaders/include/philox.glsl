// needs: nothing.
// Philox4x32-10, a counter-based generator (Salmon et al. 2011, "Parallel random numbers: as easy
// as 1, 2, 3"): the same key and counter give the same four words everywhere.
uvec4 philox(uvec2 key, uvec4 counter) {
  for (uint round = 0u; round < 10u; ++round) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, counter.x, high0, low0);
    umulExtended(0xCD9E8D57u, counter.z, high1, low1);
    counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}
