// How a matrix product becomes dispatches: operand layouts, the choice of strategy, launch sizes.
// Internal to matmul; matmul.h is the operator.
#pragma once

#include "ops/matmul.h"
#include "ops/matmul_table.h"
#include "params/matmul.h"

namespace vkformer {

// What a matmul node carries: both forms, what the lowering needs of a packed weight, and what
// fusion put into it. Inputs: x or a, the weight or b, then c, the residual or the norm's gains.
struct MatmulNodeAttrs {
  MatmulAttrs matmul;
  LinearWeight weight;  // tensor == kNoTensor for two graph tensors
  // Of packed weights only. A gated product has no third input.
  GatePairs gate = GatePairs::kNo;
  enum class Third : uint8_t { kC, kResidual, kGains } third = Third::kC;
  uint32_t norm = kNormNone;  // of x's rows: kNormRms or kNormLayer, where the third are gains
  float norm_epsilon = 0;
};

// The attributes of a matmul node in words, for dumps.
std::string matmul_text(const MatmulNodeAttrs& attrs);

// Whether the products of a linear layer without a third input can normalize their rows. They can
// for as many rows as matmul_rows takes for a GPU's step, in few workgroups, each of which repeats
// the norm.
bool products_take_norm(const Graph& graph, const Node& linear, const DeviceCaps& caps,
                        Precision precision);

// One product with every offset and stride resolved.
struct MatmulProblem {
  MatmulParams params{};
  uint32_t batch = 1;
  MatrixFormat format = MatrixFormat::kF32;  // of B
  uint32_t norm = kNormNone;                 // of A's rows; only matmul_rows has one
  bool rows_are_slots = false;  // a decoding step: M is the capacity, live rows come first
};

// The only heuristic: depends on M (in a step the capacity) and the operands' layouts, never on how
// many rows are live. What is wanted (or, without it, tuned) where it takes the product, else the
// first row of the table that does (matmul_table.h).
MatmulChoice pick_matmul(const MatmulProblem& problem, const DeviceCaps& caps,
                         Precision precision = Precision::kF32,
                         const MatmulChoice* wanted = nullptr);

// The number of parts of K whose sums are stored separately, for matmul_parts to add in order into
// Y. 0: the product computes Y itself. matmul_tiled takes parts where its blocks are too few to
// fill the device. matmul_stationary stores one part where Y has fewer columns than there are sums.
uint32_t parts_of_k(const MatmulProblem& problem, const DeviceCaps& caps,
                    const MatmulChoice& choice);

// Where the sums of parts lie: rows that begin at multiples of 4, one matrix after the other.
struct PartsLayout {
  uint32_t row_stride, matrix;  // elements
  uint64_t bytes;               // of all
};
PartsLayout parts_layout(const MatmulProblem& problem, uint32_t parts);

// Kernel, specialization and groups of one problem that the choice fits; bindings are the
// caller's. With parts Y is the sums of parts.
Dispatch launch_matmul(const Node& node, const MatmulProblem& problem, const DeviceCaps& caps,
                       Precision precision, const MatmulChoice& choice, uint32_t parts = 0);

// How the product uses its result: what matmul_stationary has summed up so far lies there.
Access result_access(const Dispatch& product);

// What makes Y of the sums of parts.
Dispatch launch_parts(const Node& node, const MatmulProblem& problem, uint32_t parts);

// Why a device has no kernel for products over K = `k` steps, if it has none.
Status check_product_depth(const DeviceCaps& caps, OpId op, uint64_t k);

// What a product reads and writes.
struct ProductTensors {
  TensorId a = kNoTensor;
  TensorId b = kNoTensor;
  TensorId third = kNoTensor;  // c, residual or gains, or none
  BoundBuffer y;               // written
};

// Appends the dispatches of one product: the chosen kernel's, and the one that adds its parts.
Status emit_product(LowerContext& context, const Node& node, const MatmulProblem& problem,
                    Precision precision, const ProductTensors& tensors);

}  // namespace vkformer
