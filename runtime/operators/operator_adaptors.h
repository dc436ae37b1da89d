// The operators that run_operator knows: one adaptor each, which checks an OperatorCall and turns
// it into a graph of that operator. The explicit list is in operator_adaptors.cpp;
// docs/operators.md documents inputs, attributes and outputs.
#pragma once

#include <span>

#include "operators/operator_arguments.h"

namespace vkformer {

struct OperatorAdaptor {
  const char* name;
  Result<PreparedOperator> (*prepare)(const OperatorArguments& arguments);
};

// Every adaptor, in name order.
std::span<const OperatorAdaptor> operator_adaptors();

// operator_adaptors_attention.cpp; attention also serves sliding_window_attention
Result<PreparedOperator> prepare_attention(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_attention_weights(const OperatorArguments& arguments);

// operator_adaptors_conv.cpp
Result<PreparedOperator> prepare_batch_norm(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_conv1d(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_conv2d(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_group_norm(const OperatorArguments& arguments);

// operator_adaptors_linear.cpp
Result<PreparedOperator> prepare_linear_attention(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_linformer_attention(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_performer_attention(const OperatorArguments& arguments);

// operator_adaptors_landmarks.cpp
Result<PreparedOperator> prepare_lsh_attention(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_lsh_hash(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_nystrom_attention(const OperatorArguments& arguments);

// operator_adaptors_moves.cpp
Result<PreparedOperator> prepare_combine(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_concat_columns(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_gather_rows(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_mu_law(const OperatorArguments& arguments);

// operator_adaptors_positions.cpp
Result<PreparedOperator> prepare_alibi_bias(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_rotary(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_swin_relative_position(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_t5_relative_position(const OperatorArguments& arguments);

// operator_adaptors_recurrent.cpp
Result<PreparedOperator> prepare_additive_attention(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_gru(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_lstm(const OperatorArguments& arguments);

// operator_adaptors_rows.cpp
Result<PreparedOperator> prepare_activation(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_gated_activation(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_gemm(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_layer_norm(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_mean_pool(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_rms_norm(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_softmax(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_log_softmax(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_row_entropy(const OperatorArguments& arguments);

// operator_adaptors_tokens.cpp
Result<PreparedOperator> prepare_argmax(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_embedding(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_sinusoidal_positions(const OperatorArguments& arguments);
Result<PreparedOperator> prepare_top_k(const OperatorArguments& arguments);

}  // namespace vkformer
