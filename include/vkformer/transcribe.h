// Transcriber: what is said in recordings.
//
// Threading and lifetime: as all tasks (tasks.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vkformer/audio.h"
#include "vkformer/tasks.h"

namespace vkformer {

struct TranscribeOptions {
  // "en" or "<|en|>"; empty: the model's own setting, or what the model hears in each recording's
  // first window.
  std::string language;
  // Absent: the model's own setting.
  std::optional<SpeechTask> task;
  std::optional<int> beams;
  std::optional<int> max_new_tokens;  // per window
};

// A word of a transcript, and when it is said.
struct SpokenWord {
  std::string text;
  double begin = 0;  // seconds from the start of the sound
  double end = 0;    // seconds
};

struct Transcript {
  std::string text;
  std::vector<SpokenWord> words;  // in order
};

// Speech to text, by a decoder of texts or by the character of each frame (CTC). A recording longer
// than a window (30 seconds, or what the model's files say) is cut at the quietest moment of each
// window's last fifth.
class VKFORMER_API Transcriber : public Task {
 public:
  using Task::Task;
  static Result<Transcriber> load(const Device& device, const ModelSource& source,
                                  const TaskOptions& options = {});
  Result<std::vector<std::string>> transcribe(std::span<const Sound> sounds,
                                              const TranscribeOptions& options = {});
  // The same with the words and their times. kUnsupported for a model that gives none.
  Result<std::vector<Transcript>> transcribe_words(std::span<const Sound> sounds,
                                                   const TranscribeOptions& options = {});
};

}  // namespace vkformer
