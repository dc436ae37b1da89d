// reference/matmul: hand-computed products, the four transpositions, batches, the fused tail.
#include "reference/matmul.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace vkformer;
using reference::Array;
using reference::matmul;
using reference::MatmulOptions;

namespace {

// The transpose of a matrix. x (M, N) -> (N, M).
Array transposed(const Array& x) {
  Array y = reference::filled({x.dim(1), x.dim(0)}, 0.0);
  for (int64_t m = 0; m < x.dim(0); ++m) {
    for (int64_t n = 0; n < x.dim(1); ++n) y[n * x.dim(0) + m] = x[m * x.dim(1) + n];
  }
  return y;
}

const Array kA = {{2, 3}, {1, 2, 3, 4, 5, 6}};
const Array kB = {{3, 2}, {7, 8, 9, 10, 11, 12}};
const std::vector<double> kProduct = {58, 64, 139, 154};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("reference matmul: nn, nt, tn and tt agree") {
    for (bool trans_a : {false, true}) {
      for (bool trans_b : {false, true}) {
        CAPTURE(trans_a);
        CAPTURE(trans_b);
        MatmulOptions options;
        options.trans_a = trans_a;
        options.trans_b = trans_b;
        const Result<Array> y =
            matmul(trans_a ? transposed(kA) : kA, trans_b ? transposed(kB) : kB, options);
        REQUIRE(y.ok());
        CHECK(y->shape == Shape{2, 2});
        CHECK(y->data == kProduct);
      }
    }
  }

  TEST_CASE("reference matmul: alpha, beta C, bias, activation, residual in this order") {
    const Array c = {{2, 2}, {1, 2, 3, 4}};
    const Array bias = {{2}, {-40, 100}};
    const Array residual = {{2, 2}, {0.5, 1, 2, 3}};
    MatmulOptions options;
    options.alpha = 0.5;
    options.beta = -2.0;
    options.c = &c;
    options.bias = &bias;
    options.residual = &residual;
    options.activation = reference::ActivationKind::kRelu;
    const Result<Array> y = matmul(kA, kB, options);
    REQUIRE(y.ok());
    // 29 - 2 - 40 = -13 -> 0;  32 - 4 + 100 = 128;  69.5 - 6 - 40 = 23.5;  77 - 8 + 100 = 169.
    CHECK(y->data == std::vector<double>{0.5, 129, 25.5, 172});
  }

  TEST_CASE("reference matmul: C is a row, a column or full") {
    const Array row = {{2}, {1, 2}};
    const Array column = {{2, 1}, {10, 20}};
    MatmulOptions options;
    options.c = &row;
    const Result<Array> with_row = matmul(kA, kB, options);
    REQUIRE(with_row.ok());
    CHECK(with_row->data == std::vector<double>{59, 66, 140, 156});
    options.c = &column;
    const Result<Array> with_column = matmul(kA, kB, options);
    REQUIRE(with_column.ok());
    CHECK(with_column->data == std::vector<double>{68, 74, 159, 174});
  }

  TEST_CASE("reference matmul: batch axes of either operand may be missing or 1") {
    Array two_a = {{2, 2, 3}, {}};
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (double value : kA.data) two_a.data.push_back(value * (repeat + 1));
    }
    const std::vector<double> expected = {58, 64, 139, 154, 116, 128, 278, 308};
    const Result<Array> shared_b = matmul(two_a, kB);
    REQUIRE(shared_b.ok());
    CHECK(shared_b->shape == Shape{2, 2, 2});
    CHECK(shared_b->data == expected);
    Array one_b = kB;
    one_b.shape = {1, 3, 2};
    const Result<Array> size_one = matmul(two_a, one_b);
    REQUIRE(size_one.ok());
    CHECK(size_one->data == expected);
    // A without the axis that B has.
    Array two_b = {{2, 3, 2}, {}};
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (double value : kB.data) two_b.data.push_back(value * (repeat + 1));
    }
    const Result<Array> shared_a = matmul(kA, two_b);
    REQUIRE(shared_a.ok());
    CHECK(shared_a->data == expected);
  }

  TEST_CASE("reference matmul: an inner size of 0 gives zeros, NaN reaches its row only") {
    const Result<Array> empty = matmul({{2, 0}, {}}, {{0, 2}, {}});
    REQUIRE(empty.ok());
    CHECK(empty->data == std::vector<double>{0, 0, 0, 0});
    Array a = kA;
    a[0] = std::numeric_limits<double>::quiet_NaN();
    const Result<Array> y = matmul(a, kB);
    REQUIRE(y.ok());
    CHECK(y->data[0] != y->data[0]);
    CHECK(y->data[1] != y->data[1]);
    CHECK(y->data[2] == 139);
  }

  TEST_CASE("reference matmul: shape errors") {
    const Result<Array> inner = matmul(kA, kA);
    REQUIRE_FALSE(inner.ok());
    CHECK(inner.error().message.find("[matmul]") == 0);
    CHECK_FALSE(matmul({{3}, {1, 2, 3}}, kB).ok());
    CHECK_FALSE(matmul({{2, 1, 1}, {1, 2}}, {{3, 1, 1}, {1, 2, 3}}).ok());
    const Array wrong = {{3}, {1, 2, 3}};
    MatmulOptions options;
    options.bias = &wrong;
    CHECK_FALSE(matmul(kA, kB, options).ok());
    options = {};
    options.c = &wrong;
    CHECK_FALSE(matmul(kA, kB, options).ok());
    options = {};
    options.residual = &wrong;
    CHECK_FALSE(matmul(kA, kB, options).ok());
  }
}
