#include "ops/mu_law.h"
#include "base/message.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace vkformer {
namespace {

double full_scale(const MuLaw& law) {
  return std::log1p(law.m * law.mu);
}

}  // namespace

Status check_mu_law(const MuLaw& law) {
  constexpr int64_t kMostBins = int64_t{1} << 24;
  const bool sane = law.mu > 0 && law.m > 0 && std::isfinite(law.mu * law.m) && law.bins > 0 &&
                    law.bins <= kMostBins && full_scale(law) > 0;
  if (sane) return {};
  return invalid_argument(message(
      {"[mu_law] mu is ", law.mu, ", M is ", law.m, " and there are ", law.bins,
       " bins, but all must be finite and above 0, and the bins at most ", kMostBins, "."}));
}

double mu_law_encode(double x, const MuLaw& law) {
  return std::copysign(std::log1p(std::abs(x) * law.mu) / full_scale(law), x);
}

int64_t mu_law_bin(double encoded, const MuLaw& law) {
  if (std::isnan(encoded)) return 0;
  const double share = (std::clamp(encoded, -1.0, 1.0) + 1.0) / 2.0;
  return std::min(static_cast<int64_t>(share * static_cast<double>(law.bins)), law.bins - 1);
}

double mu_law_decode(int64_t bin, const MuLaw& law) {
  const double middle =
      (static_cast<double>(bin) + 0.5) / static_cast<double>(law.bins) * 2.0 - 1.0;
  return std::copysign(std::expm1(std::abs(middle) * full_scale(law)) / law.mu, middle);
}

}  // namespace vkformer
