// The tuner: times the kernels of matrix products that a device can run, and keeps the fastest in a
// file beside the pipeline cache. A device made with DeviceOptions::tuning on uses them.
//
// Threading: independent calls; timings want the device for themselves. Lifetime: nothing outlives
// a call but the file. The file holds for one device, driver, tier and build of vkformer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vkformer/device.h"
#include "vkformer/export.h"

namespace vkformer {

struct TuneOptions {
  // kQuick: one shape for each number of rows and fewer rounds, good for a first look.
  enum class Effort : uint8_t { kQuick, kFull } effort = Effort::kFull;
  double ms_per_choice = 0;  // measured time for each choice, milliseconds; 0: as the effort says
  // A faster kernel takes the usual one's place from this gain on: its share of time saved.
  double least_gain = 0.05;
};

// One kernel and tile that was tried.
struct TunedCandidate {
  std::string choice;  // "rows 8x1"
  // Median of its rounds, all shapes together; absent: its results were not those of the usual one.
  std::optional<double> ms;
};

// One number of rows and one dtype of weights.
struct TunedChoice {
  std::string shape;   // "8x1024x1024 f16": rows, output features, input features, weights
  std::string usual;   // what is used without tuning: "rows 8x1"
  std::string winner;  // the same, or what is faster
  double usual_ms = 0;
  double winner_ms = 0;
  int tried = 0;                           // kernels and tiles, the usual one included
  std::vector<TunedCandidate> candidates;  // what was tried, the usual one first
};

struct TuneReport {
  std::vector<TunedChoice> choices;
  std::string file;  // written; empty: the device keeps no cache, so nothing is stored
};

VKFORMER_API Result<TuneReport> tune_device(const Device& device, const TuneOptions& options = {});

}  // namespace vkformer
