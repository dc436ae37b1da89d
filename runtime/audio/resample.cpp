#include "audio/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// The filter: a sinc with this many zero crossings on either side under a Kaiser window. Kaiser's
// formulas (1974): beta 10.06 is 100 dB of attenuation. The band between pass and stop is (100 -
// 7.95) / 14.36 / 96 = 0.067 of the rate wide, 0.134 of half of it. So the cut-off is half of that
// below the top.
constexpr double kZeroCrossings = 48.0;
constexpr double kBeta = 10.06126;
constexpr double kCutoff = 1.0 - 0.067;

// Fractions of a sample at which the filter is tabulated at most. It is interpolated linearly in
// between, which is off by less than (pi / 2048)^2 / 8 = 3e-7.
constexpr int64_t kMostPhases = 2048;

// The modified Bessel function of order 0, by its power series.
double bessel_i0(double x) {
  double sum = 1.0;
  double term = 1.0;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= (x / (2.0 * k)) * (x / (2.0 * k));
    sum += term;
  }
  return sum;
}

// The filter at a number of fractions of a sample.
class PhaseTable {
 public:
  // `scale` is the cut-off as a fraction of half the old rate.
  PhaseTable(double scale, int64_t phases)
      : reach_(static_cast<int64_t>(std::ceil(kZeroCrossings / scale))), phases_(phases) {
    const double window_norm = bessel_i0(kBeta);
    std::vector<double> row(static_cast<size_t>(taps()));
    // One row more than there are phases, to interpolate towards.
    rows_.reserve(row.size() * static_cast<size_t>(phases + 1));
    for (int64_t phase = 0; phase <= phases; ++phase) {
      const double fraction = static_cast<double>(phase) / static_cast<double>(phases);
      double sum = 0.0;
      for (size_t i = 0; i < row.size(); ++i) {
        const double x =
            (static_cast<double>(static_cast<int64_t>(i) - reach_ + 1) - fraction) * scale;
        const double edge = x / kZeroCrossings;
        const double window = std::abs(edge) < 1.0
                                  ? bessel_i0(kBeta * std::sqrt(1.0 - edge * edge)) / window_norm
                                  : 0.0;
        const double angle = std::numbers::pi * x;
        row[i] = window * (std::abs(x) < 1e-9 ? 1.0 : std::sin(angle) / angle);
        sum += row[i];
      }
      // Every phase passes a constant unchanged.
      for (const double weight : row) rows_.push_back(static_cast<float>(weight / sum));
    }
  }

  // Row weights belong to the old samples from `whole - reach() + 1` on.
  int64_t taps() const { return 2 * reach_; }
  int64_t reach() const { return reach_; }
  int64_t phases() const { return phases_; }
  const float* row(int64_t phase) const { return rows_.data() + phase * taps(); }

 private:
  int64_t reach_;
  int64_t phases_;
  std::vector<float> rows_;
};

// Sums in eight lanes, which compilers turn into vector instructions.
float dot(const float* a, const float* b, int64_t count) {
  float lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0.0f;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

// The sound around the sample `whole`, where the filter looks past the first or the last one.
void copy_padded(std::span<const float> samples, int64_t first, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t at = first + static_cast<int64_t>(i);
    const bool inside = at >= 0 && at < static_cast<int64_t>(samples.size());
    out[i] = inside ? samples[static_cast<size_t>(at)] : 0.0f;
  }
}

Status check_rate(int32_t rate, const char* what) {
  if (rate >= kLeastSamplingRate && rate <= kMostSamplingRate) return {};
  return invalid_argument(
      message({"The sampling rate to resample ", what, " is [", rate, "] Hz; it must be ",
               kLeastSamplingRate, " to ", kMostSamplingRate, "."}));
}

}  // namespace

Result<std::vector<float>> resample(std::span<const float> samples, int32_t from, int32_t to) {
  if (from == to) return std::vector<float>(samples.begin(), samples.end());
  VKF_CHECK(check_rate(from, "from"));
  VKF_CHECK(check_rate(to, "to"));
  if (samples.size() > INT32_MAX) {
    return invalid_argument(message({"The sound to resample has [", samples.size(),
                                     "] samples; the limit is 2147483647, resample it in parts."}));
  }
  const int64_t divisor = std::gcd(from, to);
  const int64_t step = from / divisor;  // old samples a step of `scale` new ones
  const int64_t scale = to / divisor;
  const auto count = static_cast<int64_t>(samples.size());
  const int64_t new_count = (count * scale + step - 1) / step;
  if (new_count > INT32_MAX) {
    return invalid_argument(message({"The sound would have [", new_count, "] samples at ", to,
                                     " Hz; the limit is 2147483647, resample it in parts."}));
  }
  const double lower = std::min(1.0, static_cast<double>(to) / static_cast<double>(from));
  const PhaseTable table(kCutoff * lower, std::min(scale, kMostPhases));

  std::vector<float> out;
  out.reserve(static_cast<size_t>(new_count));
  std::vector<float> edge(static_cast<size_t>(table.taps()));
  for (int64_t n = 0; n < new_count; ++n) {
    const int64_t whole = n * step / scale;
    const double phase = static_cast<double>(n * step % scale) / static_cast<double>(scale) *
                         static_cast<double>(table.phases());
    const int64_t row = static_cast<int64_t>(phase + 1e-9);
    const auto part = static_cast<float>(std::max(0.0, phase - static_cast<double>(row)));
    const int64_t first = whole - table.reach() + 1;
    const float* input = edge.data();
    if (first >= 0 && first + table.taps() <= count) {
      input = samples.data() + first;
    } else {
      copy_padded(samples, first, edge);
    }
    float value = dot(input, table.row(row), table.taps());
    if (part > 1e-6f) value += part * (dot(input, table.row(row + 1), table.taps()) - value);
    out.push_back(value);
  }
  return out;
}

}  // namespace vkformer
