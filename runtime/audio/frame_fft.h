// FrameFft: Fourier transforms of several frames of one length at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// Transforms of kLanes complex signals side by side. Each step of the transform runs over the
// lanes. So the compiler makes vector instructions of it for every length.
class FrameFft {
 public:
  static constexpr size_t kLanes = 8;
  // The longest transform, and the largest prime factor it may have: a factor p costs p
  // multiplications for every value.
  static constexpr int64_t kMostLength = 1 << 16;
  static constexpr int64_t kMostFactor = 1024;

  // One value of every lane.
  struct Values {
    std::array<float, kLanes> re{};
    std::array<float, kLanes> im{};
  };

  // Plans transforms of `length` values.
  static Result<FrameFft> plan(int64_t length);

  size_t length() const { return length_; }

  // Transforms `data` in place: y_k = sum of x_n exp(-2 pi i k n / N), N the length. `scratch` is
  // overwritten. Precondition: both have length() elements. (N)
  void transform(std::vector<Values>& data, std::vector<Values>& scratch) const;

 private:
  explicit FrameFft(size_t length) : length_(length) {}

  size_t length_;
  std::vector<size_t> factors_;
  // exp(-2 pi i k / N) for k below N, computed in double.
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

}  // namespace vkformer
