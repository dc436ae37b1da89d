// What families whose layers carry states (blocks/state_layer.h) read from config.json and name in
// files alike.
#pragma once

#include "checkpoint/json_config.h"
#include "model/blocks/stack.h"
#include "weights/weight_table.h"

namespace vkformer {

// Keys of a configuration for the sizes of Mamba-2's layers.
struct MambaKeys {
  const char* heads = "mamba_n_heads";
  const char* head_width = "mamba_d_head";  // a number, or "auto": the inner width by the heads
  const char* state = "mamba_d_state";
  const char* groups = "mamba_n_groups";
  const char* taps = "mamba_d_conv";
  const char* conv_bias = "mamba_conv_bias";
  const char* projection_bias = "mamba_proj_bias";
};
struct MambaDefaults {
  int64_t heads = 128, head_width = 64, state = 256, groups = 1;
};

// Sizes, biases, activation and limits of rates, with the norm after the gate over the whole width.
// `inner` is what heads times their width must be.
Status read_mamba(const JsonConfig& config, const MambaKeys& keys, const MambaDefaults& defaults,
                  int64_t inner, StackConfig& stack);

// Rows of a layer whose modules are in `from`, "model.layers.3.mamba.", under `to`.
void add_mamba_rows(const StackConfig& stack, const std::string& to, const std::string& from,
                    WeightTable& table);

// The same of the module "mamba." of a layer (LlamaKind::add_states).
void add_mamba_layer(const StackConfig& stack, const std::string& to, const std::string& layer,
                     WeightTable& table);

// The convolution's taps (C, 1, K), and where there are biases (C), of the module `from`.
WeightRow taps_row(const StackConfig& stack, const std::string& to, const std::string& from);

// Which layers carry states: those whose entry in `layer_types` is `state`; all others must be
// `attention`. Without the list, `carries` says it of a layer.
Status read_state_layers(const JsonConfig& config, const std::string& state,
                         const std::string& attention, const std::function<bool(int64_t)>& carries,
                         StackConfig& stack);

}  // namespace vkformer
