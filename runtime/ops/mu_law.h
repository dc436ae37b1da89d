// mu_law: continuous values as whole numbers, and back (Reed et al., 2022, "A Generalist Agent").
//
//   encoded = sign(x) ln(|x| mu + 1) / ln(M mu + 1)
//   bin = floor((clip(encoded, -1, 1) + 1) / 2 * bins), at most bins - 1
//   decoded = the x whose encoding is the middle of its bin
//
// Computed on the host, in double: a bin must not depend on a device's logarithm.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace vkformer {

struct MuLaw {
  double mu = 100.0;
  double m = 256.0;  // M, the magnitude that is encoded as 1
  int64_t bins = 1024;
};

// Are the numbers finite, above 0 and the bins at most 2^24?
Status check_mu_law(const MuLaw& law);

// Precondition of the rest: check_mu_law. A NaN stays NaN, and is in bin 0.
double mu_law_encode(double x, const MuLaw& law);
int64_t mu_law_bin(double encoded, const MuLaw& law);
double mu_law_decode(int64_t bin, const MuLaw& law);

}  // namespace vkformer
