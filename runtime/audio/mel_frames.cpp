#include "audio/mel_frames.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Slaney's mel scale ("Auditory Toolbox", 1998): linear up to 1,000 Hz, logarithmic from there on.
constexpr double kBreakFrequency = 1000.0;
constexpr double kBreakMel = 15.0;
constexpr double kHertzPerMel = 200.0 / 3.0;
constexpr double kLogOctave = 6.4;  // the frequency ratio that 27 mels make up

double hertz_to_mel(double hertz) {
  if (hertz < kBreakFrequency) return hertz / kHertzPerMel;
  return kBreakMel + 27.0 * std::log(hertz / kBreakFrequency) / std::log(kLogOctave);
}

double mel_to_hertz(double mel) {
  if (mel < kBreakMel) return mel * kHertzPerMel;
  return kBreakFrequency * std::exp(std::log(kLogOctave) / 27.0 * (mel - kBreakMel));
}

}  // namespace

Status check_feature_limits(std::span<const FeatureLimit> limits) {
  for (const FeatureLimit& limit : limits) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    return invalid_file(message({"[", limit.key, "] of the feature extractor is ", limit.value,
                                 "; it must be ", limit.least, " to ", limit.most, "."}));
  }
  return {};
}

MelFrames::MelFrames(const MelFrameSettings& settings, FrameFft fft, std::vector<float> window)
    : settings_(settings), fft_(std::move(fft)), window_(std::move(window)) {}

Result<MelFrames> MelFrames::create(const MelFrameSettings& settings, std::vector<float> window) {
  VKF_ASSIGN(FrameFft fft, FrameFft::plan(static_cast<int64_t>(window.size())));
  MelFrames made(settings, std::move(fft), std::move(window));
  made.make_filters();
  return made;
}

void MelFrames::make_filters() {
  // Triangles between neighboring frequencies that are evenly spaced in mels, of area 1.
  const auto bands = static_cast<size_t>(settings_.bands);
  std::vector<double> edges(bands + 2);
  for (size_t i = 0; i < edges.size(); ++i) {
    edges[i] = mel_to_hertz(hertz_to_mel(settings_.top) * static_cast<double>(i) /
                            static_cast<double>(bands + 1));
  }
  const auto bins = fft_.length() / 2 + 1;
  // Bins are taken to be evenly spaced up to half the rate, also for odd lengths.
  const double spacing =
      static_cast<double>(settings_.sampling_rate / 2) / static_cast<double>(bins - 1);
  for (size_t band = 0; band < bands; ++band) {
    Filter filter;
    for (size_t bin = 0; bin < bins; ++bin) {
      const double hertz = spacing * static_cast<double>(bin);
      const double rise = (hertz - edges[band]) / (edges[band + 1] - edges[band]);
      const double fall = (edges[band + 2] - hertz) / (edges[band + 2] - edges[band + 1]);
      const double weight = std::min(rise, fall) * 2.0 / (edges[band + 2] - edges[band]);
      if (weight <= 0.0) continue;
      if (filter.weights.empty()) filter.first = bin;
      filter.weights.push_back(static_cast<float>(weight));
    }
    filters_.push_back(std::move(filter));
  }
}

void MelFrames::transform(std::span<const float> padded, int64_t frame, int64_t frames,
                          std::vector<float>& out) const {
  // Two real frames share a transform, one as the real and one as the imaginary part.
  constexpr size_t kLanes = FrameFft::kLanes;
  const size_t length = fft_.length();
  const auto hop = static_cast<size_t>(settings_.hop_length);
  const auto live = static_cast<size_t>(std::min(frames - frame, static_cast<int64_t>(2 * kLanes)));
  std::vector<FrameFft::Values> data(length), scratch(length);
  for (size_t lane = 0; lane < live; ++lane) {
    const float* samples = padded.data() + (static_cast<size_t>(frame) + lane) * hop;
    for (size_t i = 0; i < length; ++i) {
      (lane < kLanes ? data[i].re : data[i].im)[lane % kLanes] = samples[i] * window_[i];
    }
  }
  fft_.transform(data, scratch);

  // With Z the transform of x + i y: X_k = (Z_k + conj Z_-k) / 2, Y_k = (Z_k - conj Z_-k) / 2i.
  const size_t bins = length / 2 + 1;
  std::vector<FrameFft::Values> powers(bins);
  for (size_t k = 0; k < bins; ++k) {
    const FrameFft::Values& z = data[k];
    const FrameFft::Values& mirror = data[(length - k) % length];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x_re = z.re[lane] + mirror.re[lane];
      const float x_im = z.im[lane] - mirror.im[lane];
      const float y_re = z.im[lane] + mirror.im[lane];
      const float y_im = mirror.re[lane] - z.re[lane];
      powers[k].re[lane] = 0.25f * (x_re * x_re + x_im * x_im);
      powers[k].im[lane] = 0.25f * (y_re * y_re + y_im * y_im);
    }
  }
  for (size_t band = 0; band < filters_.size(); ++band) {
    const Filter& filter = filters_[band];
    FrameFft::Values sum;
    for (size_t i = 0; i < filter.weights.size(); ++i) {
      const FrameFft::Values& power = powers[filter.first + i];
      for (size_t lane = 0; lane < kLanes; ++lane) {
        sum.re[lane] += filter.weights[i] * power.re[lane];
        sum.im[lane] += filter.weights[i] * power.im[lane];
      }
    }
    float* row = out.data() + band * static_cast<size_t>(frames) + static_cast<size_t>(frame);
    for (size_t lane = 0; lane < live; ++lane) {
      row[lane] = (lane < kLanes ? sum.re : sum.im)[lane % kLanes];
    }
  }
}

std::vector<float> MelFrames::energies(std::span<const float> padded, int64_t frames) const {
  std::vector<float> out(static_cast<size_t>(settings_.bands * frames));
  for (int64_t frame = 0; frame < frames; frame += 2 * FrameFft::kLanes) {
    transform(padded, frame, frames, out);
  }
  return out;
}

std::vector<float> hann_window(int64_t length, HannWindow kind) {
  const auto period = static_cast<double>(
      kind == HannWindow::kPeriodic ? length : std::max<int64_t>(1, length - 1));
  std::vector<float> window;
  for (int64_t i = 0; i < length; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / period;
    window.push_back(static_cast<float>(0.5 - 0.5 * std::cos(angle)));
  }
  return window;
}

}  // namespace vkformer
