// reference/multi_head_attention: the three projection layouts, masks, cross-attention.
#include "reference/multi_head_attention.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace vkformer;
using reference::Array;
using reference::multi_head_attention;
using reference::MultiHeadAttentionOptions;
using reference::MultiHeadAttentionOutputs;
using reference::MultiHeadAttentionWeights;
using reference::ProjectionLayout;

namespace {

// Unremarkable but fixed numbers between -1 and 1.
Array wavy_heads(Shape shape, double phase) {
  Array x = reference::filled(std::move(shape), 0.0);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i) + phase);
  return x;
}

// Rows of several matrices, one below the other.
Array stacked(const std::vector<const Array*>& parts) {
  Array out = *parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    out.shape[0] += parts[i]->shape[0];
    out.data.insert(out.data.end(), parts[i]->data.begin(), parts[i]->data.end());
  }
  return out;
}

// `block` (E, E) repeated along the diagonal, once per head.
Array block_diagonal(const Array& block, int64_t heads) {
  const int64_t width = block.dim(0);
  Array out = reference::filled({heads * width, heads * width}, 0.0);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < width * width; ++i) {
      out[(h * width + i / width) * heads * width + h * width + i % width] = block[i];
    }
  }
  return out;
}

void check_near(const Array& actual, const Array& expected) {
  REQUIRE(actual.shape == expected.shape);
  for (int64_t i = 0; i < actual.size(); ++i) {
    CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

// Four wide projections with biases; D = 4.
struct Fixture {
  Array wq = wavy_heads({4, 4}, 0), wk = wavy_heads({4, 4}, 1), wv = wavy_heads({4, 4}, 2),
        wo = wavy_heads({4, 4}, 3);
  Array bq = wavy_heads({4}, 4), bk = wavy_heads({4}, 5), bv = wavy_heads({4}, 6),
        bo = wavy_heads({4}, 7);
  Array x = wavy_heads({2, 3, 4}, 8);

  MultiHeadAttentionWeights separate() const {
    MultiHeadAttentionWeights weights;
    weights.query = {&wq, &bq};
    weights.key = {&wk, &bk};
    weights.value = {&wv, &bv};
    weights.output = {&wo, &bo};
    return weights;
  }
};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reference multi_head_attention: splitting and merging heads are inverses") {
    const Array x = {{1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}};
    const Array split = reference::split_heads(x, 2);
    CHECK(split.shape == Shape{1, 2, 2, 2});
    CHECK(split.data == std::vector<double>{1, 2, 5, 6, 3, 4, 7, 8});
    CHECK(reference::merge_heads(split).data == x.data);
  }

  TEST_CASE("reference multi_head_attention: one token passes through value and output") {
    // With one key the weight is 1: y = (x 2)(3) + 1.
    const Array one = {{1, 1}, {1}};
    const Array two = {{1, 1}, {2}};
    const Array three = {{1, 1}, {3}};
    const Array bias = {{1}, {1}};
    MultiHeadAttentionWeights weights;
    weights.query = {&one, nullptr};
    weights.key = {&one, nullptr};
    weights.value = {&two, nullptr};
    weights.output = {&three, &bias};
    const Result<MultiHeadAttentionOutputs> y = multi_head_attention({{1, 1, 1}, {5}}, weights, {});
    REQUIRE(y.ok());
    CHECK(y->output.data == std::vector<double>{31});
    CHECK(y->weights.data == std::vector<double>{1});
    CHECK(y->entropy.data == std::vector<double>{0});
  }

  TEST_CASE("reference multi_head_attention: merged equals separate") {
    const Fixture f;
    const Array w = stacked({&f.wq, &f.wk, &f.wv});
    const Array b = stacked({&f.bq, &f.bk, &f.bv});
    MultiHeadAttentionWeights merged;
    merged.layout = ProjectionLayout::kMerged;
    merged.merged = {&w, &b};
    merged.output = {&f.wo, &f.bo};
    MultiHeadAttentionOptions options;
    options.heads = 2;
    options.attention.masks.causal = true;
    const auto expected = multi_head_attention(f.x, f.separate(), options);
    const auto actual = multi_head_attention(f.x, merged, options);
    REQUIRE(expected.ok());
    REQUIRE(actual.ok());
    check_near(actual->output, expected->output);
    check_near(actual->weights, expected->weights);
    CHECK(actual->weights.shape == Shape{2, 2, 3, 3});
    CHECK(actual->weights.data[1] == 0.0);
  }

  TEST_CASE("reference multi_head_attention: shared by heads equals a block-diagonal matrix") {
    const Fixture f;
    const Array q = wavy_heads({2, 2}, 1), k = wavy_heads({2, 2}, 2), v = wavy_heads({2, 2}, 3);
    const Array wide_q = block_diagonal(q, 2), wide_k = block_diagonal(k, 2);
    const Array wide_v = block_diagonal(v, 2);
    MultiHeadAttentionWeights shared;
    shared.layout = ProjectionLayout::kSharedByHeads;
    shared.query = {&q, nullptr};
    shared.key = {&k, nullptr};
    shared.value = {&v, nullptr};
    shared.output = {&f.wo, &f.bo};
    MultiHeadAttentionWeights wide;
    wide.query = {&wide_q, nullptr};
    wide.key = {&wide_k, nullptr};
    wide.value = {&wide_v, nullptr};
    wide.output = {&f.wo, &f.bo};
    MultiHeadAttentionOptions options;
    options.heads = 2;
    const auto expected = multi_head_attention(f.x, wide, options);
    const auto actual = multi_head_attention(f.x, shared, options);
    REQUIRE(expected.ok());
    REQUIRE(actual.ok());
    check_near(actual->output, expected->output);
    check_near(actual->weights, expected->weights);
  }

  TEST_CASE("reference multi_head_attention: memory, key mask and grouped heads") {
    const Fixture f;
    const Array memory = wavy_heads({2, 5, 4}, 9);
    const Array key_mask = {{2, 5}, {1, 1, 0, 0, 0, 0, 0, 0, 0, 0}};
    MultiHeadAttentionOptions options;
    options.heads = 2;
    options.memory = &memory;
    options.attention.masks.key_mask = &key_mask;
    const auto y = multi_head_attention(f.x, f.separate(), options);
    REQUIRE(y.ok());
    CHECK(y->weights.shape == Shape{2, 2, 3, 5});
    for (int64_t row = 0; row < 6; ++row) {
      CHECK(y->weights[row * 5] + y->weights[row * 5 + 1] == doctest::Approx(1.0));
      CHECK(y->weights[row * 5 + 2] == 0.0);
    }
    // The second batch row sees nothing: only the output bias is left.
    for (int64_t i = 12; i < 24; ++i) CHECK(y->output[i] == f.bo[i % 4]);

    const Array narrow_k = wavy_heads({2, 4}, 1), narrow_v = wavy_heads({2, 4}, 2);
    const Array w = stacked({&f.wq, &narrow_k, &narrow_v});
    MultiHeadAttentionWeights grouped = f.separate();
    grouped.query.bias = nullptr;
    grouped.key = {&narrow_k, nullptr};
    grouped.value = {&narrow_v, nullptr};
    MultiHeadAttentionWeights merged;
    merged.layout = ProjectionLayout::kMerged;
    merged.merged = {&w, nullptr};
    merged.output = grouped.output;
    options.key_heads = 1;
    const auto expected = multi_head_attention(f.x, grouped, options);
    const auto actual = multi_head_attention(f.x, merged, options);
    REQUIRE(expected.ok());
    REQUIRE(actual.ok());
    check_near(actual->output, expected->output);
  }

  TEST_CASE("reference multi_head_attention: errors") {
    const Fixture f;
    MultiHeadAttentionOptions options;
    options.heads = 3;
    CHECK_FALSE(multi_head_attention(f.x, f.separate(), options).ok());
    options.heads = 0;
    CHECK_FALSE(multi_head_attention(f.x, f.separate(), options).ok());
    options.heads = 2;
    CHECK_FALSE(multi_head_attention(wavy_heads({3, 4}, 0), f.separate(), options).ok());
    MultiHeadAttentionWeights missing = f.separate();
    missing.key.weight = nullptr;
    const auto y = multi_head_attention(f.x, missing, options);
    REQUIRE_FALSE(y.ok());
    CHECK(y.error().message.find("[multi_head_attention]") == 0);
    missing.layout = ProjectionLayout::kMerged;
    missing.merged = {&f.wq, nullptr};
    CHECK_FALSE(multi_head_attention(f.x, missing, options).ok());
    options.key_heads = 1;
    MultiHeadAttentionWeights shared = f.separate();
    shared.layout = ProjectionLayout::kSharedByHeads;
    CHECK_FALSE(multi_head_attention(f.x, shared, options).ok());
  }
}
