#include "openblas.h"

#include <dlfcn.h>

#include <chrono>
#include <vector>

namespace vkformer::cli {

std::optional<OpenBlas> OpenBlas::open() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  void* symbol = dlsym(library, "cblas_sgemm");
  if (symbol == nullptr) return std::nullopt;
  return OpenBlas(library, reinterpret_cast<Sgemm>(symbol));
}

double OpenBlas::product_ms(int64_t m, int64_t n, int64_t k) const {
  constexpr int kRowMajor = 101, kNoTranspose = 111;
  std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
  std::vector<float> c(static_cast<size_t>(m * n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) * 0.25F - 0.5F;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) * 0.25F - 0.5F;
  const auto begin = std::chrono::steady_clock::now();
  sgemm_(kRowMajor, kNoTranspose, kNoTranspose, static_cast<int>(m), static_cast<int>(n),
         static_cast<int>(k), 1.0F, a.data(), static_cast<int>(k), b.data(), static_cast<int>(n),
         0.0F, c.data(), static_cast<int>(n));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

std::string OpenBlas::description() const {
  void* symbol = dlsym(library_, "openblas_get_config");
  if (symbol == nullptr) return "OpenBLAS";
  return reinterpret_cast<const char* (*)()>(symbol)();
}

}  // namespace vkformer::cli
