#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

constexpr OperatorAdaptor kAdaptors[] = {
    {"activation", prepare_activation},
    {"additive_attention", prepare_additive_attention},
    {"alibi_bias", prepare_alibi_bias},
    {"argmax", prepare_argmax},
    {"attention", prepare_attention},
    {"attention_weights", prepare_attention_weights},
    {"batch_norm", prepare_batch_norm},
    {"combine", prepare_combine},
    {"concat_columns", prepare_concat_columns},
    {"conv1d", prepare_conv1d},
    {"conv2d", prepare_conv2d},
    {"embedding", prepare_embedding},
    {"gated_activation", prepare_gated_activation},
    {"gather_rows", prepare_gather_rows},
    {"gemm", prepare_gemm},
    {"group_norm", prepare_group_norm},
    {"gru", prepare_gru},
    {"layer_norm", prepare_layer_norm},
    {"linear_attention", prepare_linear_attention},
    {"linformer_attention", prepare_linformer_attention},
    {"log_softmax", prepare_log_softmax},
    {"lsh_attention", prepare_lsh_attention},
    {"lsh_hash", prepare_lsh_hash},
    {"lstm", prepare_lstm},
    {"mean_pool", prepare_mean_pool},
    {"mu_law", prepare_mu_law},
    {"nystrom_attention", prepare_nystrom_attention},
    {"performer_attention", prepare_performer_attention},
    {"rms_norm", prepare_rms_norm},
    {"rotary", prepare_rotary},
    {"row_entropy", prepare_row_entropy},
    {"sinusoidal_positions", prepare_sinusoidal_positions},
    {"sliding_window_attention", prepare_attention},
    {"softmax", prepare_softmax},
    {"swin_relative_position", prepare_swin_relative_position},
    {"t5_relative_position", prepare_t5_relative_position},
    {"top_k", prepare_top_k},
};

}  // namespace

std::span<const OperatorAdaptor> operator_adaptors() {
  return kAdaptors;
}

}  // namespace vkformer
