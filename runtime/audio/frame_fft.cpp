#include "audio/frame_fft.h"

#include <cmath>
#include <numbers>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

using Values = FrameFft::Values;
constexpr size_t kLanes = FrameFft::kLanes;

// What one pass over the data has in common: it splits transforms of `size` values into `radix` of
// size / radix, at `stride` from each other.
struct Pass {
  const Values* in = nullptr;
  Values* out = nullptr;
  size_t radix = 0;
  size_t size = 0;
  size_t stride = 0;
  size_t length = 0;
  const float* cosines = nullptr;
  const float* sines = nullptr;
};

struct Twiddle {
  float re = 1.0f;
  float im = 0.0f;
};

// exp(-2 pi i k / size).
Twiddle twiddle(const Pass& pass, size_t k) {
  const size_t at = k % pass.size * (pass.length / pass.size);
  return {pass.cosines[at], pass.sines[at]};
}

void add(const Values& a, const Values& b, Values& out) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out.re[lane] = a.re[lane] + b.re[lane];
    out.im[lane] = a.im[lane] + b.im[lane];
  }
}

void subtract(const Values& a, const Values& b, Values& out) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out.re[lane] = a.re[lane] - b.re[lane];
    out.im[lane] = a.im[lane] - b.im[lane];
  }
}

// out = a + scale b.
void add_scaled(const Values& a, float scale, const Values& b, Values& out) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out.re[lane] = a.re[lane] + scale * b.re[lane];
    out.im[lane] = a.im[lane] + scale * b.im[lane];
  }
}

// out = a - i b.
void subtract_rotated(const Values& a, const Values& b, Values& out) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const float re = a.re[lane] + b.im[lane];
    out.im[lane] = a.im[lane] - b.re[lane];
    out.re[lane] = re;
  }
}

// out = a + i b.
void add_rotated(const Values& a, const Values& b, Values& out) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const float re = a.re[lane] - b.im[lane];
    out.im[lane] = a.im[lane] + b.re[lane];
    out.re[lane] = re;
  }
}

void multiply(const Values& a, Twiddle by, Values& out) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const float re = a.re[lane] * by.re - a.im[lane] * by.im;
    out.im[lane] = a.re[lane] * by.im + a.im[lane] * by.re;
    out.re[lane] = re;
  }
}

void butterfly_2(const std::array<const Values*, 5>& x, std::array<Values, 5>& y) {
  add(*x[0], *x[1], y[0]);
  subtract(*x[0], *x[1], y[1]);
}

void butterfly_4(const std::array<const Values*, 5>& x, std::array<Values, 5>& y) {
  Values even_sum, even_difference, odd_sum, odd_difference;
  add(*x[0], *x[2], even_sum);
  subtract(*x[0], *x[2], even_difference);
  add(*x[1], *x[3], odd_sum);
  subtract(*x[1], *x[3], odd_difference);
  add(even_sum, odd_sum, y[0]);
  subtract_rotated(even_difference, odd_difference, y[1]);
  subtract(even_sum, odd_sum, y[2]);
  add_rotated(even_difference, odd_difference, y[3]);
}

void butterfly_5(const std::array<const Values*, 5>& x, std::array<Values, 5>& y) {
  constexpr float kCos1 = 0.30901699437494742f;   // cos(2 pi / 5)
  constexpr float kCos2 = -0.80901699437494742f;  // cos(4 pi / 5)
  constexpr float kSin1 = 0.95105651629515357f;   // sin(2 pi / 5)
  constexpr float kSin2 = 0.58778525229247313f;   // sin(4 pi / 5)
  Values outer_sum, outer_difference, inner_sum, inner_difference, even, odd;
  add(*x[1], *x[4], outer_sum);
  subtract(*x[1], *x[4], outer_difference);
  add(*x[2], *x[3], inner_sum);
  subtract(*x[2], *x[3], inner_difference);
  add(outer_sum, inner_sum, y[0]);
  add(*x[0], y[0], y[0]);
  const Values none;
  add_scaled(*x[0], kCos1, outer_sum, even);
  add_scaled(even, kCos2, inner_sum, even);
  add_scaled(none, kSin1, outer_difference, odd);
  add_scaled(odd, kSin2, inner_difference, odd);
  subtract_rotated(even, odd, y[1]);
  add_rotated(even, odd, y[4]);
  add_scaled(*x[0], kCos2, outer_sum, even);
  add_scaled(even, kCos1, inner_sum, even);
  add_scaled(none, kSin2, outer_difference, odd);
  add_scaled(odd, -kSin1, inner_difference, odd);
  subtract_rotated(even, odd, y[2]);
  add_rotated(even, odd, y[3]);
}

// Stockham's pass, which leaves the result in order. For p below size / radix and q below stride:
//   y[q + stride (radix p + j)] = w^(p j) sum over k of x[q + stride (p + k size / radix)] v^(j k).
// Here w = exp(-2 pi i / size) and v = exp(-2 pi i / radix).
template <class Butterfly>
void run_small_pass(const Pass& pass, Butterfly butterfly) {
  const size_t parts = pass.size / pass.radix;
  std::array<const Values*, 5> x{};
  std::array<Values, 5> y;
  for (size_t p = 0; p < parts; ++p) {
    for (size_t q = 0; q < pass.stride; ++q) {
      for (size_t k = 0; k < pass.radix; ++k) {
        x[k] = &pass.in[q + pass.stride * (p + k * parts)];
      }
      butterfly(x, y);
      Values* out = &pass.out[q + pass.stride * pass.radix * p];
      out[0] = y[0];
      for (size_t j = 1; j < pass.radix; ++j) {
        multiply(y[j], twiddle(pass, p * j), out[j * pass.stride]);
      }
    }
  }
}

// The same for any radix.
void run_any_pass(const Pass& pass) {
  const size_t parts = pass.size / pass.radix;
  for (size_t p = 0; p < parts; ++p) {
    for (size_t q = 0; q < pass.stride; ++q) {
      for (size_t j = 0; j < pass.radix; ++j) {
        Values sum;
        for (size_t k = 0; k < pass.radix; ++k) {
          const Twiddle by = twiddle(pass, j * k % pass.radix * parts);
          const Values& x = pass.in[q + pass.stride * (p + k * parts)];
          for (size_t lane = 0; lane < kLanes; ++lane) {
            sum.re[lane] += x.re[lane] * by.re - x.im[lane] * by.im;
            sum.im[lane] += x.re[lane] * by.im + x.im[lane] * by.re;
          }
        }
        multiply(sum, twiddle(pass, p * j), pass.out[q + pass.stride * (pass.radix * p + j)]);
      }
    }
  }
}

}  // namespace

Result<FrameFft> FrameFft::plan(int64_t length) {
  if (length < 1 || length > kMostLength) {
    return unsupported(
        message({"A Fourier transform of [", length,
                 "] values was asked for; this build does 1 to ", kMostLength, "."}));
  }
  FrameFft fft(static_cast<size_t>(length));
  int64_t rest = length;
  for (int64_t factor = 4; rest > 1;) {
    if (rest % factor == 0) {
      fft.factors_.push_back(static_cast<size_t>(factor));
      rest /= factor;
    } else {
      factor = factor == 4 ? 2 : factor == 2 ? 3 : factor + 2;
      if (factor > kMostFactor) {
        return unsupported(
            message({"A Fourier transform of [", length,
                     "] values was asked for, a multiple of a prime beyond the limit of ",
                     kMostFactor, "; use a length with small factors."}));
      }
    }
  }
  for (int64_t k = 0; k < length; ++k) {
    const double angle =
        2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
    fft.cosines_.push_back(static_cast<float>(std::cos(angle)));
    fft.sines_.push_back(static_cast<float>(-std::sin(angle)));
  }
  return fft;
}

void FrameFft::transform(std::vector<Values>& data, std::vector<Values>& scratch) const {
  Pass pass;
  pass.size = length_;
  pass.stride = 1;
  pass.length = length_;
  pass.cosines = cosines_.data();
  pass.sines = sines_.data();
  for (const size_t factor : factors_) {
    pass.in = data.data();
    pass.out = scratch.data();
    pass.radix = factor;
    switch (factor) {
      case 2:
        run_small_pass(pass, butterfly_2);
        break;
      case 4:
        run_small_pass(pass, butterfly_4);
        break;
      case 5:
        run_small_pass(pass, butterfly_5);
        break;
      default:
        run_any_pass(pass);
        break;
    }
    pass.size /= factor;
    pass.stride *= factor;
    data.swap(scratch);
  }
}

}  // namespace vkformer
