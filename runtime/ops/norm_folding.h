// Norms of decoding steps that the products behind them take over: y = act(norm(x) W + bias) in one
// dispatch instead of two and a barrier. Works on the plan, after every operator was lowered.
#pragma once

#include "plan/plan.h"

namespace vkformer {

// Removes each dispatch of rms_norm or layer_norm whose result only products by matmul_rows read,
// if these take it over: on GPUs, of few rows, without an addend, whose binding the gain needs.
// Every workgroup of them computes the norm again, so only where they are few.
void fold_norms(Plan& plan, const DeviceCaps& caps);

}  // namespace vkformer
