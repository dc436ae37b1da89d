#include "scene/crowd.h"

#include <algorithm>
#include <cmath>
#include <glm/gtc/matrix_transform.hpp>
#include <iterator>

#include "scene/head_mesh.h"
#include "scene/head_shape.h"

namespace sample {

namespace {

constexpr float kBetween = 2.62F, kBehind = 2.2F, kRise = 1.42F;
constexpr float kNeckPivot = -0.80F;  // heads turn about the top of the neck
constexpr float kFirstHeight = 1.95F;
constexpr float kFieldOfView = 0.42F;
constexpr float kGraphShare = 0.16F;  // of the crowd's height

// Linear light of a color as one picks it on a screen.
glm::vec3 paint(int rgb) {
  const auto channel = [rgb](int shift) {
    return std::pow(static_cast<float>((rgb >> shift) & 255) / 255.0F, 2.2F);
  };
  return {channel(16), channel(8), channel(0)};
}

// What people can look like; combined by index, so that any number of heads differ.
constexpr int kSkins[] = {0xE5AC84, 0x7C4A2D, 0xC98A5E, 0xEBB798, 0x573320, 0xB0714A, 0xDB9C70};
constexpr int kHairs[] = {0x3A241A, 0x1D1716, 0x8C4A22, 0xC9984E, 0x241B1A,
                          0x5A2F1C, 0xA8431F, 0x4A3A34, 0x8E949C};
constexpr int kCloths[] = {0x2E86C1, 0xE4572E, 0x17A398, 0xF2B134, 0x7D4FA8,
                           0xD64570, 0x4C9F50, 0x34495E, 0xE07A5F, 0x3D7EA6};
constexpr int kIrises[] = {0x4F6D38, 0x5B3A1E, 0x3C6E9E, 0x6B4A26, 0x3B2A1C, 0x2F7F86};
constexpr HairStyle kStyles[] = {HairStyle::kQuiff, HairStyle::kBob,   HairStyle::kShort,
                                 HairStyle::kBun,   HairStyle::kCurls, HairStyle::kFringe};

template <class T, size_t n>
const T& pick(const T (&list)[n], size_t index, size_t stride) {
  return list[(index * stride + index / n) % n];
}

// A number from 0 to 1 that looks random.
float noise(float x) {
  const float wave = std::sin(x * 12.9898F + 4.1414F) * 43758.547F;
  return wave - std::floor(wave);
}

// Goes a share of the way that does not depend on how often it is called.
template <class T>
void approach(T& value, const T& target, float pace) {
  value += (target - value) * pace;
}

float pace_of(double seconds, double settling) {
  return static_cast<float>(1.0 - std::exp(-seconds / settling));
}

}  // namespace

Crowd::Crowd(int heads) : people_(static_cast<size_t>(heads)) {
  place_rows(heads);
  for (size_t i = 0; i < people_.size(); ++i) {
    Person& person = people_[i];
    person.seed = noise(static_cast<float>(i) + 0.5F);
    person.style = pick(kStyles, i, 1);
    const glm::vec3 skin = paint(kSkins[(5 * i + 2) % std::size(kSkins)]);
    const bool dark = skin.y < 0.25F;
    const glm::vec3 hair = dark ? paint(kHairs[i % 2]) : paint(pick(kHairs, i, 2));
    person.looks.skin = {skin, dark ? 0.35F : 0.75F};
    person.looks.hair = {hair, 0.7F};
    person.looks.cloth = {paint(pick(kCloths, i, 3)), i % 4 == 2 ? 1.0F : 0.0F};
    person.looks.iris = {paint(pick(kIrises, i, 5)), 0.36F + 0.16F * noise(person.seed + 7.0F)};
    person.looks.lips = {glm::mix(skin * glm::vec3(0.86F, 0.5F, 0.48F), paint(0xB5404A),
                                  0.15F + 0.45F * noise(person.seed + 3.0F)),
                         0.0F};
  }
  for (int style = 0; style < kHairStyles; ++style) {
    const size_t before = order_.size();
    for (size_t i = 0; i < people_.size(); ++i) {
      if (static_cast<int>(people_[i].style) == style) order_.push_back(i);
    }
    style_counts_.push_back(static_cast<int>(order_.size() - before));
  }
}

void Crowd::place_rows(int heads) {
  // Rows grow by one from the front to the back, as in a choir.
  int rows = 1;
  while (rows * (rows + 3) < heads) ++rows;
  int left = heads, next = 0;
  for (int row = 0; row < rows; ++row) {
    const int rest = rows - row;
    int count = (left - rest * (rest - 1) / 2) / rest;
    if (row == rows - 1) count = left;
    for (int i = 0; i < count; ++i) {
      Person& person = people_[static_cast<size_t>(next++)];
      const float x = static_cast<float>(i) - 0.5F * static_cast<float>(count - 1);
      const float away = 0.05F * x * x;  // a slight arc
      person.row = row;
      person.place = {x * kBetween, kFirstHeight + kRise * static_cast<float>(row),
                      -kBehind * static_cast<float>(row) + away};
    }
    left -= count;
  }
}

void Crowd::blink(Person& person, double now) {
  const double every = 2.4 + 2.6 * person.seed;
  const double since = std::fmod(now + 5.0 * person.seed, every);
  const double closing = std::clamp(since / 0.07, 0.0, 1.0);
  const double opening = std::clamp((since - 0.09) / 0.13, 0.0, 1.0);
  person.blink = static_cast<float>(closing * (1.0 - opening * opening * (3.0 - 2.0 * opening)));
}

void Crowd::listen(Person& person, size_t index, double now, float pace, const Dialogue& dialogue) {
  const int speaker = dialogue.speaker_near(static_cast<int>(index));
  glm::vec2 towards(0.10F * std::sin(static_cast<float>(now) * 0.6F + 6.0F * person.seed), 0.0F);
  if (speaker >= 0 && speaker != static_cast<int>(index)) {
    const glm::vec3 to = people_[static_cast<size_t>(speaker)].place - person.place;
    // Nobody turns round for it; the camera faces them all.
    towards.x = std::clamp(0.6F * std::atan2(to.x, 4.0F + std::abs(to.z)), -0.55F, 0.55F);
    towards.y = std::clamp(0.10F * to.y, -0.12F, 0.12F);
  }
  approach(person.turn, 0.75F * towards.x, 0.5F * pace);
  approach(person.nod, -0.5F * towards.y, 0.5F * pace);
  approach(person.gaze, glm::vec2(0.55F * towards.x, towards.y), 1.6F * pace);
  approach(person.tilt, 0.07F * std::sin(static_cast<float>(now) * 0.5F + 20.0F * person.seed),
           0.5F * pace);
  approach(person.brow, 0.0F, pace);
  approach(person.smile, 0.25F + 0.45F * noise(person.seed), pace);
}

void Crowd::talk(Person& person, double now, float pace, const Speech& speech) {
  const float time = static_cast<float>(now);
  const float energy = person.mouth[0] + 0.5F * person.mouth[2];
  const float sway = std::sin(time * 2.1F + 9.0F * person.seed);
  const bool waits = speech.word == nullptr;
  approach(person.turn, 0.10F * sway - 0.03F * person.place.x, 0.6F * pace);
  approach(person.nod, waits ? -0.07F : 0.10F * energy - 0.04F, pace);
  approach(person.tilt, 0.06F * std::sin(time * 1.3F + 4.0F * person.seed), 0.6F * pace);
  // Who thinks looks up.
  const glm::vec2 gaze = waits ? glm::vec2(0.25F, 0.30F) : glm::vec2(-0.05F * sway, 0.0F);
  approach(person.gaze, gaze, 1.5F * pace);
  approach(person.brow, waits ? 0.7F : 0.15F + 0.6F * energy, pace);
  approach(person.smile, 0.15F, pace);
}

void Crowd::update(double now, double seconds, const Dialogue& dialogue) {
  const float pace = pace_of(seconds, 0.16);
  for (size_t i = 0; i < people_.size(); ++i) {
    Person& person = people_[i];
    const Speech speech = dialogue.speech_of(static_cast<int>(i), now);
    if (speech.line != nullptr) {
      talk(person, now, pace, speech);
    } else {
      listen(person, i, now, pace, dialogue);
    }
    person.mouth = speech.word != nullptr
                       ? mouth_at(speech.word->spoken, static_cast<float>(speech.into_word))
                       : MouthWeights{};
    auto& smile = person.mouth[static_cast<size_t>(MouthShape::kSmile)];
    smile += person.smile;
    blink(person, now);
  }
}

std::vector<HeadData> Crowd::gpu_data() const {
  std::vector<HeadData> heads;
  for (const size_t index : order_) {
    const Person& person = people_[index];
    HeadData head = person.looks;
    head.body = glm::translate(glm::mat4(1.0F), person.place);
    head.body = glm::rotate(head.body, 0.25F * person.turn, glm::vec3(0.0F, 1.0F, 0.0F));
    glm::mat4 pose = glm::translate(head.body, glm::vec3(0.0F, kNeckPivot, -0.1F));
    pose = glm::rotate(pose, 0.75F * person.turn, glm::vec3(0.0F, 1.0F, 0.0F));
    pose = glm::rotate(pose, person.nod, glm::vec3(1.0F, 0.0F, 0.0F));
    pose = glm::rotate(pose, person.tilt, glm::vec3(0.0F, 0.0F, 1.0F));
    head.head = glm::translate(pose, glm::vec3(0.0F, -kNeckPivot, 0.1F));
    head.look = {person.gaze, person.blink, person.brow};
    const MouthWeights& m = person.mouth;
    head.mouth_a = {m[0], m[1], m[2], m[3]};
    head.mouth_b = {m[4], m[5], m[6], m[7]};
    heads.push_back(head);
  }
  return heads;
}

std::vector<glm::vec4> Crowd::occluders() const {
  std::vector<glm::vec4> spheres;
  for (const size_t index : order_) {
    const glm::vec3& place = people_[index].place;
    spheres.emplace_back(place + glm::vec3(0.0F, 0.08F, 0.0F), 0.95F);
    spheres.emplace_back(place + glm::vec3(0.0F, -1.95F, -0.1F), 0.85F);
  }
  return spheres;
}

Camera Crowd::camera(float aspect) const {
  glm::vec3 low(1e9F), high(-1e9F);
  for (const Person& person : people_) {
    low = glm::min(low, person.place);
    high = glm::max(high, person.place);
  }
  // Room for shoulders at the sides, bubbles above, chests and the graph below.
  const float half_width = 0.5F * (high.x - low.x) + 1.35F;
  const float top = high.y + 2.0F;
  const float lowest = low.y - 1.80F, bottom = lowest - kGraphShare * (top - lowest);
  const float slope = std::tan(0.5F * kFieldOfView);
  const float distance = std::max(0.5F * (top - bottom) / slope, half_width / (slope * aspect));
  const float middle = 0.5F * (top + bottom);
  Camera camera;
  camera.position = {0.0F, middle + 0.10F * distance, high.z + distance};
  const glm::mat4 view = glm::lookAt(camera.position, glm::vec3(0.0F, middle, low.z * 0.4F),
                                     glm::vec3(0.0F, 1.0F, 0.0F));
  glm::mat4 projection =
      glm::perspectiveRH_ZO(kFieldOfView, aspect, 0.5F * distance, 2.0F * distance + 20.0F);
  projection[1][1] *= -1.0F;  // Vulkan's y points down
  camera.view_projection = projection * view;
  return camera;
}

glm::vec3 Crowd::above(int head) const {
  return people_[static_cast<size_t>(head)].place + glm::vec3(0.0F, 1.30F, 0.0F);
}

glm::vec3 Crowd::chest(int head) const {
  return people_[static_cast<size_t>(head)].place + glm::vec3(0.0F, -1.12F, 0.6F);
}

float Crowd::distance_scale(int head, const Camera& camera) const {
  const float nearest = glm::length(camera.position - people_.front().place);
  return nearest / glm::length(camera.position - people_[static_cast<size_t>(head)].place);
}

}  // namespace sample
