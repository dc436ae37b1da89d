#include "audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Whisper's filters end here whatever the sampling rate, in hertz.
constexpr double kTopFrequency = 8000.0;
// Powers below are taken for this.
constexpr float kLeastPower = 1e-10f;
// Values so far below the greatest are raised, in powers of ten.
constexpr float kRange = 8.0f;

// Slaney's mel scale ("Auditory Toolbox", 1998): linear up to 1,000 Hz, logarithmic from there on.
constexpr double kBreakFrequency = 1000.0;
constexpr double kBreakMel = 15.0;
constexpr double kHertzPerMel = 200.0 / 3.0;
constexpr double kLogOctave = 6.4;  // the frequency ratio that 27 mels make up

// Samples, values of a result, and samples that all frames have together, at most.
constexpr int64_t kMostValues = int64_t{1} << 28;
constexpr int64_t kMostFrameValues = int64_t{1} << 33;

double hertz_to_mel(double hertz) {
  if (hertz < kBreakFrequency) return hertz / kHertzPerMel;
  return kBreakMel + 27.0 * std::log(hertz / kBreakFrequency) / std::log(kLogOctave);
}

double mel_to_hertz(double mel) {
  if (mel < kBreakMel) return mel * kHertzPerMel;
  return kBreakFrequency * std::exp(std::log(kLogOctave) / 27.0 * (mel - kBreakMel));
}

Status check_settings(const LogMelSettings& settings) {
  struct Limit {
    const char* key;
    int64_t value;
    int64_t least;
    int64_t most;
  };
  const Limit limits[] = {
      {"feature_size", settings.mel_bands, 1, 1024},
      {"sampling_rate", settings.sampling_rate, 1000, 768000},
      {"hop_length", settings.hop_length, 1, 1 << 20},
      {"n_fft", settings.fft_length, 2, FrameFft::kMostLength},
      {"chunk_length", settings.chunk_length, 1, 3600},
  };
  for (const Limit& limit : limits) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    return invalid_file(message({"[", limit.key, "] of the feature extractor is ", limit.value,
                                 "; it must be ", limit.least, " to ", limit.most, "."}));
  }
  const int64_t samples = settings.chunk_length * settings.sampling_rate;
  if (samples <= settings.fft_length / 2 || samples < settings.hop_length) {
    return invalid_file(message({"[chunk_length] of the feature extractor gives ", samples,
                                 " samples, too few for its n_fft of ", settings.fft_length,
                                 " and hop_length of ", settings.hop_length, "."}));
  }
  const int64_t frames = samples / settings.hop_length;
  if (samples > kMostValues || frames > kMostValues / settings.mel_bands ||
      frames > kMostFrameValues / settings.fft_length) {
    return invalid_file(
        message({"[chunk_length] of the feature extractor gives ", samples, " samples and ", frames,
                 " frames of ", settings.fft_length, " samples and ", settings.mel_bands,
                 " bands; the limits are ", kMostValues, " samples or values and ",
                 kMostFrameValues, " samples of frames."}));
  }
  if (!std::isfinite(settings.padding_value)) {
    return invalid_file("[padding_value] of the feature extractor is not finite.");
  }
  return {};
}

}  // namespace

LogMel::LogMel(const LogMelSettings& settings, FrameFft fft)
    : settings_(settings), fft_(std::move(fft)) {}

Result<LogMel> LogMel::create(const LogMelSettings& settings) {
  VKF_CHECK(check_settings(settings));
  VKF_ASSIGN(FrameFft fft, FrameFft::plan(settings.fft_length));
  LogMel made(settings, std::move(fft));
  const int64_t length = settings.fft_length;
  const int64_t padded = made.samples() + length / 2 * 2;
  // The last frame that fits is dropped, as in the original.
  made.frames_ = (padded - length) / settings.hop_length;
  if (made.frames_ < 1) {
    return invalid_file(message({"[hop_length] of the feature extractor leaves no frame of its ",
                                 made.samples(), " samples."}));
  }
  for (int64_t i = 0; i < length; ++i) {
    const double angle =
        2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
    made.window_.push_back(static_cast<float>(0.5 - 0.5 * std::cos(angle)));
  }

  made.make_filters();
  return made;
}

void LogMel::make_filters() {
  // Triangles between neighboring frequencies that are evenly spaced in mels, of area 1.
  const auto bands = static_cast<size_t>(settings_.mel_bands);
  std::vector<double> edges(bands + 2);
  for (size_t i = 0; i < edges.size(); ++i) {
    edges[i] = mel_to_hertz(hertz_to_mel(kTopFrequency) * static_cast<double>(i) /
                            static_cast<double>(bands + 1));
  }
  const auto bins = static_cast<size_t>(settings_.fft_length / 2 + 1);
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

Result<std::vector<float>> LogMel::framed_sound(std::span<const float> sound) const {
  const auto count = static_cast<size_t>(samples());
  const auto margin = static_cast<size_t>(settings_.fft_length / 2);
  const auto given = sound.first(std::min(sound.size(), count));
  for (size_t i = 0; i < given.size(); ++i) {
    if (std::isfinite(given[i])) continue;
    return invalid_argument(message(
        {"Sample [", i, "] of the sound is NaN or infinite; samples must be finite numbers."}));
  }
  std::vector<float> padded(count + 2 * margin, static_cast<float>(settings_.padding_value));
  const size_t begin = settings_.pads_left ? count - given.size() : 0;
  std::copy(given.begin(), given.end(), padded.begin() + static_cast<ptrdiff_t>(margin + begin));
  for (size_t i = 1; i <= margin; ++i) {
    padded[margin - i] = padded[margin + i];
    padded[margin + count - 1 + i] = padded[margin + count - 1 - i];
  }
  return padded;
}

void LogMel::transform_frames(std::span<const float> padded, int64_t frame,
                              std::vector<float>& out) const {
  // Two real frames share a transform, one as the real and one as the imaginary part.
  constexpr size_t kLanes = FrameFft::kLanes;
  const size_t length = fft_.length();
  const auto hop = static_cast<size_t>(settings_.hop_length);
  const auto live =
      static_cast<size_t>(std::min(frames_ - frame, static_cast<int64_t>(2 * kLanes)));
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
    float* row = out.data() + band * static_cast<size_t>(frames_) + static_cast<size_t>(frame);
    for (size_t lane = 0; lane < live; ++lane) {
      const float power = (lane < kLanes ? sum.re : sum.im)[lane % kLanes];
      row[lane] = std::log10(std::max(power, kLeastPower));
    }
  }
}

Result<std::vector<float>> LogMel::extract(std::span<const float> sound) const {
  VKF_ASSIGN(const auto padded, framed_sound(sound));
  std::vector<float> out(static_cast<size_t>(settings_.mel_bands * frames_));
  for (int64_t frame = 0; frame < frames_; frame += 2 * FrameFft::kLanes) {
    transform_frames(padded, frame, out);
  }
  const float floor = *std::max_element(out.begin(), out.end()) - kRange;
  for (float& value : out) value = (std::max(value, floor) + 4.0f) / 4.0f;
  for (const float value : out) {
    if (std::isfinite(value)) continue;
    return invalid_argument(
        "The [sound] is too loud: its power is infinite in single precision. "
        "Samples are expected between -1 and 1.");
  }
  return out;
}

}  // namespace vkformer
