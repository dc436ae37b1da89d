// Samples of sound as the input of a model: how many frames its convolutions make of them, and
// which frames a mask keeps.
#pragma once

#include "model/model.h"

namespace vkformer {

// A convolution over time.
struct SoundConv {
  int64_t in = 1, out = 0;
  int64_t kernel = 1, stride = 1;
};

struct WaveformInput {
  std::vector<SoundConv> convs;
  // kByLength: the frames of a row are those that its kept samples make, wherever in the row the
  // mask has its zeros. kBySample: frame t is kept if the mask keeps sample t *
  // samples_per_frame().
  enum class Frames : uint8_t { kByLength, kBySample } frames = Frames::kByLength;
  // kWhereNeeded: a pass has a mask only if it masks a frame. kAlways: decoding steps read it.
  enum class Mask : uint8_t { kWhereNeeded, kAlways } mask = Mask::kWhereNeeded;

  // 0 where the audio is too short.
  int64_t frames_of(int64_t samples) const;
  // The fewest samples that make `frames` frames.
  Result<int64_t> samples_of(int64_t frames) const;
  // Samples from one frame to the next.
  int64_t samples_per_frame() const;
  // The sizes that facts have of it.
  WaveFacts facts() const;

  // Reads input_values (B, samples) and attention_mask, for ModelFamily::read_inputs. Words:
  // input_values and, with a mask, key_mask and kept_frames (B, frames), an index for each frame
  // that is kept and ~0 for the others.
  Status read(const TensorMap& inputs, ForwardInputs& result) const;
};

// What a graph begins with.
struct WaveformSource {
  TensorId samples = kNoTensor;  // (B, 1, samples)
  TensorId mask = kNoTensor;     // key mask words (B, ceil(frames / 32)), or none
};
Result<WaveformSource> add_waveform_source(ModelBuilder& builder, const WaveformInput& input,
                                           const ForwardShape& shape);

// x (B, frames, D) with zeros where frames are masked.
Result<TensorId> add_kept_frames(ModelBuilder& builder, const WaveformSource& source, TensorId x);

}  // namespace vkformer
