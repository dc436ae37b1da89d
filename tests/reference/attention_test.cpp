// reference/attention and attention_weights.
#include "reference/attention.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace vkformer;
using reference::Array;
using reference::attention;
using reference::attention_weights;
using reference::AttentionOptions;
using reference::AttentionOutputs;

namespace {

// Unremarkable but fixed numbers between -1 and 1.
Array wavy(Shape shape, double phase) {
  Array x = reference::filled(std::move(shape), 0.0);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.7 * static_cast<double>(i) + phase);
  return x;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reference attention: hand-computed with width 1") {
    // Scores ln 3 and 0: weights 3/4 and 1/4.
    const Array q = {{1, 1, 1, 1}, {1}};
    const Array k = {{1, 1, 2, 1}, {std::log(3.0), 0}};
    const Array v = {{1, 1, 2, 2}, {4, 8, 0, 16}};
    const Result<AttentionOutputs> y = attention_weights(q, k, v);
    REQUIRE(y.ok());
    CHECK(y->weights.data[0] == doctest::Approx(0.75));
    CHECK(y->output.shape == Shape{1, 1, 1, 2});
    CHECK(y->output.data[0] == doctest::Approx(3.0));
    CHECK(y->output.data[1] == doctest::Approx(10.0));
    CHECK(y->scores.data[0] == doctest::Approx(std::log(3.0)));
    const double entropy = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
    CHECK(y->entropy.data[0] == doctest::Approx(entropy));
  }

  TEST_CASE("reference attention: scale, bias, ALiBi and temperature make the score") {
    const Array q = {{1, 1, 1, 4}, {1, 1, 1, 1}};
    const Array k = {{1, 1, 1, 4}, {2, 2, 2, 2}};
    const Array v = {{1, 1, 1, 1}, {5}};
    const Array bias = {{1}, {3}};
    const Array slopes = {{1}, {0.5}};
    AttentionOptions options;
    const Result<AttentionOutputs> plain = attention_weights(q, k, v, options);
    REQUIRE(plain.ok());
    CHECK(plain->scores.data[0] == 4.0);  // 8 / sqrt 4
    options.scale = 1.0;
    options.bias = &bias;
    options.alibi_slopes = &slopes;
    options.masks.causal_offset = 2;
    options.temperature = 0.5;
    const Result<AttentionOutputs> full = attention_weights(q, k, v, options);
    REQUIRE(full.ok());
    CHECK(full->scores.data[0] == (8.0 + 3.0 + 0.5 * -2.0) / 0.5);
    CHECK(full->output.data[0] == 5.0);
  }

  TEST_CASE("reference attention: rows sum to 1 and the entropy lies between 0 and ln S") {
    const Result<AttentionOutputs> y =
        attention_weights(wavy({2, 3, 5, 4}, 0), wavy({2, 3, 7, 4}, 1), wavy({2, 3, 7, 6}, 2));
    REQUIRE(y.ok());
    CHECK(y->output.shape == Shape{2, 3, 5, 6});
    CHECK(y->entropy.shape == Shape{2, 3, 5});
    for (int64_t row = 0; row < 2 * 3 * 5; ++row) {
      double sum = 0.0;
      for (int64_t j = 0; j < 7; ++j) sum += y->weights[row * 7 + j];
      CHECK(sum == doctest::Approx(1.0));
      CHECK(y->entropy[row] > 0.0);
      CHECK(y->entropy[row] <= std::log(7.0) + 1e-12);
    }
  }

  TEST_CASE("reference attention: equal keys give the entropy ln S, a single key 0") {
    const Array q = wavy({1, 1, 1, 4}, 0);
    const Array k = reference::filled({1, 1, 8, 4}, 1.0);
    const Result<AttentionOutputs> flat = attention_weights(q, k, k);
    REQUIRE(flat.ok());
    CHECK(flat->entropy.data[0] == doctest::Approx(std::log(8.0)));
    const Result<AttentionOutputs> single = attention_weights(q, q, q);
    REQUIRE(single.ok());
    CHECK(single->entropy.data[0] == 0.0);
    CHECK(single->output.data == q.data);
  }

  TEST_CASE("reference attention: a fully masked query gives zeros, masked NaN is not read") {
    const Array q = wavy({1, 1, 2, 2}, 0);
    Array k = wavy({1, 1, 2, 2}, 1);
    Array v = wavy({1, 1, 2, 2}, 2);
    for (int64_t e = 2; e < 4; ++e) k[e] = v[e] = std::nan("");
    AttentionOptions options;
    options.masks.causal = true;
    options.masks.causal_offset = -1;
    const Result<AttentionOutputs> y = attention_weights(q, k, v, options);
    REQUIRE(y.ok());
    CHECK(y->output.data == std::vector<double>{0, 0, v[0], v[1]});
    CHECK(y->weights.data == std::vector<double>{0, 0, 1, 0});
    CHECK(y->entropy.data == std::vector<double>{0, 0});
    const Array bias = {{1}, {-INFINITY}};
    options = {};
    options.bias = &bias;
    const Result<Array> hidden = attention(q, wavy({1, 1, 2, 2}, 1), v, options);
    REQUIRE(hidden.ok());
    CHECK(hidden->data == std::vector<double>{0, 0, 0, 0});
  }

  TEST_CASE("reference attention: grouped heads equal repeated key/value heads") {
    const Array q = wavy({2, 4, 3, 2}, 0);
    const Array k = wavy({2, 2, 3, 2}, 1);
    const Array v = wavy({2, 2, 3, 2}, 2);
    const auto repeated = [](const Array& x) {
      Array y = reference::filled({2, 4, 3, 2}, 0.0);
      for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i / 12 * 6 + i % 6];
      return y;
    };
    const Result<Array> grouped = attention(q, k, v);
    const Result<Array> full = attention(q, repeated(k), repeated(v));
    REQUIRE(grouped.ok());
    REQUIRE(full.ok());
    CHECK(grouped->data == full->data);
  }

  TEST_CASE("reference attention: attention is the output of attention_weights") {
    AttentionOptions options;
    options.masks.causal = true;
    const Array x = wavy({1, 2, 4, 3}, 0);
    const Result<Array> output = attention(x, x, x, options);
    const Result<AttentionOutputs> all = attention_weights(x, x, x, options);
    REQUIRE(output.ok());
    REQUIRE(all.ok());
    CHECK(output->data == all->output.data);
  }

  TEST_CASE("reference attention: shape errors") {
    const Array x = wavy({1, 2, 3, 4}, 0);
    CHECK_FALSE(attention(wavy({3, 4}, 0), x, x).ok());
    CHECK_FALSE(attention(wavy({1, 2, 3, 5}, 0), x, x).ok());
    CHECK_FALSE(attention(wavy({2, 2, 3, 4}, 0), x, x).ok());
    CHECK_FALSE(attention(wavy({1, 3, 3, 4}, 0), x, x).ok());
    CHECK_FALSE(attention(x, x, wavy({1, 2, 2, 4}, 0)).ok());
    const Array wrong = {{3}, {1, 1, 1}};
    AttentionOptions options;
    options.alibi_slopes = &wrong;
    CHECK_FALSE(attention(x, x, x, options).ok());
    options = {};
    options.temperature = -1.0;
    CHECK_FALSE(attention(x, x, x, options).ok());
    options = {};
    options.masks.key_mask = &wrong;
    const Result<Array> masked = attention(x, x, x, options);
    REQUIRE_FALSE(masked.ok());
    CHECK(masked.error().message.find("[attention] key_mask") == 0);
  }
}
