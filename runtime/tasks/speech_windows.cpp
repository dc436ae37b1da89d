#include "tasks/speech_windows.h"

#include <algorithm>
#include <cmath>

#include "audio/resample.h"
#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Of a window, where the model's files do not say it: what speech models are trained with.
constexpr int64_t kWindowSeconds = 30;

// Where a window that begins at `begin` ends. That is at the end, or in the middle of the quietest
// tenth of a second of its last fifth. Of equal ones it is the latest.
size_t window_end(const std::vector<float>& samples, size_t begin, size_t most, size_t rate) {
  if (samples.size() - begin <= most) return samples.size();
  const size_t piece = std::max<size_t>(1, rate / 10);
  size_t best = begin + most;
  double least = HUGE_VAL;
  for (size_t end = begin + most; end >= begin + most - most / 5 && end > begin + piece;
       end -= piece) {
    double energy = 0;
    for (size_t i = end - piece; i < end; ++i) {
      energy += static_cast<double>(samples[i]) * static_cast<double>(samples[i]);
    }
    if (energy >= least) continue;
    least = energy;
    best = end == begin + most ? end : end - piece / 2;
  }
  return best;
}

Result<HeardSound> read_sound(const TaskModel& task, const Sound& sound, size_t index) {
  const auto rate = static_cast<int32_t>(speech_rate(task));
  HeardSound recording{sound.samples, {}, {}};
  if (sound.sampling_rate == rate) return recording;
  auto samples = resample(sound.samples, sound.sampling_rate, rate);
  if (!samples) return samples.error().with_context(message({"[sound ", index + 1, "]"}));
  recording.samples = std::move(samples).value();
  return recording;
}

// Whether the model reads as many samples as there are, and not a window of one length.
bool reads_any_length(const TaskModel& task) {
  return task.waveform || task.utterances;
}

// Samples that the model gets of a window.
size_t samples_of(const TaskModel& task, const SoundWindow& window) {
  const size_t least = task.utterances ? task.utterances->least_samples()
                                       : static_cast<size_t>(task.facts().wave.least_samples);
  return std::max(window.samples(), least);
}

// The features (frames, bands) of a window, which silence fills up where it is too short.
Result<std::vector<float>> utterance_features(const TaskModel& task, const SoundWindow& window,
                                              std::span<const float> samples) {
  std::vector<float> filled(samples.begin(), samples.end());
  filled.resize(samples_of(task, window), 0.0f);
  return task.utterances->extract(filled);
}

}  // namespace

void HeardSound::append(std::string text) {
  std::string& all = transcript.text;
  if (all.empty()) text.erase(0, text.find_first_not_of(' '));
  if (!all.empty() && !text.empty() && text[0] != ' ') all += ' ';
  all += text;
}

int64_t speech_rate(const TaskModel& task) {
  if (task.utterances) return task.utterances->settings().sampling_rate;
  return task.waveform ? task.waveform->sampling_rate : task.sounds->settings().sampling_rate;
}

Result<HeardSounds> cut_sounds(const TaskModel& task, std::span<const Sound> sounds) {
  HeardSounds heard;
  const auto rate = static_cast<size_t>(speech_rate(task));
  const size_t most =
      reads_any_length(task) ? kWindowSeconds * rate : static_cast<size_t>(task.sounds->samples());
  for (size_t i = 0; i < sounds.size(); ++i) {
    VKF_ASSIGN(HeardSound recording, read_sound(task, sounds[i], i));
    for (size_t begin = 0; begin < recording.samples.size();) {
      const size_t end = window_end(recording.samples, begin, most, rate);
      heard.windows.push_back({i, begin, end});
      begin = end;
    }
    heard.sounds.push_back(std::move(recording));
  }
  return heard;
}

Result<TensorMap> speech_inputs(const TaskModel& task, const std::vector<HeardSound>& sounds,
                                std::span<const SoundWindow> windows) {
  std::vector<float> all;
  for (const SoundWindow& window : windows) {
    const std::span<const float> samples = std::span<const float>(sounds[window.sound].samples)
                                               .subspan(window.begin, window.samples());
    VKF_ASSIGN(std::vector<float> values, task.utterances
                                              ? utterance_features(task, window, samples)
                                          : task.waveform ? waveform_values(*task.waveform, samples)
                                                          : task.sounds->extract(samples));
    if (task.waveform) values.resize(samples_of(task, window), 0.0f);
    all.insert(all.end(), values.begin(), values.end());
  }
  const auto batch = static_cast<int64_t>(windows.size());
  TensorMap inputs;
  if (task.utterances) {
    const int64_t frames = task.utterances->frames(samples_of(task, windows[0]));
    inputs["input_features"] =
        Tensor::from_floats({batch, frames, task.utterances->settings().mel_bands}, all);
  } else if (task.waveform) {
    const auto samples = static_cast<int64_t>(samples_of(task, windows[0]));
    inputs["input_values"] = Tensor::from_floats({batch, samples}, all);
  } else {
    inputs["input_features"] =
        Tensor::from_floats({batch, task.sounds->settings().mel_bands, task.sounds->frames()}, all);
  }
  return inputs;
}

double class_seconds(const TaskModel& task) {
  const int64_t samples = task.utterances
                              ? task.frames_of_class * task.utterances->settings().hop_length
                              : task.facts().wave.samples_per_frame;
  return static_cast<double>(samples) / static_cast<double>(speech_rate(task));
}

size_t window_run_end(const TaskModel& task, const HeardSounds& heard, size_t begin) {
  const std::vector<SoundWindow>& windows = heard.windows;
  const auto alike = [&](const SoundWindow& window) {
    const SoundWindow& first = windows[begin];
    return heard.sounds[window.sound].prompt == heard.sounds[first.sound].prompt &&
           (!reads_any_length(task) || samples_of(task, window) == samples_of(task, first));
  };
  size_t end = begin + 1;
  while (end < windows.size() && end - begin < task.batch && alike(windows[end])) ++end;
  return end;
}

}  // namespace vkformer
