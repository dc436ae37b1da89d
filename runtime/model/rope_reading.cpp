#include "model/rope_reading.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "model/config_reading.h"

namespace vkformer {
namespace {

Result<std::optional<double>> optional_double(const JsonConfig& scope, const std::string& key) {
  if (!scope.has(key)) return std::optional<double>();
  VKF_ASSIGN(double value, scope.get_double(key));
  return std::optional<double>(value);
}

// "rope_type" is the present name of what was "type".
Result<RotaryScalingKind> read_scaling_kind(const JsonConfig& scope) {
  VKF_ASSIGN(std::string older, scope.get_string_or("type", "default"));
  VKF_ASSIGN(std::string name, scope.get_string_or("rope_type", older));
  auto kind = rotary_scaling_from_name(name);
  if (!kind) return kind.error().with_context("[rope_type] in " + scope.where());
  return *kind;
}

Status read_original(const JsonConfig& scope, const RotaryDefaults& defaults,
                     RotaryScaling& scaling) {
  const std::string key = "original_max_position_embeddings";
  VKF_ASSIGN(scaling.original_positions, get_size_or(scope, key, 0, kMostPositions));
  if (defaults.original_positions > 0) scaling.original_positions = defaults.original_positions;
  return {};
}

Status read_yarn(const JsonConfig& scope, RotaryScaling& scaling) {
  VKF_ASSIGN(scaling.beta_fast, scope.get_double_or("beta_fast", scaling.beta_fast));
  VKF_ASSIGN(scaling.beta_slow, scope.get_double_or("beta_slow", scaling.beta_slow));
  VKF_ASSIGN(scaling.mscale, scope.get_double_or("mscale", scaling.mscale));
  VKF_ASSIGN(scaling.mscale_all_dim, scope.get_double_or("mscale_all_dim", scaling.mscale_all_dim));
  VKF_ASSIGN(scaling.truncate, scope.get_bool_or("truncate", scaling.truncate));
  return {};
}

}  // namespace

JsonConfig rotary_scope(const JsonConfig& config) {
  const JsonConfig older = config.object("rope_scaling");
  if (!older.status().ok() || !older.keys().empty()) return older;
  return config.object("rope_parameters");
}

Result<RotaryScaling> read_rotary(const JsonConfig& scope, const RotaryDefaults& defaults) {
  VKF_CHECK(scope.status());
  RotaryScaling scaling{.max_positions = defaults.max_positions};
  VKF_ASSIGN(scaling.kind, read_scaling_kind(scope));
  if (defaults.yarn_is_longrope && scaling.kind == RotaryScalingKind::kYarn) {
    scaling.kind = RotaryScalingKind::kLongrope;
  }
  VKF_ASSIGN(scaling.theta, scope.get_double_or("rope_theta", defaults.theta));
  VKF_ASSIGN(scaling.factor, optional_double(scope, "factor"));
  VKF_ASSIGN(scaling.attention_factor, optional_double(scope, "attention_factor"));
  VKF_ASSIGN(scaling.low_freq_factor,
             scope.get_double_or("low_freq_factor", scaling.low_freq_factor));
  VKF_ASSIGN(scaling.high_freq_factor,
             scope.get_double_or("high_freq_factor", scaling.high_freq_factor));
  VKF_ASSIGN(scaling.short_factor, scope.get_double_list_or("short_factor", {}));
  VKF_ASSIGN(scaling.long_factor, scope.get_double_list_or("long_factor", {}));
  VKF_ASSIGN(scaling.divisors, scope.get_double_list_or("frequency_divisors", {}));
  VKF_CHECK(read_original(scope, defaults, scaling));
  VKF_CHECK(read_yarn(scope, scaling));
  return scaling;
}

Result<RotaryScaling> read_model_rotary(const JsonConfig& config, const RotaryDefaults& defaults,
                                        const std::string& theta_key) {
  const JsonConfig scope = rotary_scope(config);
  for (const char* layers : {"full_attention", "sliding_attention"}) {
    if (scope.has(layers)) {
      return unsupported(
          message({"[rope_parameters] in ", config.where(), " has rotary positions for [", layers,
                   "] alone; this family turns all layers alike"}));
    }
  }
  RotaryDefaults filled = defaults;
  VKF_ASSIGN(filled.theta, config.get_double_or(theta_key, defaults.theta));
  VKF_ASSIGN(filled.original_positions, get_size_or(config, "original_max_position_embeddings",
                                                    defaults.original_positions, kMostPositions));
  return read_rotary(scope, filled);
}

Result<uint32_t> read_rotary_width(const JsonConfig& config, int64_t head, double fallback) {
  const std::string key = "partial_rotary_factor";
  VKF_ASSIGN(const double older, config.get_double_or(key, fallback));
  VKF_ASSIGN(const double part, rotary_scope(config).get_double_or(key, older));
  if (!(part >= 0.0 && part <= 1.0)) {
    return invalid_file(message(
        {"[", key, "] in ", config.where(), " is ", part, ", but must lie between 0 and 1"}));
  }
  return static_cast<uint32_t>(std::floor(static_cast<double>(head) * part));
}

Status check_rotary_scaling(const RotaryScaling& scaling, int64_t rotary_width,
                            const std::string& where) {
  // A context of one token and one beyond any training: both sets of longrope's divisors.
  for (int64_t tokens : {int64_t{1}, kMostPositions + 1}) {
    const auto made = rotary_frequencies(scaling, rotary_width, tokens);
    if (made.ok()) continue;
    return Error{ErrorCode::kInvalidFile,
                 "Rotary positions in " + where + ": " + made.error().message};
  }
  return {};
}

int64_t stretched_positions(const RotaryScaling& scaling, int64_t most) {
  if (scaling.kind == RotaryScalingKind::kDefault || !scaling.factor) return scaling.max_positions;
  const int64_t from =
      scaling.original_positions > 0 ? scaling.original_positions : scaling.max_positions;
  const double stretched = std::floor(static_cast<double>(from) * *scaling.factor);
  const auto limit = static_cast<double>(most);
  return std::max(scaling.max_positions, static_cast<int64_t>(std::clamp(stretched, 0.0, limit)));
}

}  // namespace vkformer
