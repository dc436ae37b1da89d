#include "base/sha256.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace vkformer {
namespace {

// The fractions of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* at) {
  return std::to_integer<uint32_t>(at[0]) << 24 | std::to_integer<uint32_t>(at[1]) << 16 |
         std::to_integer<uint32_t>(at[2]) << 8 | std::to_integer<uint32_t>(at[3]);
}

constexpr size_t kBlock = 64;  // bytes

#if defined(__x86_64__) && defined(__GNUC__)
#define VKFORMER_SHA_INSTRUCTIONS 1

bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSha = 1u << 29, kSsse3 = 1u << 9, kSse41 = 1u << 19;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & kSha) == 0) return false;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kSsse3) != 0 && (c & kSse41) != 0;
}

__attribute__((target("sha,sse4.1"))) __m128i load(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

// The instructions take the state as A B E F and C D G H, from the highest lane to the lowest. Each
// does two rounds. Four words of the message schedule are a register.
__attribute__((target("sha,sse4.1"))) void mix_by_instructions(std::array<uint32_t, 8>& state,
                                                               const std::byte* blocks,
                                                               size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(load(&state[0]), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(load(&state[4]), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; --count, blocks += kBlock) {
    const __m128i before[] = {abef, cdgh};
    __m128i w[4];
    for (size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(blocks + 16 * i), swap);
    for (size_t i = 0; i < 16; ++i) {
      const __m128i words = w[i % 4];
      const __m128i sums = _mm_add_epi32(words, load(&kRounds[4 * i]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sums);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sums, 0x0e));
      // The words of four groups later.
      const __m128i last = w[(i + 3) % 4];
      const __m128i seventh = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
      const __m128i started = _mm_add_epi32(_mm_sha256msg1_epu32(words, w[(i + 1) % 4]), seventh);
      w[i % 4] = _mm_sha256msg2_epu32(started, last);
    }
    abef = _mm_add_epi32(abef, before[0]);
    cdgh = _mm_add_epi32(cdgh, before[1]);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}
#else
#define VKFORMER_SHA_INSTRUCTIONS 0
#endif

void mix_block(std::array<uint32_t, 8>& state, const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[i - 7] +
           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

void Sha256::mix(const std::byte* blocks, size_t count) {
#if VKFORMER_SHA_INSTRUCTIONS
  static const bool instructions = has_sha_instructions();
  if (instructions && way_ == Way::kFastest) {
    mix_by_instructions(state_, blocks, count);
    return;
  }
#endif
  for (size_t i = 0; i < count; ++i) mix_block(state_, blocks + i * kBlock);
}

void Sha256::add(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (held_ > 0) {
    const size_t count = std::min(bytes.size(), rest_.size() - held_);
    std::copy_n(bytes.begin(), count, rest_.begin() + static_cast<ptrdiff_t>(held_));
    held_ += count;
    bytes = bytes.subspan(count);
    if (held_ < rest_.size()) return;
    mix(rest_.data(), 1);
    held_ = 0;
  }
  const size_t whole = bytes.size() / kBlock;
  mix(bytes.data(), whole);
  bytes = bytes.subspan(whole * kBlock);
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  held_ = bytes.size();
}

std::array<std::byte, 32> Sha256::digest() {
  const uint64_t bits = total_ * 8;
  // A one bit, zeros, and the length of the message in bits, which end a block.
  std::array<std::byte, 72> end{};
  end[0] = std::byte{0x80};
  const size_t zeros = (held_ < 56 ? 56 : 120) - held_;
  for (size_t i = 0; i < 8; ++i) {
    end[zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  }
  add(std::span(end).first(zeros + 8));
  std::array<std::byte, 32> result{};
  for (size_t i = 0; i < 32; ++i) {
    result[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return result;
}

std::array<std::byte, 32> sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.digest();
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<size_t>(byte >> 4)];
    text += kDigits[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return text;
}

}  // namespace vkformer
