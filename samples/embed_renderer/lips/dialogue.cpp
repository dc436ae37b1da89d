#include "lips/dialogue.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace sample {

namespace {

constexpr size_t kMostLetters = 24;     // that models/g2p-en learned
constexpr double kBetweenWords = 0.06;  // seconds
constexpr double kAfterLine = 0.45;     // seconds in which its last word stays
constexpr size_t kMostWordsALine = 7;

bool ends_sentence(const std::string& word) {
  return word.find_last_of(".?!") == word.size() - 1;
}

vkformer::Result<std::vector<Line>> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream stream(text);
  std::string word;
  bool open = false;
  while (stream >> word) {
    const std::string letters = letters_of(word);
    if (letters.size() > kMostLetters) {
      return vkformer::Error{vkformer::ErrorCode::kInvalidArgument,
                             "word [" + word + "] has " + std::to_string(letters.size()) +
                                 " letters; the model learned words of at most " +
                                 std::to_string(kMostLetters) + ": shorten it."};
    }
    if (letters.empty()) continue;  // a dash, a number
    if (!open || lines.back().words.size() >= kMostWordsALine) lines.emplace_back();
    lines.back().words.push_back({word, nullptr, {}, 0.0});
    open = !ends_sentence(word);
  }
  if (lines.empty()) {
    return vkformer::Error{vkformer::ErrorCode::kInvalidArgument,
                           "the text [" + text + "] has no word with a letter; give at least one."};
  }
  return lines;
}

// All heads in an order in which neighbors stand apart, so that bubbles rarely meet.
std::vector<int> spread_order(int heads) {
  int stride = std::max(1, heads * 4 / 5);
  while (std::gcd(stride, heads) != 1) --stride;
  std::vector<int> order;
  for (int i = 0; i < heads; ++i) order.push_back(i * stride % heads);
  return order;
}

}  // namespace

vkformer::Result<Dialogue> Dialogue::create(const std::string& text, int heads, int voices) {
  auto lines = lines_of(text);
  if (!lines) return lines.error();
  Dialogue dialogue;
  dialogue.lines_ = std::move(*lines);
  const int conversations = std::clamp(voices, 1, heads);
  dialogue.voices_.resize(static_cast<size_t>(conversations));
  // Conversation v has every head of the order from place v on; in each they take turns.
  const std::vector<int> order = spread_order(heads);
  dialogue.voice_of_.resize(static_cast<size_t>(heads));
  for (int place = 0; place < heads; ++place) {
    dialogue.voice_of_[static_cast<size_t>(order[static_cast<size_t>(place)])] =
        static_cast<size_t>(place % conversations);
  }
  for (size_t i = 0; i < dialogue.lines_.size(); ++i) {
    dialogue.lines_[i].speaker = order[i % order.size()];
    dialogue.voices_[dialogue.voice_of_[static_cast<size_t>(dialogue.lines_[i].speaker)]]
        .lines.push_back(i);
  }
  // They do not all begin at once.
  for (size_t v = 0; v < dialogue.voices_.size(); ++v) {
    dialogue.voices_[v].free_at = 0.35 * static_cast<double>(v);
  }
  return dialogue;
}

const Pronunciation* LineWord::known() const {
  return pronunciation != nullptr && pronunciation->ready ? pronunciation.get() : before.get();
}

void Dialogue::ask(Line& line, Pronouncer& pronouncer) {
  for (LineWord& word : line.words) {
    if (word.pronunciation != nullptr && word.pronunciation->ready) {
      word.before = std::move(word.pronunciation);
    }
    word.pronunciation = pronouncer.request(letters_of(word.text));
  }
  line.state = Line::State::kAsked;
}

bool Dialogue::schedule(Line& line, double now) {
  const bool known = std::all_of(line.words.begin(), line.words.end(),
                                 [](const LineWord& word) { return word.pronunciation->ready; });
  if (!known) return false;
  line.begins = now;
  double at = now + 0.12;
  for (LineWord& word : line.words) {
    word.spoken = speak(word.pronunciation->phonemes);
    word.begins = at;
    at += word.spoken.seconds + kBetweenWords;
  }
  line.ends = at + kAfterLine;
  line.state = Line::State::kSpoken;
  return true;
}

void Dialogue::update(double now, Pronouncer& pronouncer) {
  for (Voice& voice : voices_) {
    if (voice.current >= voice.lines.size() || now < voice.free_at) continue;
    Line& line = lines_[voice.lines[voice.current]];
    if (line.state == Line::State::kWaiting) ask(line, pronouncer);
    if (line.state == Line::State::kAsked && !schedule(line, now)) continue;
    // The next line is pronounced while this one is spoken.
    if (voice.current + 1 < voice.lines.size()) {
      Line& next = lines_[voice.lines[voice.current + 1]];
      if (next.state == Line::State::kWaiting) ask(next, pronouncer);
    }
    if (now < line.ends) continue;
    ++voice.current;
    voice.free_at = now + 0.1;
  }
}

bool Dialogue::finished(double now) const {
  return std::all_of(voices_.begin(), voices_.end(), [now](const Voice& voice) {
    return voice.current >= voice.lines.size() && now >= voice.free_at;
  });
}

void Dialogue::restart() {
  for (Line& line : lines_) line.state = Line::State::kWaiting;
  for (Voice& voice : voices_) voice.current = 0;
}

Speech Dialogue::speech_of(int head, double now) const {
  for (const Voice& voice : voices_) {
    if (voice.current >= voice.lines.size()) continue;
    const Line& line = lines_[voice.lines[voice.current]];
    if (line.speaker != head || line.state == Line::State::kWaiting) continue;
    if (line.state == Line::State::kAsked) return {&line, nullptr, 0.0};
    const LineWord* spoken = nullptr;
    for (const LineWord& word : line.words) {
      if (now >= word.begins - 0.5 * kBetweenWords) spoken = &word;
    }
    if (spoken == nullptr) spoken = &line.words.front();
    return {&line, spoken, now - spoken->begins};
  }
  return {};
}

int Dialogue::speaker_near(int head) const {
  const Voice& voice = voices_[voice_of_[static_cast<size_t>(head)]];
  if (voice.current >= voice.lines.size()) return -1;
  const Line& line = lines_[voice.lines[voice.current]];
  return line.state == Line::State::kWaiting ? -1 : line.speaker;
}

std::vector<const LineWord*> Dialogue::words() const {
  std::vector<const LineWord*> words;
  for (const Line& line : lines_) {
    for (const LineWord& word : line.words) words.push_back(&word);
  }
  return words;
}

}  // namespace sample
