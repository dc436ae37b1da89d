#include "ops/rotary_table.h"
#include "base/message.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vkformer {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 28;
constexpr double kTurn = 2.0 * std::numbers::pi;

Error table_error(const std::string& message) {
  return invalid_argument("[rotary_table] " + message);
}

bool is_positive(double value) {
  return std::isfinite(value) && value > 0;
}

Status check_positive(const char* name, double value) {
  if (is_positive(value)) return {};
  return table_error(std::string(name) + " is " + std::to_string(value) +
                     ", but must be a finite number above 0.");
}

Status check_width(int64_t width) {
  if (width > 0 && width % 2 == 0 && width <= kMostElements) return {};
  return table_error("The rotary width is " + std::to_string(width) +
                     ", but must be even, above 0 and at most " + std::to_string(kMostElements) +
                     ".");
}

double original_positions(const RotaryScaling& s) {
  return static_cast<double>(s.original_positions > 0 ? s.original_positions : s.max_positions);
}

// By the configuration, or else how far the longest context exceeds the original one.
Result<double> factor_of(const RotaryScaling& s) {
  const bool may_be_absent =
      s.kind == RotaryScalingKind::kYarn || s.kind == RotaryScalingKind::kLongrope;
  if (!s.factor && !may_be_absent) {
    return table_error("This kind of scaling needs a factor, but there is none; give one.");
  }
  const double factor =
      s.factor ? *s.factor : static_cast<double>(s.max_positions) / original_positions(s);
  VKF_CHECK(check_positive("factor", factor));
  return factor;
}

// Su et al., 2021, section 3.2: f_i = theta^(-2i/r).
std::vector<double> plain_frequencies(double theta, int64_t width) {
  std::vector<double> f(static_cast<size_t>(width / 2));
  for (size_t i = 0; i < f.size(); ++i) {
    f[i] = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
  }
  return f;
}

// Peng et al., 2023, section 3.3. Theta grows so that the slowest frequency is divided by how far
// the sequence goes beyond the trained context, and the fastest one stays.
Result<RotaryFrequencies> dynamic_frequencies(const RotaryScaling& s, int64_t width,
                                              int64_t length) {
  VKF_ASSIGN(const double factor, factor_of(s));
  VKF_CHECK(check_positive("max_position_embeddings", static_cast<double>(s.max_positions)));
  double theta = s.theta;
  if (width > 2) {  // a single frequency is theta^0 whatever theta is
    const auto most = static_cast<double>(s.max_positions);
    const double stretch = factor * std::max(static_cast<double>(length), most) / most;
    theta *= std::pow(stretch - (factor - 1.0),
                      static_cast<double>(width) / static_cast<double>(width - 2));
  }
  VKF_CHECK(check_positive("The stretched theta", theta));
  return RotaryFrequencies{plain_frequencies(theta, width), 1.0};
}

// Peng et al., 2023, equation 22 and its generalization by DeepSeek.
double yarn_scale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// Peng et al., 2023, section 3.2. Frequencies that turn more than beta_fast times within the
// original context stay. Those below beta_slow are divided by the factor. A ramp over the index
// joins them.
Result<RotaryFrequencies> yarn_frequencies(const RotaryScaling& s, int64_t width) {
  VKF_ASSIGN(const double factor, factor_of(s));
  const double original = original_positions(s);
  VKF_CHECK(check_positive("original_max_position_embeddings", original));
  VKF_CHECK(check_positive("beta_fast", s.beta_fast));
  VKF_CHECK(check_positive("beta_slow", s.beta_slow));
  if (!(s.theta > 1.0)) {
    return table_error("theta is " + number_text(s.theta) + ", but yarn needs one above 1.");
  }
  // The index, as a real number, whose frequency turns that often within the original context.
  const auto index_of = [&](double turns) {
    return static_cast<double>(width) * std::log(original / (turns * kTurn)) /
           (2.0 * std::log(s.theta));
  };
  double low = index_of(s.beta_fast);
  double high = index_of(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(width - 1));
  if (low == high) high += 0.001;  // no ramp is a step
  RotaryFrequencies result{plain_frequencies(s.theta, width), 1.0};
  for (size_t i = 0; i < result.radians.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    result.radians[i] *= (1.0 - divided) + divided / factor;
  }
  result.scale = yarn_scale(factor, 1.0);
  if (s.mscale != 0 && s.mscale_all_dim != 0) {
    result.scale = yarn_scale(factor, s.mscale) / yarn_scale(factor, s.mscale_all_dim);
  }
  return result;
}

// Llama 3.1. Frequencies are kept where their wavelength is short against the original context.
// They are divided by the factor where it is long, and mixed between.
Result<RotaryFrequencies> llama3_frequencies(const RotaryScaling& s, int64_t width) {
  VKF_ASSIGN(const double factor, factor_of(s));
  const double original = original_positions(s);
  VKF_CHECK(check_positive("original_max_position_embeddings", original));
  VKF_CHECK(check_positive("low_freq_factor", s.low_freq_factor));
  VKF_CHECK(check_positive("high_freq_factor", s.high_freq_factor));
  RotaryFrequencies result{plain_frequencies(s.theta, width), 1.0};
  for (double& f : result.radians) {
    const double turns = original * f / kTurn;  // within the original context
    if (turns > s.high_freq_factor) continue;
    if (turns < s.low_freq_factor || s.high_freq_factor == s.low_freq_factor) {
      f /= factor;
      continue;
    }
    const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    f *= (1.0 - kept) / factor + kept;
  }
  return result;
}

// Divides each frequency by its own number, where there are numbers.
Status divide_frequencies(const char* name, const std::vector<double>& divisors,
                          std::vector<double>& radians) {
  if (divisors.empty()) return {};
  if (divisors.size() != radians.size()) {
    return table_error(std::string(name) + " has " + std::to_string(divisors.size()) +
                       " numbers, but the rotary width " + std::to_string(2 * radians.size()) +
                       " needs " + std::to_string(radians.size()) + ".");
  }
  for (size_t i = 0; i < divisors.size(); ++i) {
    VKF_CHECK(check_positive(name, divisors[i]));
    radians[i] /= divisors[i];
  }
  return {};
}

// Ding et al., 2024: a divisor for each frequency, found by search, one set for sequences within
// the original context and one for longer ones.
Result<RotaryFrequencies> longrope_frequencies(const RotaryScaling& s, int64_t width,
                                               int64_t length) {
  VKF_ASSIGN(const double factor, factor_of(s));
  const double original = original_positions(s);
  VKF_CHECK(check_positive("original_max_position_embeddings", original));
  const bool is_long = static_cast<double>(length) > original;
  const std::vector<double>& divisors = is_long ? s.long_factor : s.short_factor;
  const char* name = is_long ? "long_factor" : "short_factor";
  RotaryFrequencies result{plain_frequencies(s.theta, width), 1.0};
  if (divisors.empty()) {
    return table_error(message({name, " has 0 numbers, but the rotary width ", width, " needs ",
                                result.radians.size(), "."}));
  }
  VKF_CHECK(divide_frequencies(name, divisors, result.radians));
  if (factor > 1.0 && !s.attention_factor) {
    if (original < 2.0) {
      return table_error(
          "original_max_position_embeddings is 1, but must be above it for the "
          "scale of longrope; give an attention_factor.");
    }
    result.scale = std::sqrt(1.0 + std::log(factor) / std::log(original));
  }
  return result;
}

Result<RotaryFrequencies> scaled_frequencies(const RotaryScaling& s, int64_t width,
                                             int64_t length) {
  switch (s.kind) {
    case RotaryScalingKind::kDynamic:
      return dynamic_frequencies(s, width, length);
    case RotaryScalingKind::kYarn:
      return yarn_frequencies(s, width);
    case RotaryScalingKind::kLlama3:
      return llama3_frequencies(s, width);
    case RotaryScalingKind::kLongrope:
      return longrope_frequencies(s, width, length);
    case RotaryScalingKind::kDefault:
    case RotaryScalingKind::kLinear:
      break;
  }
  RotaryFrequencies result{plain_frequencies(s.theta, width), 1.0};
  if (s.kind == RotaryScalingKind::kDefault) {
    VKF_CHECK(divide_frequencies("frequency_divisors", s.divisors, result.radians));
    if (s.frequencies.empty()) return result;
    if (s.frequencies.size() != result.radians.size()) {
      return table_error(
          message({"There are ", s.frequencies.size(), " frequencies, but the rotary width ", width,
                   " needs ", result.radians.size(), "."}));
    }
    result.radians = s.frequencies;
    return result;
  }
  VKF_ASSIGN(const double factor, factor_of(s));
  for (double& f : result.radians) f /= factor;
  return result;
}

bool depends_on_length(RotaryScalingKind kind) {
  return kind == RotaryScalingKind::kDynamic || kind == RotaryScalingKind::kLongrope;
}

void write_row(const RotaryFrequencies& frequencies, double position, float* row) {
  const size_t half = frequencies.radians.size();
  for (size_t i = 0; i < half; ++i) {
    const double angle = position * frequencies.radians[i];
    row[i] = static_cast<float>(frequencies.scale * std::cos(angle));
    row[half + i] = static_cast<float>(frequencies.scale * std::sin(angle));
  }
}

}  // namespace

Result<RotaryScalingKind> rotary_scaling_from_name(const std::string& name) {
  if (name == "default") return RotaryScalingKind::kDefault;
  if (name == "linear") return RotaryScalingKind::kLinear;
  if (name == "dynamic") return RotaryScalingKind::kDynamic;
  if (name == "yarn") return RotaryScalingKind::kYarn;
  if (name == "llama3") return RotaryScalingKind::kLlama3;
  if (name == "longrope" || name == "su") return RotaryScalingKind::kLongrope;
  return unsupported(
      message({"[rotary_table] The scaling '", name,
               "' is not known; use default, linear, dynamic, yarn, llama3 or longrope."}));
}

Result<RotaryFrequencies> rotary_frequencies(const RotaryScaling& scaling, int64_t rotary_width,
                                             int64_t sequence_length) {
  VKF_CHECK(check_width(rotary_width));
  VKF_CHECK(check_positive("theta", scaling.theta));
  VKF_ASSIGN(RotaryFrequencies result, scaled_frequencies(scaling, rotary_width, sequence_length));
  const bool has_scale =
      scaling.kind == RotaryScalingKind::kYarn || scaling.kind == RotaryScalingKind::kLongrope;
  if (has_scale && scaling.attention_factor) result.scale = *scaling.attention_factor;
  VKF_CHECK(check_positive("attention_factor", result.scale));
  return result;
}

int64_t steady_positions(const RotaryScaling& scaling) {
  if (scaling.kind == RotaryScalingKind::kDynamic) return scaling.max_positions;
  if (!depends_on_length(scaling.kind)) return 0;
  return static_cast<int64_t>(original_positions(scaling));
}

Result<std::vector<float>> rotary_table(const RotaryScaling& scaling,
                                        const RotaryTableAttrs& attrs) {
  VKF_CHECK(check_width(attrs.rotary_width));
  if (attrs.positions < 0 || attrs.positions > kMostElements / attrs.rotary_width) {
    return table_error("The table has " + std::to_string(attrs.positions) + " rows of width " +
                       std::to_string(attrs.rotary_width) +
                       ", but the number of rows must not be negative and their product at most " +
                       std::to_string(kMostElements) + ".");
  }
  const int64_t first_pass = attrs.sequence_length > 0 ? attrs.sequence_length : attrs.positions;
  VKF_ASSIGN(RotaryFrequencies frequencies,
             rotary_frequencies(scaling, attrs.rotary_width, first_pass));
  std::vector<float> table(static_cast<size_t>(attrs.positions * attrs.rotary_width));
  for (int64_t p = 0; p < attrs.positions; ++p) {
    if (p >= first_pass && depends_on_length(scaling.kind)) {
      VKF_ASSIGN(frequencies, rotary_frequencies(scaling, attrs.rotary_width, p + 1));
    }
    write_row(frequencies, static_cast<double>(p),
              &table[static_cast<size_t>(p * attrs.rotary_width)]);
  }
  return table;
}

std::vector<float> rotary_rows(const RotaryFrequencies& frequencies,
                               std::span<const int64_t> positions) {
  const size_t width = 2 * frequencies.radians.size();
  std::vector<float> rows(positions.size() * width);
  if (width == 0) return rows;
  for (size_t n = 0; n < positions.size(); ++n) {
    write_row(frequencies, static_cast<double>(positions[n]), &rows[n * width]);
  }
  return rows;
}

}  // namespace vkformer
