// What a program makes with vkformer, stage by stage: a device, a model, a session, passes and
// generations. Each stage may be tried again after it failed.
#pragma once

#include <optional>
#include <string>

#include "vkformer/session.h"
#include "vulkan/tweaks.h"

namespace vkformer::testing {

// What the passes gave; equal bits mean an equal text.
struct Outputs {
  std::string run, generation, sliced, sliced_generation, recorded;
  bool operator==(const Outputs& other) const = default;
};

struct Settings {
  std::string model;  // directory
  TensorMap inputs;   // of a forward pass
  TensorMap prompts;  // of a generation
  DeviceOptions device;
  DeviceTweaks tweaks;
};

class World {
 public:
  explicit World(const Settings& settings) : settings_(settings) {}

  enum Stage : int {
    kDevice,
    kLoad,
    kRun,
    kGenerate,
    kSlices,
    kSlicedGeneration,
    kRecord,
    kStages
  };
  static const char* name_of(int stage);
  // Carries out one stage; the ones before it have been. Models that generate nothing pass over the
  // stages that do. An error inside the slices of a pass that did not stop it is in `passed_over`
  // afterwards.
  Status carry_out(int stage, Outputs& outputs);
  std::optional<Error> passed_over;

  // The session alone; then a next one is made. Or everything.
  void end_session() { session_.reset(); }
  void end();

 private:
  Status make_session();
  Status slices(Outputs& outputs);
  Status sliced_generation(Outputs& outputs);
  Status record(Outputs& outputs);
  Status advance_to_end(double microseconds);
  Status record_frames();

  const Settings& settings_;
  std::optional<Device> device_;
  std::optional<Model> model_;
  std::optional<Session> session_;
};

}  // namespace vkformer::testing
