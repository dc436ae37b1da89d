#include "ops/mu_law.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/operator_check.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("mu_law encodes odd, bins within bounds and decodes into its own bin") {
    for (const MuLaw& law : {MuLaw{}, MuLaw{255, 1, 256}, MuLaw{5, 3, 7}, MuLaw{1, 1, 1}}) {
      REQUIRE(check_mu_law(law).ok());
      CHECK(mu_law_encode(0, law) == 0);
      CHECK(mu_law_encode(law.m, law) == doctest::Approx(1));
      CHECK(mu_law_encode(-2.5, law) == -mu_law_encode(2.5, law));
      CHECK(mu_law_encode(2.5, law) ==
            doctest::Approx(std::log(2.5 * law.mu + 1) / std::log(law.m * law.mu + 1)));
      for (int64_t bin = 0; bin < law.bins; ++bin) {
        CHECK(mu_law_bin(mu_law_encode(mu_law_decode(bin, law), law), law) == bin);
      }
      const double infinity = std::numeric_limits<double>::infinity();
      CHECK(mu_law_bin(mu_law_encode(infinity, law), law) == law.bins - 1);
      CHECK(mu_law_bin(mu_law_encode(-infinity, law), law) == 0);
      CHECK(mu_law_bin(mu_law_encode(kNan, law), law) == 0);
    }
  }

  TEST_CASE("mu_law refuses numbers without sense") {
    check_error(check_mu_law({0, 1, 4}), "mu_law", "mu is 0");
    check_error(check_mu_law({1, kNan, 4}), "mu_law", "nan");
    check_error(check_mu_law({1, 1, 0}), "mu_law", "0 bins");
    check_error(check_mu_law({1e300, 1e300, 4}), "mu_law", "finite");
  }
}

}  // namespace vkformer::testing
