#include "reference/matmul.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// The batch axes of both operands, broadcast together by numpy's rule.
Result<Shape> common_batch(const Array& a, const Array& b) {
  const Shape batch_a(a.shape.begin(), a.shape.end() - 2);
  const Shape batch_b(b.shape.begin(), b.shape.end() - 2);
  Shape batch(std::max(batch_a.size(), batch_b.size()), 1);
  for (size_t back = 1; back <= batch.size(); ++back) {
    const int64_t in_a = back <= batch_a.size() ? batch_a[batch_a.size() - back] : 1;
    const int64_t in_b = back <= batch_b.size() ? batch_b[batch_b.size() - back] : 1;
    if (in_a != in_b && in_a != 1 && in_b != 1) {
      return invalid_argument(
          message({"[matmul] The batch axes of A ", shape_text(a.shape), " and B ",
                   shape_text(b.shape), " differ; each pair must be equal, 1 or absent."}));
    }
    batch[batch.size() - back] = in_a == 1 ? in_b : in_a;
  }
  return batch;
}

// `batch` followed by the last two axes of `matrix`.
Shape with_matrix_axes(Shape batch, const Array& matrix) {
  batch.push_back(matrix.dim(-2));
  batch.push_back(matrix.dim(-1));
  return batch;
}

// alpha op(A) op(B); a and b have equal batch axes.
Array product(const Array& a, const Array& b, const Shape& y_shape, const MatmulOptions& options) {
  Array y = filled(y_shape, 0.0);
  const int64_t m_size = y.dim(-2);
  const int64_t n_size = y.dim(-1);
  const int64_t k_size = options.trans_a ? a.dim(-2) : a.dim(-1);
  const int64_t batches = m_size * n_size == 0 ? 0 : y.size() / (m_size * n_size);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t a_base = batch * m_size * k_size;
    const int64_t b_base = batch * k_size * n_size;
    for (int64_t m = 0; m < m_size; ++m) {
      for (int64_t n = 0; n < n_size; ++n) {
        double sum = 0.0;
        for (int64_t k = 0; k < k_size; ++k) {
          const int64_t a_at = options.trans_a ? k * m_size + m : m * k_size + k;
          const int64_t b_at = options.trans_b ? n * k_size + k : k * n_size + n;
          sum += a[a_base + a_at] * b[b_base + b_at];
        }
        y[(batch * m_size + m) * n_size + n] = options.alpha * sum;
      }
    }
  }
  return y;
}

}  // namespace

Result<Array> matmul(const Array& a, const Array& b, const MatmulOptions& options) {
  VKF_CHECK(check_array(a, "matmul", "A"));
  VKF_CHECK(check_array(b, "matmul", "B"));
  if (a.rank() < 2 || b.rank() < 2) {
    return invalid_argument(message({"[matmul] A has shape ", shape_text(a.shape), " and B ",
                                     shape_text(b.shape), "; both need at least two axes."}));
  }
  const int64_t a_inner = options.trans_a ? a.dim(-2) : a.dim(-1);
  const int64_t b_inner = options.trans_b ? b.dim(-1) : b.dim(-2);
  if (a_inner != b_inner) {
    return invalid_argument(message({"[matmul] The inner size of op(A) is ", a_inner,
                                     " and that of op(B) is ", b_inner, "; they must be equal."}));
  }
  VKF_ASSIGN(const Shape batch, common_batch(a, b));
  VKF_ASSIGN(const Array wide_a, broadcast_to(a, with_matrix_axes(batch, a), "matmul", "A"));
  VKF_ASSIGN(const Array wide_b, broadcast_to(b, with_matrix_axes(batch, b), "matmul", "B"));
  Shape y_shape = batch;
  y_shape.push_back(options.trans_a ? a.dim(-1) : a.dim(-2));
  y_shape.push_back(options.trans_b ? b.dim(-2) : b.dim(-1));

  Array y = product(wide_a, wide_b, y_shape, options);
  if (options.c != nullptr) {
    VKF_ASSIGN(const Array c, broadcast_to(*options.c, y_shape, "matmul", "C"));
    for (int64_t i = 0; i < y.size(); ++i) y[i] += options.beta * c[i];
  }
  if (options.bias != nullptr) {
    VKF_CHECK(check_shape(*options.bias, {y.dim(-1)}, "matmul", "bias"));
    for (int64_t i = 0; i < y.size(); ++i) y[i] += (*options.bias)[i % y.dim(-1)];
  }
  for (double& value : y.data) value = activate(options.activation, value);
  if (options.residual != nullptr) {
    VKF_ASSIGN(const Array residual,
               broadcast_to(*options.residual, y_shape, "matmul", "residual"));
    for (int64_t i = 0; i < y.size(); ++i) y[i] += residual[i];
  }
  return y;
}

}  // namespace vkformer::reference
