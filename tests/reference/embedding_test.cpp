// reference/embedding and sinusoidal_positions.
#include "reference/embedding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "reference/sinusoidal_positions.h"

using namespace vkformer;
using reference::Array;
using reference::embedding;
using reference::EmbeddingOptions;
using reference::sinusoidal_positions;
using reference::SinusoidalPositionsOptions;

namespace {

const Array kTable = {{3, 2}, {1, 2, 3, 4, 5, 6}};
const Array kPositions = {{4, 2}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reference embedding: rows times scale") {
    EmbeddingOptions options;
    options.scale = 10.0;
    const Result<Array> y = embedding(kTable, {{1, 2}, {2, 0}}, options);
    REQUIRE(y.ok());
    CHECK(y->shape == Shape{1, 2, 2});
    CHECK(y->data == std::vector<double>{50, 60, 10, 20});
  }

  TEST_CASE("reference embedding: positions by index with offset, or given") {
    const Array ids = {{2, 2}, {0, 0, 1, 1}};
    EmbeddingOptions options;
    options.position_table = &kPositions;
    options.position_offset = 2;
    const Result<Array> indexed = embedding(kTable, ids, options);
    REQUIRE(indexed.ok());
    CHECK(indexed->data == std::vector<double>{1.5, 2.6, 1.7, 2.8, 3.5, 4.6, 3.7, 4.8});
    const Array position_ids = {{2, 2}, {3, 0, 0, 3}};
    options.position_ids = &position_ids;
    const Result<Array> given = embedding(kTable, ids, options);
    REQUIRE(given.ok());
    CHECK(given->data == std::vector<double>{1.7, 2.8, 1.1, 2.2, 3.1, 4.2, 3.7, 4.8});
  }

  TEST_CASE("reference embedding: ids and positions outside their table are errors") {
    for (double id : {-1.0, 3.0, 0.5, std::nan(""), std::numeric_limits<double>::infinity()}) {
      CAPTURE(id);
      CHECK_FALSE(embedding(kTable, {{1}, {id}}).ok());
    }
    EmbeddingOptions options;
    options.position_table = &kPositions;
    options.position_offset = 3;
    CHECK(embedding(kTable, {{1}, {0}}, options).ok());
    CHECK_FALSE(embedding(kTable, {{2}, {0, 0}}, options).ok());
    options.position_offset = std::numeric_limits<int64_t>::max();
    CHECK_FALSE(embedding(kTable, {{2}, {0, 0}}, options).ok());
  }

  TEST_CASE("reference embedding: shape errors") {
    CHECK_FALSE(embedding({{2}, {1, 2}}, {{1}, {0}}).ok());
    const Array narrow = {{2, 1}, {1, 2}};
    EmbeddingOptions options;
    options.position_table = &narrow;
    CHECK_FALSE(embedding(kTable, {{1}, {0}}, options).ok());
    options.position_table = &kPositions;
    options.position_ids = &narrow;
    CHECK_FALSE(embedding(kTable, {{1}, {0}}, options).ok());
  }

  TEST_CASE("reference sinusoidal_positions: interleaved") {
    const Result<Array> y = sinusoidal_positions({.length = 2, .width = 4});
    REQUIRE(y.ok());
    CHECK(y->shape == Shape{2, 4});
    const std::vector<double> expected = {
        0, 1, 0, 1, std::sin(1.0), std::cos(1.0), std::sin(0.01), std::cos(0.01)};
    for (int64_t i = 0; i < 8; ++i) {
      CHECK((*y)[i] == doctest::Approx(expected[static_cast<size_t>(i)]));
    }
  }

  TEST_CASE("reference sinusoidal_positions: halves, spacing half minus one, offset") {
    SinusoidalPositionsOptions options{.length = 1, .width = 4, .offset = 2};
    options.layout = reference::SinusoidLayout::kHalves;
    options.spacing = reference::SinusoidSpacing::kHalfMinusOne;
    const Result<Array> y = sinusoidal_positions(options);
    REQUIRE(y.ok());
    CHECK((*y)[0] == doctest::Approx(std::sin(2.0)));
    CHECK((*y)[1] == doctest::Approx(std::sin(2e-4)));
    CHECK((*y)[2] == doctest::Approx(std::cos(2.0)));
    CHECK((*y)[3] == doctest::Approx(std::cos(2e-4)));
    options.width = 2;
    const Result<Array> narrow = sinusoidal_positions(options);
    REQUIRE(narrow.ok());
    CHECK((*narrow)[0] == doctest::Approx(std::sin(2.0)));
  }

  TEST_CASE("reference sinusoidal_positions: impossible sizes are errors") {
    CHECK_FALSE(sinusoidal_positions({.length = 2, .width = 0}).ok());
    CHECK_FALSE(sinusoidal_positions({.length = -1, .width = 4}).ok());
    CHECK_FALSE(sinusoidal_positions({.length = int64_t{1} << 40, .width = 1024}).ok());
  }
}
