// Rotary position embeddings as config.json describes them, in the spelling of today and the one
// before version 5 of the library:
//   rope_parameters {rope_type, rope_theta, factor, ...}, for each type of layer or once
//   rope_theta beside rope_scaling {type or rope_type, factor, ...}
// GGUF files have frequency_divisors (r/2) beside a rope_type of default.
#pragma once

#include "checkpoint/json_config.h"
#include "ops/rotary_table.h"

namespace vkformer {

// What stands in for keys that the object with the rotary parameters lacks.
struct RotaryDefaults {
  double theta = 10000.0;
  int64_t max_positions = 0;       // tokens: the configuration's max_position_embeddings
  int64_t original_positions = 0;  // tokens: its original_max_position_embeddings, which wins
  bool yarn_is_longrope = false;   // older files of Phi-3 call it so
};

// The nested object with the parameters: rope_scaling if it has keys, else rope_parameters; without
// keys where a configuration has neither.
JsonConfig rotary_scope(const JsonConfig& config);

// The parameters in one such object: rotary_scope's, or that of one layer type within it.
Result<RotaryScaling> read_rotary(const JsonConfig& scope, const RotaryDefaults& defaults);

// Those of a model whose layers all turn alike; `theta_key` is the old name of rope_theta.
// kUnsupported where the configuration has parameters for each type of layer.
Result<RotaryScaling> read_model_rotary(const JsonConfig& config, const RotaryDefaults& defaults,
                                        const std::string& theta_key = "rope_theta");

// The first columns of each head (`head` wide) that are rotated: partial_rotary_factor of
// rotary_scope or of the configuration, else `fallback`, times the head's width.
Result<uint32_t> read_rotary_width(const JsonConfig& config, int64_t head, double fallback);

// Success if a table of rotary width r can be made of the parameters, for contexts of any length.
Status check_rotary_scaling(const RotaryScaling& scaling, int64_t rotary_width,
                            const std::string& where);

// Tokens that a model with these parameters can take: its max_position_embeddings, or what they are
// stretched to.
int64_t stretched_positions(const RotaryScaling& scaling, int64_t most);

}  // namespace vkformer
