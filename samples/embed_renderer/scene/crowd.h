// The crowd: where heads stand, how they look, and how they move while they speak and listen.
#pragma once

#include <glm/glm.hpp>
#include <vector>

#include "lips/dialogue.h"
#include "scene/gpu_data.h"
#include "scene/hair.h"

namespace sample {

// The camera of a picture.
struct Camera {
  glm::vec3 position{0.0F};
  glm::mat4 view_projection{1.0F};
};

class Crowd {
 public:
  // Precondition: 1 <= heads <= kMostHeads.
  explicit Crowd(int heads);

  int size() const { return static_cast<int>(people_.size()); }
  // Moves everybody on by `seconds`.
  void update(double now, double seconds, const Dialogue& dialogue);

  // Heads by style of hair: the order in which gpu_data() has them, and how many of each.
  std::vector<HeadData> gpu_data() const;
  const std::vector<int>& styles() const { return style_counts_; }
  // Two spheres a head, in the same order: what casts shadows.
  std::vector<glm::vec4> occluders() const;

  // Sees them all at this ratio of width to height.
  Camera camera(float aspect) const;
  // In world space: where a bubble's tail points, above the hair or on the chest.
  glm::vec3 above(int head) const;
  glm::vec3 chest(int head) const;
  bool in_front(int head) const { return people_[static_cast<size_t>(head)].row == 0; }
  float distance_scale(int head, const Camera& camera) const;

 private:
  struct Person {
    int row = 0;
    glm::vec3 place{0.0F};  // of the head's middle at rest
    HairStyle style = HairStyle::kShort;
    HeadData looks{};
    float turn = 0.0F, nod = 0.0F, tilt = 0.0F;  // radians, as they are now
    glm::vec2 gaze{0.0F};
    float brow = 0.0F, smile = 0.0F;
    MouthWeights mouth{};
    float blink = 0.0F;
    float seed = 0.0F;  // 0 to 1
  };
  void place_rows(int heads);
  void listen(Person& person, size_t index, double now, float pace, const Dialogue& dialogue);
  void talk(Person& person, double now, float pace, const Speech& speech);
  static void blink(Person& person, double now);

  std::vector<Person> people_;
  std::vector<size_t> order_;  // of gpu_data
  std::vector<int> style_counts_;
};

}  // namespace sample
