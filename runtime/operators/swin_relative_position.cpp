#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "operators/position_bias.h"
#include "ops/relative_positions.h"

namespace vkformer {

// swin_relative_position (Tokens and positions)
// attributes: `window` w
// inputs:     table ((2w − 1)², H)
// outputs:    index (w², w²) I64, bias (H, w², w²)
// computes:   (Δrow + w − 1)(2w − 1) + Δcol + w − 1 with Δ = query − key. Computed on the host
Result<PreparedOperator> prepare_swin_relative_position(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"table"}, {"window"}));
  VKF_ASSIGN(const int64_t window, arguments.attributes().get_int("window"));
  VKF_ASSIGN(const std::vector<uint32_t> index, swin_relative_index(window));
  const int64_t cells = window * window;
  const int64_t rows = (2 * window - 1) * (2 * window - 1);
  PreparedOperator op;
  VKF_ASSIGN(Tensor bias, looked_up(arguments, index, rows, {cells, cells}));
  op.ready.emplace("bias", std::move(bias));
  op.ready.emplace("index", index_tensor(index, {cells, cells}));
  return op;
}

}  // namespace vkformer
