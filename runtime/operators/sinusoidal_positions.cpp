#include "ops/sinusoidal_positions.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {

// sinusoidal_positions (Tokens and positions)
// attributes: `length`, `dim`, `layout` (interleaved), `spacing` (transformer), `offset` (0)
// outputs:    Y (length, dim)
// computes:   angle(p, i) = (p + offset) · 10000^(−i/den), den = dim/2 (`transformer`) or dim/2 − 1
//             (`half_minus_one`); `interleaved`: sin at 2i, cos at 2i + 1; `halves`: [sin, cos].
//             Computed on the host, in double
Result<PreparedOperator> prepare_sinusoidal_positions(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({}, {"length", "dim", "layout", "spacing", "offset"}));
  const JsonConfig& attributes = arguments.attributes();
  constexpr int64_t kMost = int64_t{1} << 28;
  SinusoidalAttrs attrs;
  VKF_ASSIGN(attrs.length, attributes.get_int("length"));
  VKF_ASSIGN(attrs.width, attributes.get_int("dim"));
  VKF_ASSIGN(attrs.offset, arguments.integer_or("offset", 0, -kMost, kMost));
  VKF_ASSIGN(const std::string layout, attributes.get_string_or("layout", "interleaved"));
  VKF_ASSIGN(const std::string spacing, attributes.get_string_or("spacing", "transformer"));
  if (layout != "interleaved" && layout != "halves") {
    return arguments.error("The layout is '" + layout + "', but must be interleaved or halves.");
  }
  if (spacing != "transformer" && spacing != "half_minus_one") {
    return arguments.error("The spacing is '" + spacing +
                           "', but must be transformer or half_minus_one.");
  }
  if (layout == "halves") attrs.layout = SinusoidalLayout::kHalves;
  if (spacing == "half_minus_one") attrs.spacing = SinusoidalSpacing::kHalfMinusOne;
  VKF_ASSIGN(const std::vector<float> table, sinusoidal_positions(attrs));
  PreparedOperator op;
  op.ready.emplace("Y", Tensor::from_floats({attrs.length, attrs.width}, table));
  return op;
}

}  // namespace vkformer
