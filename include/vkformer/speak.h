// Speaker: texts spoken.
//
// Threading and lifetime: as all tasks (tasks.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkformer/audio.h"
#include "vkformer/tasks.h"

namespace vkformer {

// Settings of speech; absent ones are the model's own (config.json).
struct SpeakOptions {
  // How fast: 2 speaks in half of the time. Above 0.
  std::optional<double> speaking_rate;
  // How much chance there is in the voice, and in how long each sound is. 0: none, so that the seed
  // does not matter.
  std::optional<double> noise;
  std::optional<double> duration_noise;
  // Of a model with several voices (ModelInfo::speakers), counted from 0; absent: none of them.
  std::optional<int64_t> speaker;
  // The same seed gives the same speech, in every batch.
  uint64_t seed = 0;
  // Whether texts are written as phonemes, for models that read these.
  bool phonemes = false;
};

// Text to speech.
class VKFORMER_API Speaker : public Task {
 public:
  using Task::Task;
  static Result<Speaker> load(const Device& device, const ModelSource& source,
                              const TaskOptions& options = {});
  // A sound for each text, at ModelInfo::sampling_rate. Texts are spoken one after the other.
  Result<std::vector<Sound>> speak(std::span<const std::string> texts,
                                   const SpeakOptions& options = {});
};

}  // namespace vkformer
