// Q, K and V of a call, one after the other in one tensor. The attention operators that are linear
// in the number of keys use it: linear_attention, performer_attention and linformer_attention.
#pragma once

#include "operators/operator_arguments.h"
#include "ops/attention.h"

namespace vkformer {

struct HeadOperands {
  Shape q;  // (B, H, T, E)
  Shape k;  // (B, H, S, E)
  Shape v;  // (B, H, S, Ev)
  TensorId x = kNoTensor;
  TensorId mask = kNoTensor;

  uint32_t batch() const { return static_cast<uint32_t>(q[0]); }
  uint32_t heads() const { return static_cast<uint32_t>(q[1]); }
  uint32_t queries() const { return static_cast<uint32_t>(q[2]); }
  uint32_t keys() const { return static_cast<uint32_t>(k[2]); }
  uint32_t head_width() const { return static_cast<uint32_t>(q[3]); }
  uint32_t value_width() const { return static_cast<uint32_t>(v[3]); }
  HeadLayout q_layout() const { return separate_heads(heads(), queries(), head_width(), 0); }
  HeadLayout k_layout() const {
    return separate_heads(heads(), keys(), head_width(), static_cast<uint32_t>(element_count(q)));
  }
  HeadLayout v_layout() const {
    return separate_heads(heads(), keys(), value_width(),
                          static_cast<uint32_t>(element_count(q) + element_count(k)));
  }
  Shape y_shape() const { return {q[0], q[1], q[2], v[3]}; }
};

// Binds the inputs Q, K and V, and key_mask (B, S) where it is given.
Result<HeadOperands> bind_head_operands(const OperatorArguments& arguments, PreparedOperator& op);

}  // namespace vkformer
