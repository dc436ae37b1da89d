// From phonemes to a moving mouth: what each ARPAbet phoneme asks of jaw and lips, how long it
// lasts, and how neighbors blend.
#pragma once

#include <string>
#include <vector>

#include "scene/mouth.h"

namespace sample {

// What one phoneme, or one half of a diphthong, asks for.
struct Viseme {
  MouthWeights weights{};
  float strength = 1.0F;  // how little it gives way to its neighbors: closed lips do not
  float start = 0.0F;     // seconds from the beginning of the word
  float seconds = 0.0F;
  int phoneme = 0;  // which of the word's
};

// A word's phonemes as `model` writes them ("AH0 T EH1 N"), timed. Stressed vowels are longer.
// What is no phoneme is passed over.
struct SpokenWord {
  std::vector<std::string> phonemes;
  std::vector<Viseme> visemes;
  float seconds = 0.0F;
};
SpokenWord speak(const std::string& phonemes);

// The mouth at a moment of the word, `seconds` from its beginning; before and after it the mouth
// comes from rest and returns to it. Each viseme pulls with a weight that falls off in time on both
// sides: Cohen and Massaro 1993, "Modeling coarticulation in synthetic visual speech".
MouthWeights mouth_at(const SpokenWord& word, float seconds);

// The phoneme that is heard at that moment, as an index, or -1.
int phoneme_at(const SpokenWord& word, float seconds);

}  // namespace sample
