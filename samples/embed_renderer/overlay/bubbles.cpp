#include "overlay/bubbles.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sample {

namespace {

const glm::vec4 kPaper{0.99F, 0.985F, 0.97F, 0.97F}, kShadow{0.05F, 0.03F, 0.10F, 0.35F};
const glm::vec4 kInk{0.12F, 0.11F, 0.20F, 1.0F}, kMuted{0.45F, 0.44F, 0.55F, 1.0F};
const glm::vec4 kMark{0.90F, 0.33F, 0.20F, 1.0F}, kWhite{1.0F};

// The box for a text of this size; its tail is sampled, too.
Box paper(Canvas& canvas, const BubblePlace& place, float width, float height) {
  const float u = place.scale, tail = 7.0F * u;
  const bool above = place.side == BubblePlace::Side::kAbove;
  const float left = std::clamp(place.anchor.x - 0.5F * width, 4.0F * u,
                                std::max(place.right_edge - width - 4.0F * u, 4.0F * u));
  const float top =
      above ? std::max(place.anchor.y - tail - height, 4.0F * u) : place.anchor.y + tail;
  const Box box{left, top, left + width, top + height};
  canvas.box({box.left, box.top + 2.0F * u, box.right, box.bottom + 3.0F * u}, 8.0F * u, kShadow,
             4.0F * u);
  canvas.box(box, 7.0F * u, kPaper);
  const float x = std::clamp(place.anchor.x, box.left + 10.0F * u, box.right - 10.0F * u);
  const float edge = above ? box.bottom - 0.5F * u : box.top + 0.5F * u;
  canvas.tail({x - 5.0F * u, edge, x + 5.0F * u, place.anchor.y}, kPaper);
  return box;
}

void draw_waiting(Canvas& canvas, const BubblePlace& place, double now) {
  const float u = place.scale;
  const Box box = paper(canvas, place, 36.0F * u, 17.0F * u);
  for (int dot = 0; dot < 3; ++dot) {
    const float x = box.left + (10.0F + 8.0F * static_cast<float>(dot)) * u;
    const float hop = std::sin(static_cast<float>(now) * 9.0F - static_cast<float>(dot));
    const float y = 0.5F * (box.top + box.bottom) - 1.5F * u * std::max(hop, 0.0F);
    canvas.box({x - 2.0F * u, y - 2.0F * u, x + 2.0F * u, y + 2.0F * u}, 2.0F * u, kMuted);
  }
}

}  // namespace

void draw_bubble(Canvas& canvas, const BubblePlace& place, const Speech& speech, double now) {
  if (speech.line == nullptr) return;
  if (speech.word == nullptr) {
    draw_waiting(canvas, place, now);
    return;
  }
  const float u = place.scale;
  const TextStyle word{9.6F * u, 1.75F, kInk};
  TextStyle phoneme{6.8F * u, 1.4F, kMuted};
  const SpokenWord& spoken = speech.word->spoken;
  const float gap = 7.0F * u;
  float phonemes_width = 0.0F;
  for (const std::string& p : spoken.phonemes) phonemes_width += canvas.width(p, phoneme) + gap;
  phonemes_width -= spoken.phonemes.empty() ? 0.0F : gap;
  const float word_width = canvas.width(speech.word->text, word);
  const float width = std::max(std::max(word_width, phonemes_width) + 20.0F * u, 44.0F * u);
  const Box box = paper(canvas, place, width, 36.0F * u);
  const float middle = 0.5F * (box.left + box.right);
  canvas.text(middle - 0.5F * word_width, box.top + 16.0F * u, speech.word->text, word);

  const int present = phoneme_at(spoken, static_cast<float>(speech.into_word));
  float x = middle - 0.5F * phonemes_width;
  const float baseline = box.top + 29.5F * u;
  for (size_t i = 0; i < spoken.phonemes.size(); ++i) {
    const bool here = static_cast<int>(i) == present;
    const float end = x + canvas.width(spoken.phonemes[i], phoneme);
    if (here) {
      canvas.box({x - 3.0F * u, baseline - 9.4F * u, end + 3.0F * u, baseline + 2.9F * u}, 3.0F * u,
                 kMark);
    }
    phoneme.color = here ? kWhite : kMuted;
    canvas.text(x, baseline, spoken.phonemes[i], phoneme);
    x = end + gap;
  }
}

}  // namespace sample
