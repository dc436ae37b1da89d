// Speech bubbles: the word that a head says and its phonemes, the present one marked.
#pragma once

#include <glm/glm.hpp>

#include "lips/dialogue.h"
#include "overlay/canvas.h"

namespace sample {

// Where a bubble goes: above its head, or, for heads of the front row, on its chest.
struct BubblePlace {
  glm::vec2 anchor{0.0F};  // pixels: where the tail points
  enum class Side : uint8_t { kAbove, kBelow } side = Side::kAbove;
  float scale = 1.0F;       // pixels to a 360th of the picture's height, less for heads far away
  float right_edge = 0.0F;  // of the picture, pixels
};

void draw_bubble(Canvas& canvas, const BubblePlace& place, const Speech& speech, double now);

}  // namespace sample
