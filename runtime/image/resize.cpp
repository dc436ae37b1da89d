#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "image/picture_processor.h"

namespace vkformer {
namespace {

// Fraction bits of a fixed-point weight: 32 bits less 8 of the pixel and 2 for weights outside
// 0..1. The absolute weights of every filter below sum to under 1.6, so sums stay inside 32 bits.
constexpr int kFractionBits = 32 - 8 - 2;
constexpr size_t kChannels = 3;

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double box(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

double triangle(double x) {
  return std::max(1.0 - std::fabs(x), 0.0);
}

double hamming(double x) {
  x = std::fabs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54 + 0.46 * std::cos(x));
}

// Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -0.5.
double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
  return 0.0;
}

// Duchon, "Lanczos filtering in one and two dimensions" (1979), with three lobes.
double lanczos(double x) {
  return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

struct Filter {
  double (*weight)(double);
  double support;  // source pixels to either side, at equal size
};

Filter filter_of(Resampling resampling) {
  switch (resampling) {
    case Resampling::kLanczos:
      return {lanczos, 3.0};
    case Resampling::kBicubic:
      return {bicubic, 2.0};
    case Resampling::kHamming:
      return {hamming, 1.0};
    case Resampling::kBox:
      return {box, 0.5};
    default:
      return {triangle, 1.0};
  }
}

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kFractionBits);
  return static_cast<int32_t>(weight < 0.0 ? scaled - 0.5 : scaled + 0.5);
}

// Pillow's precompute_coeffs: the order of operations decides the last bit, and so the bytes.
ResampleTable make_taps(int from, int to, const Filter& filter) {
  const double scale = static_cast<double>(from) / to;
  const double widening = std::max(scale, 1.0);
  const double support = filter.support * widening;
  const double per_widening = 1.0 / widening;
  ResampleTable table;
  table.taps.reserve(static_cast<size_t>(to));
  std::vector<double> exact;
  for (int target = 0; target < to; ++target) {
    const double center = (target + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int end = std::min(static_cast<int>(center + support + 0.5), from);
    exact.clear();
    double sum = 0.0;
    for (int i = 0; i < end - first; ++i) {
      exact.push_back(filter.weight((i + first - center + 0.5) * per_widening));
      sum += exact.back();
    }
    table.taps.push_back({first, end - first, table.weights.size()});
    for (const double weight : exact) {
      table.weights.push_back(to_fixed(sum != 0.0 ? weight / sum : weight));
    }
  }
  return table;
}

constexpr int32_t kHalf = 1 << (kFractionBits - 1);

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

RgbPicture blank(int width, int height) {
  RgbPicture picture;
  picture.width = width;
  picture.height = height;
  picture.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * kChannels);
  return picture;
}

RgbPicture resample_columns(const RgbPicture& from, int width, const Filter& filter) {
  const ResampleTable table = make_taps(from.width, width, filter);
  RgbPicture to = blank(width, from.height);
  uint8_t* out = to.pixels.data();
  for (int y = 0; y < from.height; ++y) {
    const uint8_t* row = from.row(y);
    for (const ResampleTaps& taps : table.taps) {
      const int32_t* weights = table.weights.data() + taps.first_weight;
      const uint8_t* in = row + static_cast<size_t>(taps.first) * kChannels;
      int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (int i = 0; i < taps.count; ++i, in += kChannels) {
        red += in[0] * weights[i];
        green += in[1] * weights[i];
        blue += in[2] * weights[i];
      }
      *out++ = to_byte(red);
      *out++ = to_byte(green);
      *out++ = to_byte(blue);
    }
  }
  return to;
}

RgbPicture resample_rows(const RgbPicture& from, int height, const Filter& filter) {
  const ResampleTable table = make_taps(from.height, height, filter);
  RgbPicture to = blank(from.width, height);
  const size_t row_bytes = static_cast<size_t>(from.width) * kChannels;
  std::vector<int32_t> sums(row_bytes);
  uint8_t* out = to.pixels.data();
  for (const ResampleTaps& taps : table.taps) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int i = 0; i < taps.count; ++i) {
      const int32_t weight = table.weights[taps.first_weight + static_cast<size_t>(i)];
      const uint8_t* row = from.row(taps.first + i);
      for (size_t x = 0; x < row_bytes; ++x) sums[x] += row[x] * weight;
    }
    for (size_t x = 0; x < row_bytes; ++x) *out++ = to_byte(sums[x]);
  }
  return to;
}

// Pillow steps through the source by adding, and its rounding errors are part of the result.
std::vector<int> nearest_sources(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  std::vector<int> sources(static_cast<size_t>(to));
  double at = scale * 0.5;
  for (int& source : sources) {
    source = std::min(static_cast<int>(at), from - 1);
    at += scale;
  }
  return sources;
}

RgbPicture resample_nearest(const RgbPicture& from, int width, int height) {
  const std::vector<int> columns = nearest_sources(from.width, width);
  RgbPicture to = blank(width, height);
  uint8_t* out = to.pixels.data();
  for (const int y : nearest_sources(from.height, height)) {
    const uint8_t* row = from.row(y);
    for (const int x : columns) {
      std::memcpy(out, row + static_cast<size_t>(x) * kChannels, kChannels);
      out += kChannels;
    }
  }
  return to;
}

}  // namespace

ResampleTable make_resample_table(int from, int to, Resampling resampling) {
  if (from != to && resampling != Resampling::kNearest) {
    return make_taps(from, to, filter_of(resampling));
  }
  ResampleTable table{.taps = {}, .weights = {1 << kFractionBits}};
  for (const int source : nearest_sources(from, to)) table.taps.push_back({source, 1, 0});
  return table;
}

Result<RgbPicture> resize_picture(const RgbPicture& picture, int width, int height,
                                  Resampling resampling) {
  VKF_CHECK(check_picture_size(width, height, "resized picture"));
  if (width == picture.width && height == picture.height) return picture;
  if (resampling == Resampling::kNearest) return resample_nearest(picture, width, height);
  const Filter filter = filter_of(resampling);
  // The picture in between has the new width and the old height.
  VKF_CHECK(check_picture_size(width, picture.height, "half resized picture"));
  if (height == picture.height) return resample_columns(picture, width, filter);
  if (width == picture.width) return resample_rows(picture, height, filter);
  return resample_rows(resample_columns(picture, width, filter), height, filter);
}

}  // namespace vkformer
