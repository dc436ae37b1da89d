// How files name the layers of experts, and the weight rows that they give (blocks/expert_layer.h).
#pragma once

#include "model/blocks/stack.h"
#include "weights/weight_table.h"

namespace vkformer {

// Names are inside the layer, "model.layers.3.": modules without ".weight", tensors with all.
struct ExpertNames {
  // The feed-forward module; the first of which a file has the router counts.
  std::vector<std::string> prefixes = {"mlp."};
  std::string router = "gate";  // module (X, D)
  bool router_bias = false;
  std::string choice = "gate.e_score_correction_bias";  // tensor (X), with choice_bias
  // Modules of one expert, after "experts.3.": the gate, up and down projections.
  std::vector<std::string> up = {"gate_proj", "up_proj"};
  std::string down = "down_proj";
  // Tensors of all experts, [gate | up] and down, which newer files have instead.
  std::string all_up = "experts.gate_up_proj";
  std::string all_down = "experts.down_proj";
  WeightRow::Axes axes = WeightRow::Axes::kOutIn;  // of these tensors, after (X)
  // Gate and up lie by turns in the tensor of all, which has biases "<tensor>_bias" (GPT-OSS).
  // Modules of one expert, which GGUF files give, have biases then, too.
  enum class Turns : uint8_t { kNo, kYes } turns = Turns::kNo;
  // Modules of the shared expert, and of its gate (1, D), inside the feed-forward module or, where
  // it is not empty, inside `shared_module`.
  std::string shared_module = {};
  std::vector<std::string> shared_up = {"shared_experts.gate_proj", "shared_experts.up_proj"};
  std::string shared_down = "shared_experts.down_proj";
  std::string shared_gate = "shared_expert_gate";

  // Leaves the one prefix that the file has, and says whether it has tensors of all experts.
  // `layer`: the name of a layer with experts, "model.layers.3.".
  void resolve(const Checkpoint& checkpoint, const std::string& layer);
  bool stacked = false;
};

// Adds the rows of one layer of experts under `to`, "decoder.3.ffn", from the layer `layer`.
void add_expert_rows(const StackConfig& stack, const ExpertNames& names, const std::string& to,
                     const std::string& layer, WeightTable& table);

}  // namespace vkformer
