// rotary_table: the angles of rotary position embeddings (Su et al., 2021), and the ways of
// stretching them over longer contexts. Feeds the operator rotary.
//
//   angle(p, i) = p f_i, f_i = theta^(-2i/r), i < r/2, scaled as RotaryScaling says
//   row p: scale cos(angle(p, 0 ... r/2 - 1)), then scale sin(...)                   -> (P, r)
//
// Computed on the host, in double. There is no shader by design, because GLSL promises sine and
// cosine only to 2^-11 absolute. The table is made once per model or prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"

namespace vkformer {

enum class RotaryScalingKind : uint8_t {
  kDefault,   // none
  kLinear,    // positions divided by the factor (Chen et al., 2023)
  kDynamic,   // NTK-aware, by the sequence's length: a larger theta (Peng et al., 2023)
  kYarn,      // NTK by parts, with a temperature (Peng et al., 2023)
  kLlama3,    // by wavelength, with a smooth middle (Llama 3.1)
  kLongrope,  // a searched divisor for every frequency (Ding et al., 2024)
};

// The kind that configurations call by this name ("su" is an old name of longrope).
Result<RotaryScalingKind> rotary_scaling_from_name(const std::string& name);

// The values are those of the same names in Hugging Face configurations. Fields that a kind does
// not name are not read for it.
struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::kDefault;
  double theta = 10000.0;
  std::vector<double> frequencies;  // (r/2), default: radians per token; empty: those of theta
  std::vector<double> divisors;     // (r/2), default: divide the frequencies of theta; empty: 1
  // How far the context is stretched. Yarn and longrope take max_positions / original_positions
  // where it is absent; linear, dynamic and llama3 need it.
  std::optional<double> factor;
  int64_t max_positions = 0;               // tokens; dynamic, and where a factor is absent
  int64_t original_positions = 0;          // tokens, of the first training; 0: max_positions
  std::optional<double> attention_factor;  // yarn, longrope: the scale; absent: by their formulas
  double beta_fast = 32.0;                 // yarn: turns above which a frequency is left alone
  double beta_slow = 1.0;                  // yarn: turns below which it is divided by the factor
  double mscale = 0.0;                     // yarn; 0: none
  double mscale_all_dim = 0.0;             // yarn; 0: none
  bool truncate = true;                    // yarn: round the range of mixed frequencies outwards
  double low_freq_factor = 1.0;            // llama3
  double high_freq_factor = 4.0;           // llama3
  std::vector<double> short_factor;        // (r/2), longrope up to original_positions
  std::vector<double> long_factor;         // (r/2), longrope beyond
};

struct RotaryFrequencies {
  std::vector<double> radians;  // (r/2), per token
  double scale = 1.0;           // of cosine and sine
};

// The frequencies for rotary width r within a sequence of that many tokens (only dynamic and
// longrope depend on it), or why there are none.
Result<RotaryFrequencies> rotary_frequencies(const RotaryScaling& scaling, int64_t rotary_width,
                                             int64_t sequence_length);

// Tokens up to which a sequence's length changes no frequency; 0: it never does.
int64_t steady_positions(const RotaryScaling& scaling);

struct RotaryTableAttrs {
  int64_t positions = 0;     // P, rows
  int64_t rotary_width = 0;  // r, columns
  // Tokens of the first pass; 0: P. Its rows have the frequencies of a sequence of that length. A
  // later row p has those of p + 1 tokens, as when tokens are generated one by one.
  int64_t sequence_length = 0;
};

// The table (P, r), or why there is none.
Result<std::vector<float>> rotary_table(const RotaryScaling& scaling,
                                        const RotaryTableAttrs& attrs);

// Rows for these positions, with the same frequencies: positions (N) -> (N, r).
std::vector<float> rotary_rows(const RotaryFrequencies& frequencies,
                               std::span<const int64_t> positions);

}  // namespace vkformer
