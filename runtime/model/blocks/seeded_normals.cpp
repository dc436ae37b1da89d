#include "model/blocks/seeded_normals.h"

#include <cmath>

namespace vkformer {
namespace {

constexpr double kTwoPi = 6.283185307179586;
constexpr size_t kBlock = 16;  // numbers that are made together: 8 radii, 8 angles

// In [0, 1), 24 bits.
float uniform(std::mt19937& engine) {
  return static_cast<float>(engine() & 0xffffffu) / 16777216.0f;
}

// In [0, 1), 53 bits of two draws.
double uniform_double(std::mt19937& engine) {
  const uint64_t high = engine();
  const uint64_t bits = (high << 32 | engine()) & ((uint64_t{1} << 53) - 1);
  return static_cast<double>(bits) / 9007199254740992.0;
}

// Turns uniform numbers of a block into normals, in place.
void make_normal(float* values) {
  for (size_t i = 0; i < kBlock / 2; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(values[i])));
    const double angle = kTwoPi * static_cast<double>(values[i + kBlock / 2]);
    values[i] = static_cast<float>(radius * std::cos(angle));
    values[i + kBlock / 2] = static_cast<float>(radius * std::sin(angle));
  }
}

// Fewer than a block, or of a transposed tensor: one after the other, in double, the second of each
// pair kept for the next.
void draw_few(std::mt19937& engine, std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); i += 2) {
    const double angle = kTwoPi * uniform_double(engine);
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform_double(engine)));
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

}  // namespace

std::vector<float> SeededNormals::next(size_t count) {
  std::vector<float> values(count);
  if (count < kBlock) {
    draw_few(engine_, values);
    return values;
  }
  for (float& value : values) value = uniform(engine_);
  for (size_t i = 0; i + kBlock <= count; i += kBlock) make_normal(&values[i]);
  if (count % kBlock == 0) return values;
  // The last block overlaps the one before and is sampled again.
  float* last = &values[count - kBlock];
  for (size_t i = 0; i < kBlock; ++i) last[i] = uniform(engine_);
  make_normal(last);
  return values;
}

std::vector<float> SeededNormals::next_of_transposed(size_t count) {
  std::vector<float> values(count);
  draw_few(engine_, values);
  return values;
}

std::vector<float> seeded_normals(uint64_t seed, size_t count) {
  return SeededNormals(seed).next(count);
}

}  // namespace vkformer
