// Norms of decoding steps that the products behind them take over: y = act(norm(x) W + bias) in one
// dispatch instead of two and a barrier. Works on the plan, after every operator was lowered.
#pragma once

#include "plan/plan.h"

namespace vkformer {

// Removes each dispatch of rms_norm or layer_norm whose result only products of a few rows read, if
// these take it over: matmul_rows and matmul_stream, without an addend, whose binding the gain
// needs. Every workgroup of them computes the norm again, so only where they are few.
void fold_norms(Plan& plan, const DeviceCaps& caps);

}  // namespace vkformer
