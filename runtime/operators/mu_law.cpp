#include "ops/mu_law.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// mu_law (Tokens and positions)
// attributes: `mu` (100), `M` (256), `num_bins` (1024)
// inputs:     X (...)
// outputs:    encoded (...), bins (...) I64, decoded (...)
// computes:   sign(X) ln(abs(X) mu + 1) / ln(M mu + 1); floor((clipped to ±1 + 1) / 2 · bins), at
//             most bins − 1; the value whose encoding is the bin's middle. Computed on the host, in
//             double
Result<PreparedOperator> prepare_mu_law(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X"}, {"mu", "M", "num_bins"}));
  MuLaw law;
  VKF_ASSIGN(law.mu, arguments.attributes().get_double_or("mu", law.mu));
  VKF_ASSIGN(law.m, arguments.attributes().get_double_or("M", law.m));
  VKF_ASSIGN(law.bins, arguments.attributes().get_int_or("num_bins", law.bins));
  VKF_CHECK(check_mu_law(law));
  VKF_ASSIGN(const Tensor x, arguments.floats("X"));
  VKF_ASSIGN(const std::vector<float> values, x.to_floats());
  std::vector<float> encoded;
  std::vector<float> decoded;
  std::vector<int64_t> bins;
  for (const float value : values) {
    const double wide = mu_law_encode(static_cast<double>(value), law);
    encoded.push_back(static_cast<float>(wide));
    bins.push_back(mu_law_bin(wide, law));
    decoded.push_back(static_cast<float>(mu_law_decode(bins.back(), law)));
  }
  PreparedOperator op;
  op.ready.emplace("encoded", Tensor::from_floats(x.shape, encoded));
  op.ready.emplace("bins", Tensor::from_ints(x.shape, bins));
  op.ready.emplace("decoded", Tensor::from_floats(x.shape, decoded));
  return op;
}

}  // namespace vkformer
