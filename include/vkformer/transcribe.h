// What is said in sounds: values and settings of Transcriber (tasks.h).
//
// Threading and lifetime: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vkformer/choices.h"

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

}  // namespace vkformer
