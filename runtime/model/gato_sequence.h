// The sequence that Gato (Reed et al., 2022) makes of its inputs: which token stands where, and
// what the host knows of each.
//
//   text, then for each time step: patches row by row, continuous and discrete observations, a
//   separator, and the actions of the steps that have them
#pragma once

#include "model/model.h"
#include "ops/mu_law.h"

namespace vkformer {

struct GatoTokens {
  int64_t text = 0;  // ids of text and discrete values: [0, text)
  MuLaw law;         // bins of continuous values: ids [text, text + law.bins)
  int64_t channels = 3;
  int64_t patch = 0;      // pixels a side
  int64_t most_seen = 0;  // observations of one step

  int64_t separator() const { return text + law.bins; }
  int64_t vocabulary() const { return text + law.bins + 1; }
};

// Sizes of a pass, in tokens but for the picture's.
struct GatoSizes {
  int64_t batch = 0;        // B
  int64_t text = 0;         // S
  int64_t steps = 0;        // time steps
  int64_t height = 0;       // pixels; 0: no picture
  int64_t width = 0;        // pixels
  int64_t rows = 0;         // of patches
  int64_t columns = 0;      // of patches
  int64_t continuous = 0;   // observations of a step
  int64_t discrete = 0;     // observations of a step
  int64_t acted_steps = 0;  // steps with actions, the first ones
  int64_t actions = 0;      // of a step

  int64_t patches() const { return rows * columns; }
  int64_t seen() const { return patches() + continuous + discrete; }
  int64_t tokens() const { return text + steps * (seen() + 1) + acted_steps * actions; }
  // The positions up to the last separator and the actions after it.
  int64_t context() const {
    return text + steps * (seen() + 1) + std::min(acted_steps, steps - 1) * actions;
  }
  // Whether actions are chosen after the last separator.
  bool acts() const { return steps > 0 && actions > 0; }

  std::vector<int64_t> words() const;
  static GatoSizes from_words(const std::vector<int64_t>& words, int64_t batch);
};

struct GatoSlot {
  enum class Kind : uint8_t { kText, kPatch, kContinuous, kDiscrete, kSeparator, kAction };
  Kind kind = Kind::kText;
  int64_t step = 0;
  int64_t index = 0;  // among those of its kind in the step
  int64_t seen = -1;  // index among the observations of the step, or -1
};

std::vector<GatoSlot> gato_slots(const GatoSizes& sizes);

// The names of the tensors that read_gato_inputs reads.
std::vector<std::string> gato_input_names();

// Reads text_ids (B, S), pixel_values (B, steps, C, height, width), continuous_observations and
// discrete_observations (B, steps, any), and continuous_actions (B, acted steps, A). Each may be
// absent. Adds the words input_ids (tokens except patches), token_ids and pixel_values. `most` is
// the number of positions.
Result<GatoSizes> read_gato_inputs(const GatoTokens& tokens, int64_t most, const TensorMap& inputs,
                                   FeedWords& words);

}  // namespace vkformer
