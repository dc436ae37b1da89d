#include "model/expert_names.h"

#include "model/weight_rows.h"

namespace vkformer {
namespace {

WeightRow experts_of(const StackConfig& stack, const ExpertNames& names, const std::string& to,
                     const std::string& module, bool up) {
  const ExpertSetup& setup = stack.experts;
  const bool gated = stack.gate == StackConfig::Gate::kYes;
  const auto experts = static_cast<int64_t>(setup.route.experts);
  WeightRow row =
      up ? expert_row(to + ".experts.up", experts, (gated ? 2 : 1) * setup.ffn, stack.width)
         : expert_row(to + ".experts.down", experts, stack.width, setup.ffn);
  if (names.stacked) {
    row.stack = WeightRow::Stack::kStacked;
    row.sources = {module + (up ? names.all_up : names.all_down)};
    row.axes = names.axes;
    if (names.turns == ExpertNames::Turns::kYes) row.biases = {row.sources[0] + "_bias"};
  } else {
    const std::vector<std::string> modules = up ? names.up : std::vector{names.down};
    for (int64_t x = 0; x < experts; ++x) {
      for (const std::string& of : modules) {
        const std::string one = module + "experts." + std::to_string(x) + "." + of;
        row.sources.push_back(one + ".weight");
        if (names.turns == ExpertNames::Turns::kYes) row.biases.push_back(one + ".bias");
      }
    }
  }
  const bool by_turns = names.stacked && names.turns == ExpertNames::Turns::kYes;
  return up && gated && !by_turns ? in_gate_pairs(std::move(row)) : row;
}

}  // namespace

void ExpertNames::resolve(const Checkpoint& checkpoint, const std::string& layer) {
  for (const std::string& prefix : prefixes) {
    if (checkpoint.find(layer + prefix + router + ".weight") == nullptr) continue;
    prefixes = {std::string(prefix)};
    break;
  }
  prefixes.resize(1);
  const TensorView* all = checkpoint.find(layer + prefixes[0] + all_up);
  stacked = all != nullptr;
  // Quantized ones are (X, N, K), whatever others are.
  if (stacked && all->blocks != nullptr) axes = WeightRow::Axes::kOutIn;
}

void add_expert_rows(const StackConfig& stack, const ExpertNames& names, const std::string& to,
                     const std::string& layer, WeightTable& table) {
  const ExpertSetup& setup = stack.experts;
  const std::string module = layer + names.prefixes[0];
  const auto experts = static_cast<int64_t>(setup.route.experts);
  std::vector<std::string> routers = {module + names.router};
  if (setup.shared_gated) routers.push_back(module + names.shared_gate);
  const auto make = names.router_bias ? linear_row : plain_linear_row;
  WeightRow router =
      make(to + ".router", routers, experts + (setup.shared_gated ? 1 : 0), stack.width);
  if (setup.shared_gated) router.source_rows = {experts, 1};
  router.format = WeightRow::Format::kExact;
  table.rows.push_back(std::move(router));
  if (setup.choice_bias) {
    table.rows.push_back(table_row(to + ".choice", {module + names.choice}, {1}, experts));
  }
  table.rows.push_back(experts_of(stack, names, to, module, true));
  table.rows.push_back(experts_of(stack, names, to, module, false));
  if (setup.shared_ffn == 0) return;
  const std::string shared_in = names.shared_module.empty() ? module : layer + names.shared_module;
  std::vector<std::string> up;
  for (const std::string& of : names.shared_up) up.push_back(shared_in + of);
  const bool gated = stack.gate == StackConfig::Gate::kYes;
  WeightRow shared =
      plain_linear_row(to + ".shared.up", up, (gated ? 2 : 1) * setup.shared_ffn, stack.width);
  table.rows.push_back(gated ? in_gate_pairs(std::move(shared)) : std::move(shared));
  table.rows.push_back(plain_linear_row(to + ".shared.down", {shared_in + names.shared_down},
                                        stack.width, setup.shared_ffn));
}

}  // namespace vkformer
