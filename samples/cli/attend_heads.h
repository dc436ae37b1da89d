// `vkformer inspect --attention`: entropy and score variance of every head.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend_inputs.h"
#include "command_line.h"

namespace vkformer::cli {

struct HeadsOptions {
  bool asked = false;
  std::vector<std::string> inputs;  // texts, or paths; empty: something built in
  std::string picture;
  std::vector<TokenId> ids;
  std::optional<MapKind> kind;  // absent: all
  AttentionHeadOptions limits;
  ModelOptions load;
};

// Adds the options of `inspect` that --attention needs.
void add_heads_options(CLI::App& command, HeadsOptions& options);

// Runs the inputs and prints the table.
int run_heads(const CommonOptions& common, const std::string& model, const HeadsOptions& options);

}  // namespace vkformer::cli
