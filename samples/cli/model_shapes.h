// Models of real sizes with random weights, made in memory from a seed: no files are needed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "output.h"
#include "vkformer/model.h"
#include "vkformer/model_source.h"

namespace vkformer::cli {

// One way to run a model.
struct ModelRun {
  const char* name;        // "1x128"
  int64_t batch = 1;       //
  int64_t tokens = 128;    // of the source or prompt; pictures and sound: not used
  int64_t new_tokens = 0;  // to generate; 0: a full pass
};

// What a session of that run needs, without inputs.
SessionSizes sizes_of(const ModelRun& run);

struct ModelShape {
  const char* name;
  const char* config;   // config.json
  const char* dtype;    // "F32" or "F16"
  int64_t layers;       // what a '#' in a tensor's name counts, of every stack
  const char* tensors;  // lines of a kind, a name and sizes; model_shapes.cpp says which kinds
  std::vector<ModelRun> runs;
};

std::span<const ModelShape> model_shapes();
// The shape of that name, or null.
const ModelShape* find_model_shape(const std::string& name);
// kRandom: norm gains are from 1 to 1.125; everything else is from 1/64 to 1/32 with a random sign.
// kZeros: for plans, which do not look at weights; random ones of a model take seconds to make.
enum class ShapeWeights : uint8_t { kRandom, kZeros };
ModelSource random_model(const ModelShape& shape, ShapeWeights weights = ShapeWeights::kRandom);

}  // namespace vkformer::cli
