#include "model/state_reading.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

// [least, most] of time_step_limit, where infinity is no limit.
Status read_rate_limits(const JsonConfig& config, StateSetup& states) {
  VKF_ASSIGN(const std::vector<double> limits,
             config.get_double_list_or("time_step_limit", {0.0, HUGE_VAL}));
  if (limits.size() != 2 || !(limits[0] <= limits[1])) {
    return invalid_file(message({"[time_step_limit] in ", config.where(), " has ", limits.size(),
                                 " numbers; it must have two in order, the least and the most"}));
  }
  const double most = states.most_rate;
  states.least_rate = static_cast<float>(std::clamp(limits[0], -most, most));
  states.most_rate = static_cast<float>(std::clamp(limits[1], -most, most));
  return {};
}

Result<int64_t> read_head_width(const JsonConfig& config, const MambaKeys& keys,
                                const MambaDefaults& defaults, int64_t inner, int64_t heads) {
  const Result<std::string> text = config.get_string_or(keys.head_width, "");
  const bool by_heads =
      text.ok() && (*text == "auto" || (text->empty() && defaults.head_width == 0));
  if (by_heads) return std::max<int64_t>(1, inner / heads);
  return get_size_or(config, keys.head_width, defaults.head_width, kMostWidth);
}

}  // namespace

Status read_mamba(const JsonConfig& config, const MambaKeys& keys, const MambaDefaults& defaults,
                  int64_t inner, StackConfig& stack) {
  StateSetup& s = stack.states;
  s.kind = StateSetup::Kind::kSelective;
  VKF_ASSIGN(s.heads, get_size_or(config, keys.heads, defaults.heads, kMostWidth));
  VKF_ASSIGN(s.value_width, read_head_width(config, keys, defaults, inner, s.heads));
  VKF_ASSIGN(s.width, get_size_or(config, keys.state, defaults.state, kMostStateWidth));
  VKF_ASSIGN(s.key_heads, get_size_or(config, keys.groups, defaults.groups, kMostWidth));
  VKF_ASSIGN(s.taps, get_size_or(config, keys.taps, 4, kMostConvTaps));
  VKF_ASSIGN(s.bias, config.get_bool_or(keys.conv_bias, true));
  VKF_ASSIGN(s.in_bias, config.get_bool_or(keys.projection_bias, false));
  s.out_bias = s.in_bias;
  VKF_ASSIGN(s.activation, get_activation(config, "hidden_act", "silu"));
  s.gate = GatedNormAttrs::Order::kGateFirst;
  s.norm_epsilon = stack.epsilon;
  VKF_CHECK(read_rate_limits(config, s));
  if (s.values() != inner || s.heads % s.key_heads != 0) {
    return invalid_file(message({"[", keys.heads, "] in ", config.where(), " is ", s.heads,
                                 ", with heads of ", s.value_width, " columns and ", s.key_heads,
                                 " groups; heads and their columns must make up the inner width ",
                                 inner, ", and the groups must divide the heads"}));
  }
  return {};
}

WeightRow taps_row(const StackConfig& stack, const std::string& to, const std::string& from) {
  const StateSetup& s = stack.states;
  std::vector<std::string> sources = {from + ".weight"};
  std::vector<int64_t> rows = {s.taps};
  if (s.bias) {
    sources.push_back(from + ".bias");
    rows.push_back(1);
  }
  WeightRow row = table_row(to + ".mix.taps", std::move(sources), std::move(rows),
                            state_columns(s, stack.width).channels);
  row.axes = WeightRow::Axes::kInOut;
  return row;
}

void add_mamba_rows(const StackConfig& stack, const std::string& to, const std::string& from,
                    WeightTable& table) {
  const StateSetup& s = stack.states;
  table.rows.push_back(biased_row(s.in_bias, to + ".mix.in", {from + "in_proj"},
                                  state_columns(s, stack.width).width, stack.width));
  table.rows.push_back(taps_row(stack, to, from + "conv1d"));
  table.rows.push_back(table_row(to + ".mix.rates", {from + "A_log", from + "dt_bias", from + "D"},
                                 {1, 1, 1}, s.heads));
  if (s.gate != GatedNormAttrs::Order::kGateOnly) {
    table.rows.push_back(table_row(to + ".mix.norm", {from + "norm.weight"}, {s.norm_groups},
                                   s.values() / s.norm_groups));
  }
  table.rows.push_back(
      biased_row(s.out_bias, to + ".mix.out", {from + "out_proj"}, stack.width, s.values()));
  table.rows.back().bias_scale = stack.branch_scale;
}

void add_mamba_layer(const StackConfig& stack, const std::string& to, const std::string& layer,
                     WeightTable& table) {
  add_mamba_rows(stack, to, layer + "mamba.", table);
}

Status read_state_layers(const JsonConfig& config, const std::string& state,
                         const std::string& attention, const std::function<bool(int64_t)>& carries,
                         StackConfig& stack) {
  // Older files name the list differently.
  const char* key = config.has("layer_types") ? "layer_types" : "layers_block_type";
  std::vector<std::string> counted;
  for (int64_t i = 0; i < stack.layers; ++i) counted.push_back(carries(i) ? state : attention);
  VKF_ASSIGN(const std::vector<std::string> types, config.get_string_list_or(key, counted));
  if (static_cast<int64_t>(types.size()) != stack.layers) {
    return invalid_file(message({"[", key, "] in ", config.where(), " has ", types.size(),
                                 " entries for ", stack.layers, " layers; they must be as many"}));
  }
  stack.states.layers.clear();
  for (const std::string& type : types) {
    if (type != state && type != attention) {
      return unsupported(message({"[", key, "] in ", config.where(), " has '", type, "'; ", state,
                                  " and ", attention, " are supported"}));
    }
    stack.states.layers.push_back(type == state ? 1 : 0);
  }
  return {};
}

}  // namespace vkformer
