// experts: the feed-forward layers that rows of a mixture have chosen, weighted and added up
// (Shazeer et al., 2017, "Outrageously large neural networks").
//
//   y_r = scale * sum over k of w_rk * down_e(act(up_e(x_r))), e and w_rk of routes (expert_route)
//         + w_rK * always_r + residual_r
//
//   x (..., D), routes (..., K + A, 2), up (D, X * N) and down (F, X * D) packed, always (..., D)
//   or none, residual (..., D) or none -> y (..., D)
//
// N is F, or with gates 2 F: pairs of a column of the gate projection and one of the up projection.
// With a limit l the gates are at most l, and the up projection is 1 + clamp(., -l, l) (OpenAI,
// 2025, gpt-oss).
//
// In a step, and with few rows, each choice reads its expert's weights. With many rows, choices are
// sorted by expert, and a workgroup multiplies some of one expert's; the GPU counts them. The rows
// are split so that the tensors between the two products fit into a binding.
#pragma once

#include "ops/matmul.h"

namespace vkformer {

// A weight of all experts: each one's columns begin at a whole panel of 64.
struct ExpertWeight {
  LinearWeight all;      // n: X times an expert's panels
  uint32_t experts = 0;  // X
  uint32_t n = 0;        // output features of one expert
};

struct ExpertsInputs {
  TensorId x = kNoTensor;
  TensorId routes = kNoTensor;
  TensorId always = kNoTensor;    // multiplied by the weight of the entry after the chosen ones
  TensorId residual = kNoTensor;  // added last
};

struct ExpertsAttrs {
  uint32_t choices = 1;  // K, entries of a row of routes that are experts
  ActivationKind activation = ActivationKind::kSilu;
  GatePairs gate = GatePairs::kPairs;
  float gate_limit = 0.0f;  // l; 0: none
  float scale = 1.0f;
};

// Inputs of a node, in order; slices of the weights beyond their first follow.
enum ExpertsInput : size_t {
  kExpertsX,
  kExpertsRoutes,
  kExpertsAlways,
  kExpertsResidual,
  kExpertsInputs
};

// The output's description, or why the inputs do not fit; always and residual may be null.
Result<TensorDesc> check_experts(const TensorDesc& x, const TensorDesc& routes,
                                 const ExpertWeight& up, const ExpertWeight& down,
                                 const ExpertsAttrs& attrs);

// Adds the node and returns y.
Result<TensorId> add_experts(Graph& graph, const ExpertsInputs& inputs, const ExpertWeight& up,
                             const ExpertWeight& down, const ExpertsAttrs& attrs);

Status lower_experts(LowerContext& context, const Node& node);

}  // namespace vkformer
