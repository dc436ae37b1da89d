// Who says what, and when. A text is cut into lines, lines spread over the crowd and over a few
// conversations at a time, words timed as their phonemes arrive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lips/pronouncer.h"
#include "lips/visemes.h"

namespace sample {

// A word of a line, as it is written and as it is spoken.
struct LineWord {
  std::string text;
  std::shared_ptr<const Pronunciation> pronunciation;
  SpokenWord spoken;                                 // once it is pronounced
  double begins = 0.0;                               // seconds, once its line is spoken
  std::shared_ptr<const Pronunciation> before = {};  // of the last time the line was asked for

  // What the word is pronounced as now or was before; null: it never was.
  const Pronunciation* known() const;
};

struct Line {
  int speaker = 0;
  std::vector<LineWord> words;
  enum class State : uint8_t { kWaiting, kAsked, kSpoken } state = State::kWaiting;
  double begins = 0.0, ends = 0.0;  // seconds, once its words are known
};

// What a head does at a moment.
struct Speech {
  const Line* line = nullptr;      // null: it is silent
  const LineWord* word = nullptr;  // null: it still waits for its phonemes, or is between words
  double into_word = 0.0;          // seconds
};

class Dialogue {
 public:
  // Sentences of `text` go to `heads` heads in turn. An error names a word that cannot be spoken.
  static vkformer::Result<Dialogue> create(const std::string& text, int heads, int voices);

  // Asks for phonemes and times the lines whose words are all there. Call it once a frame.
  void update(double now, Pronouncer& pronouncer);
  // All lines were spoken and the last has faded.
  bool finished(double now) const;
  // Begins again with the first line; words are pronounced anew.
  void restart();

  Speech speech_of(int head, double now) const;
  // The head that speaks in the conversation of `head`, or -1: who the others look at.
  int speaker_near(int head) const;
  // All words of the text with their phonemes, in the order of the text.
  std::vector<const LineWord*> words() const;

 private:
  struct Voice {
    size_t current = 0;  // index among its lines
    std::vector<size_t> lines;
    double free_at = 0.0;
  };
  void ask(Line& line, Pronouncer& pronouncer);
  bool schedule(Line& line, double now);

  std::vector<Line> lines_;
  std::vector<size_t> voice_of_;  // by head
  std::vector<Voice> voices_;
};

}  // namespace sample
