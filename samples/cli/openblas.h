// OpenBLAS, if it is installed: what matrix products are compared with. Opened at run time, so that
// the program does not depend on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace vkformer::cli {

class OpenBlas {
 public:
  // Nothing if there is no libopenblas.so.0. OPENBLAS_CORETYPE and OPENBLAS_NUM_THREADS are the
  // caller's.
  static std::optional<OpenBlas> open();

  // Milliseconds of one f32 product (m, k) x (k, n), on data made here.
  double product_ms(int64_t m, int64_t n, int64_t k) const;
  // Core type and version, as the library says.
  std::string description() const;

 private:
  using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float* a, int lda, const float* b, int ldb, float beta, float* c,
                         int ldc);
  explicit OpenBlas(void* library, Sgemm sgemm) : library_(library), sgemm_(sgemm) {}

  void* library_;  // stays loaded: its threads cannot be unloaded safely
  Sgemm sgemm_;
};

}  // namespace vkformer::cli
