#include "model/blocks/waveform_input.h"

#include "base/message.h"
#include "base/narrow.h"
#include "model/mask_input.h"
#include "ops/gather_rows.h"
#include "ops/score_terms.h"

namespace vkformer {
namespace {

constexpr int64_t kMostSamples = int64_t{1} << 26;
// Of ForwardShape::more.
enum WaveformSize : size_t { kSampleCount = 0, kHasMask = 1 };

// The frames (B, frames) that the mask keeps.
Result<std::vector<uint8_t>> kept_frames(const WaveformInput& input, const Tensor& mask,
                                         const ForwardShape& shape) {
  const int64_t samples = shape.more[kSampleCount];
  if (mask.shape != Shape{shape.batch, samples}) {
    return invalid_argument(
        message({"[attention_mask] has shape ", shape_text(mask.shape), ", but [input_values] has ",
                 shape_text({shape.batch, samples})}));
  }
  VKF_ASSIGN(const std::vector<uint8_t> values, mask_flags("attention_mask", mask));
  std::vector<uint8_t> kept(static_cast<size_t>(shape.batch * shape.source), 0);
  const int64_t step = input.samples_per_frame();
  for (int64_t b = 0; b < shape.batch; ++b) {
    int64_t length = 0;
    for (int64_t i = 0; i < samples; ++i) length += values[static_cast<size_t>(b * samples + i)];
    const int64_t own = input.frames_of(length);
    const bool by_length = input.frames == WaveformInput::Frames::kByLength;
    if (by_length && own < 1) {
      return invalid_argument(
          message({"[attention_mask] keeps ", length, " samples of row ", b,
                   ", which are too few for one frame of this model's convolutions"}));
    }
    for (int64_t t = 0; t < shape.source; ++t) {
      const auto sample = static_cast<size_t>(b * samples + t * step);
      const bool keeps = by_length ? t < own : values[sample] != 0;
      kept[static_cast<size_t>(b * shape.source + t)] = keeps ? 1 : 0;
    }
  }
  return kept;
}

}  // namespace

int64_t WaveformInput::frames_of(int64_t samples) const {
  for (const SoundConv& conv : convs) {
    if (samples < conv.kernel) return 0;
    samples = (samples - conv.kernel) / conv.stride + 1;
  }
  return samples;
}

Result<int64_t> WaveformInput::samples_of(int64_t frames) const {
  int64_t samples = frames;
  for (size_t i = convs.size(); i-- > 0;) {
    samples = (samples - 1) * convs[i].stride + convs[i].kernel;
    if (samples < 1 || samples > kMostSamples) {
      return invalid_argument(message({"[input_values] would have more than ", kMostSamples,
                                       " samples to make ", frames, " frames; ask for fewer"}));
    }
  }
  return samples;
}

int64_t WaveformInput::samples_per_frame() const {
  int64_t samples = 1;
  // Frames farther apart than the longest input are as good as one.
  for (const SoundConv& conv : convs) samples = std::min(samples * conv.stride, kMostSamples);
  return samples;
}

WaveFacts WaveformInput::facts() const {
  const Result<int64_t> least = samples_of(1);
  return {.samples_per_frame = samples_per_frame(), .least_samples = least ? *least : kMostSamples};
}

Status WaveformInput::read(const TensorMap& inputs, ForwardInputs& result) const {
  const auto found = inputs.find("input_values");
  if (found == inputs.end()) return not_found("[input_values] is missing from the inputs");
  const Shape& s = found->second.shape;
  const bool fits = s.size() == 2 && s[0] >= 1 && s[1] >= 1 && s[1] <= kMostSamples;
  const int64_t frames = fits ? frames_of(s[1]) : 0;
  if (frames < 1) {
    return invalid_argument(message({"[input_values] has shape ", shape_text(s),
                                     ", but must be (B, samples) with enough samples for one frame "
                                     "of this model's convolutions and at most ",
                                     kMostSamples}));
  }
  VKF_ASSIGN(const std::vector<float> values, found->second.to_floats());
  result.words["input_values"] = float_words(values);
  result.shape = {.batch = s[0], .source = frames, .more = {s[1], 0}};
  std::vector<uint8_t> kept(static_cast<size_t>(s[0] * frames), 1);
  const auto given = inputs.find("attention_mask");
  if (given != inputs.end()) {
    VKF_ASSIGN(kept, kept_frames(*this, given->second, result.shape));
  }
  const bool hides = std::find(kept.begin(), kept.end(), uint8_t{0}) != kept.end();
  if (!hides && mask == Mask::kWhereNeeded) return {};
  std::vector<uint32_t> rows(kept.size(), ~0u);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] != 0) rows[i] = static_cast<uint32_t>(i);
  }
  result.words["key_mask"] = pack_key_mask(kept, s[0], frames);
  result.words["kept_frames"] = std::move(rows);
  result.shape.more[kHasMask] = 1;
  return {};
}

Result<WaveformSource> add_waveform_source(ModelBuilder& b, const WaveformInput& input,
                                           const ForwardShape& shape) {
  // A plan says no more than how many frames there are.
  VKF_ASSIGN(const int64_t samples, shape.more.empty() ? input.samples_of(shape.source)
                                                       : Result<int64_t>(shape.more[kSampleCount]));
  WaveformSource source;
  source.samples = b.graph().add_external("input_values", DType::kF32, {shape.batch, 1, samples});
  b.feed("input_values", source.samples);
  const bool masked =
      shape.more.empty() ? input.mask == WaveformInput::Mask::kAlways : shape.more[kHasMask] != 0;
  if (!masked) return source;
  source.mask =
      b.graph().add_external("key_mask", DType::kU32, {shape.batch, (shape.source + 31) / 32});
  b.feed("key_mask", source.mask);
  return source;
}

Result<TensorId> add_kept_frames(ModelBuilder& b, const WaveformSource& source, TensorId x) {
  if (source.mask == kNoTensor) return x;
  Graph& g = b.graph();
  const Shape& shape = g.tensor(x).shape;
  const TensorId kept = g.add_external("kept_frames", DType::kU32, {shape[0], shape[1]});
  b.feed("kept_frames", kept);
  return add_gather_rows(g, {.x = x, .indices = kept});
}

}  // namespace vkformer
