#include "lips/visemes.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

namespace sample {

namespace {

// One row of the table: jaw, wide, round, press, bite, flare, tongue, each in tenths.
struct Row {
  std::string_view name;
  int jaw, wide, round, press, bite, flare, tongue;
  float strength;
  int milliseconds;
  std::string_view glides_to = {};  // of diphthongs: what they end in
};

// Lip shapes follow the usual classes of visemes (Jeffers and Barley 1971, "Speechreading").
// Durations are of fluent reading (Klatt 1976, "Linguistic uses of segmental duration in English").
constexpr Row kRows[] = {
    {"AA", 9, 1, 0, 0, 0, 0, 0, 1.0F, 150},       {"AE", 8, 4, 0, 0, 0, 0, 0, 1.0F, 150},
    {"AH", 5, 1, 0, 0, 0, 0, 0, 0.9F, 100},       {"AO", 7, 0, 5, 0, 0, 0, 0, 1.0F, 150},
    {"AW", 9, 1, 0, 0, 0, 0, 0, 1.0F, 180, "UW"}, {"AY", 9, 2, 0, 0, 0, 0, 0, 1.0F, 180, "IY"},
    {"EH", 6, 4, 0, 0, 0, 0, 0, 1.0F, 120},       {"ER", 3, 0, 5, 0, 0, 3, 3, 1.0F, 130},
    {"EY", 5, 5, 0, 0, 0, 0, 0, 1.0F, 160, "IY"}, {"IH", 3, 5, 0, 0, 0, 0, 1, 0.9F, 90},
    {"IY", 2, 9, 0, 0, 0, 1, 2, 1.0F, 120},       {"OW", 6, 0, 7, 0, 0, 0, 0, 1.0F, 160, "UW"},
    {"OY", 7, 0, 7, 0, 0, 0, 0, 1.0F, 190, "IY"}, {"UH", 3, 0, 6, 0, 0, 0, 0, 0.9F, 100},
    {"UW", 2, 0, 10, 0, 0, 0, 0, 1.2F, 130},      {"B", 0, 0, 0, 10, 0, 0, 0, 4.0F, 80},
    {"M", 0, 1, 0, 10, 0, 0, 0, 4.0F, 85},        {"P", 0, 0, 0, 10, 0, 0, 0, 4.0F, 90},
    {"F", 1, 1, 0, 0, 10, 0, 0, 3.0F, 100},       {"V", 1, 1, 0, 0, 10, 0, 0, 3.0F, 80},
    {"DH", 2, 2, 0, 0, 0, 2, 10, 1.0F, 70},       {"TH", 2, 2, 0, 0, 0, 2, 10, 1.0F, 100},
    {"D", 2, 2, 0, 0, 0, 1, 8, 0.8F, 65},         {"T", 1, 2, 0, 0, 0, 1, 8, 0.8F, 80},
    {"N", 2, 2, 0, 0, 0, 0, 8, 0.8F, 75},         {"L", 3, 1, 0, 0, 0, 0, 10, 0.8F, 75},
    {"S", 0, 5, 0, 0, 0, 5, 2, 1.2F, 110},        {"Z", 0, 5, 0, 0, 0, 5, 2, 1.2F, 90},
    {"SH", 1, 0, 5, 0, 0, 10, 0, 1.5F, 115},      {"ZH", 1, 0, 5, 0, 0, 10, 0, 1.5F, 90},
    {"CH", 1, 0, 5, 0, 0, 10, 2, 1.5F, 110},      {"JH", 1, 0, 5, 0, 0, 10, 2, 1.5F, 100},
    {"G", 3, 1, 0, 0, 0, 0, 0, 0.6F, 75},         {"K", 3, 1, 0, 0, 0, 0, 0, 0.6F, 90},
    {"NG", 3, 1, 0, 0, 0, 0, 2, 0.6F, 85},        {"HH", 4, 0, 0, 0, 0, 0, 0, 0.4F, 65},
    {"R", 2, 0, 6, 0, 0, 3, 2, 1.0F, 75},         {"W", 1, 0, 10, 0, 0, 0, 0, 1.6F, 80},
    {"Y", 2, 6, 0, 0, 0, 0, 2, 0.9F, 70},
};

const Row* find_row(std::string_view name) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& candidate) { return candidate.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

Viseme viseme(const Row& row, float start, float seconds, int phoneme) {
  const auto tenth = [](int value) { return static_cast<float>(value) * 0.1F; };
  const float smile = 0.15F * tenth(row.wide);
  return {{tenth(row.jaw), tenth(row.wide), tenth(row.round), tenth(row.press), tenth(row.bite),
           tenth(row.flare), smile, tenth(row.tongue)},
          row.strength,
          start,
          seconds,
          phoneme};
}

// Appends a phoneme; `stress` is '1', '2', '0' or none.
void append(SpokenWord& word, const Row& row, char stress) {
  const float slower = stress == '1' ? 1.25F : stress == '2' ? 1.1F : 1.0F;
  const float seconds = static_cast<float>(row.milliseconds) * 0.001F * slower;
  const int phoneme = static_cast<int>(word.phonemes.size()) - 1;
  const Row* glide = find_row(row.glides_to);
  const float first = glide != nullptr ? 0.6F * seconds : seconds;
  word.visemes.push_back(viseme(row, word.seconds, first, phoneme));
  if (glide != nullptr) {
    word.visemes.push_back(viseme(*glide, word.seconds + first, seconds - first, phoneme));
    word.visemes.back().strength *= 0.7F;
  }
  word.seconds += seconds;
}

}  // namespace

SpokenWord speak(const std::string& phonemes) {
  SpokenWord word;
  std::istringstream stream(phonemes);
  std::string name;
  while (stream >> name) {
    const char last = name.back();
    const bool stressed = last >= '0' && last <= '2';
    const std::string_view bare(name.data(), name.size() - (stressed ? 1 : 0));
    const Row* row = find_row(bare);
    if (row == nullptr) continue;
    word.phonemes.push_back(name);
    append(word, *row, stressed ? last : '\0');
  }
  return word;
}

MouthWeights mouth_at(const SpokenWord& word, float seconds) {
  constexpr float kReach = 0.055F;  // seconds beyond a viseme's own time in which it is felt
  // Silence before and after pulls as well, so that words begin and end at rest.
  const float outside = std::max(-seconds, seconds - word.seconds);
  float sum = 0.4F * std::exp(std::min(outside, 0.0F) / kReach) + (outside > 0.0F ? 1.0F : 0.0F);
  MouthWeights mouth{};
  for (const Viseme& viseme : word.visemes) {
    const float middle = viseme.start + 0.5F * viseme.seconds;
    const float width = 0.5F * viseme.seconds + 0.35F * kReach;
    const float off = std::abs(seconds - middle) / width;
    const float pull = viseme.strength * std::exp(-off * off * off);
    sum += pull;
    for (size_t i = 0; i < mouth.size(); ++i) mouth[i] += pull * viseme.weights[i];
  }
  for (float& weight : mouth) weight /= sum;
  return mouth;
}

int phoneme_at(const SpokenWord& word, float seconds) {
  for (const Viseme& viseme : word.visemes) {
    if (seconds >= viseme.start && seconds < viseme.start + viseme.seconds) return viseme.phoneme;
  }
  return -1;
}

}  // namespace sample
