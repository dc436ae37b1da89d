// The audio of a call, in windows that a speech model takes at once.
#pragma once

#include "tasks/task_model.h"

namespace vkformer {

// Samples [begin, end) of sound number `sound`.
struct SoundWindow {
  size_t sound = 0;
  size_t begin = 0;
  size_t end = 0;

  size_t samples() const { return end - begin; }
};

struct HeardSound {
  std::vector<float> samples;   // at the model's rate, (N)
  std::vector<TokenId> prompt;  // of a decoder
  Transcript transcript;

  // Appends the text of the next window, after a space where neither has one.
  void append(std::string text);
};

struct HeardSounds {
  std::vector<HeardSound> sounds;
  std::vector<SoundWindow> windows;  // of all recordings, in order; one of no samples has none
};

// Samples per second that the model takes.
int64_t speech_rate(const TaskModel& task);

// From the start of a frame that a CTC head has a class for to that of the next.
double class_seconds(const TaskModel& task);

// The audio at the model's sampling rate, cut into windows. A window that is too long ends in the
// middle of the quietest tenth of a second of its last fifth.
Result<HeardSounds> cut_sounds(const TaskModel& task, std::span<const Sound> sounds);

// The model's input of windows: input_features (B, mel bands, frames); or input_values (B, samples)
// or input_features (B, frames, mel bands) of windows of one length. A window too short for a frame
// is filled up with silence.
Result<TensorMap> speech_inputs(const TaskModel& task, const std::vector<HeardSound>& sounds,
                                std::span<const SoundWindow> windows);

// The end of the run of windows from `begin` on that may run together. They have one prompt and,
// where the model reads any number of samples, one length. So no answer depends on what it runs
// with.
size_t window_run_end(const TaskModel& task, const HeardSounds& heard, size_t begin);

// The texts of a CTC head.
Status transcribe_frames(TaskModel& task, HeardSounds& heard);

// The heads of cross-attention that attend to the audio of the token that they predict, and how
// many frames their weights are smoothed over.
struct AlignmentHeads {
  struct Head {
    int64_t layer = 0;
    int64_t head = 0;
  };
  std::vector<Head> heads;
  std::vector<int64_t> layers;  // theirs, sorted
  size_t median_width = 0;
};

// As generation_config.json (alignment_heads) and config.json (median_filter_width) have them; an
// error where the model gives no times of words.
Result<AlignmentHeads> read_alignment_heads(const TaskModel& task);

// Adds the words that a decoder wrote of a window, with their times. It takes one more pass over
// the prompt and the text, which is what `ids` holds after the prompt.
Status add_aligned_words(TaskModel& task, const AlignmentHeads& heads, const SoundWindow& window,
                         std::span<const TokenId> ids, std::vector<HeardSound>& recordings);

}  // namespace vkformer
