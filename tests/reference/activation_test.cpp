// reference/activation and gated_activation.
#include "reference/activation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "reference/gated_activation.h"

using namespace vkformer;
using reference::activate;
using reference::ActivationKind;
using reference::Array;

TEST_SUITE("cpu") {
  TEST_CASE("reference activation: known values") {
    const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-12); };
    // Phi(1) = 0.8413447460685429, sigmoid(1) = 0.7310585786300049.
    CHECK(activate(ActivationKind::kGelu, 1.0) == near(0.8413447460685429));
    CHECK(activate(ActivationKind::kGelu, -1.0) == near(-0.15865525393145707));
    CHECK(activate(ActivationKind::kGeluTanh, 1.0) == near(0.8411919906082768));
    CHECK(activate(ActivationKind::kQuickGelu, 1.0) == near(1.0 / (1.0 + std::exp(-1.702))));
    CHECK(activate(ActivationKind::kSilu, 1.0) == near(0.7310585786300049));
    CHECK(activate(ActivationKind::kSilu, -1.0) == near(-0.2689414213699951));
    CHECK(activate(ActivationKind::kRelu, -2.0) == 0.0);
    CHECK(activate(ActivationKind::kRelu, 2.0) == 2.0);
    CHECK(activate(ActivationKind::kTanh, 0.5) == near(0.46211715726000973));
    CHECK(activate(ActivationKind::kSigmoid, 0.0) == 0.5);
    CHECK(activate(ActivationKind::kEluPlusOne, 2.0) == 3.0);
    CHECK(activate(ActivationKind::kEluPlusOne, -1.0) == near(std::exp(-1.0)));
    CHECK(activate(ActivationKind::kIdentity, -7.0) == -7.0);
  }

  TEST_CASE("reference activation: identities and extremes") {
    for (double x : {0.0, 0.3, 1.0, 4.0, 30.0}) {
      CHECK(activate(ActivationKind::kGelu, x) - activate(ActivationKind::kGelu, -x) ==
            doctest::Approx(x));
      CHECK(activate(ActivationKind::kSigmoid, x) + activate(ActivationKind::kSigmoid, -x) ==
            doctest::Approx(1.0));
    }
    CHECK(activate(ActivationKind::kSigmoid, -1000.0) == 0.0);
    CHECK(activate(ActivationKind::kSigmoid, 1000.0) == 1.0);
    CHECK(activate(ActivationKind::kGeluTanh, 1000.0) == 1000.0);
    CHECK(activate(ActivationKind::kGelu, -10.0) < 0.0);
  }

  TEST_CASE("reference activation: NaN propagates through every kind, and names round-trip") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const char* name : {"gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "tanh", "sigmoid",
                             "elu_plus_one", "identity"}) {
      CAPTURE(name);
      const Result<ActivationKind> kind = reference::activation_from_name(name);
      REQUIRE(kind.ok());
      CHECK(std::isnan(activate(*kind, nan)));
    }
    CHECK_FALSE(reference::activation_from_name("mish").ok());
  }

  TEST_CASE("reference activation: works on arrays and keeps the shape") {
    const Result<Array> y = reference::activation({{2, 2}, {-1, 2, 0, 3}}, ActivationKind::kRelu);
    REQUIRE(y.ok());
    CHECK(y->shape == Shape{2, 2});
    CHECK(y->data == std::vector<double>{0, 2, 0, 3});
    CHECK_FALSE(reference::activation({{3}, {1}}, ActivationKind::kRelu).ok());
  }

  TEST_CASE("reference gated_activation: first half gates the second") {
    const Array x = {{2, 4}, {-1, 2, 3, 4, 5, -6, 7, 8}};
    const Result<Array> y = reference::gated_activation(x, ActivationKind::kRelu);
    REQUIRE(y.ok());
    CHECK(y->shape == Shape{2, 2});
    CHECK(y->data == std::vector<double>{0, 8, 35, 0});
  }

  TEST_CASE("reference gated_activation: shape errors") {
    CHECK_FALSE(reference::gated_activation({{3}, {1, 2, 3}}, ActivationKind::kSilu).ok());
    CHECK_FALSE(reference::gated_activation({{}, {1}}, ActivationKind::kSilu).ok());
  }
}
