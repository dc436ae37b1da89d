#include "session/operator_adaptors.h"

namespace vkformer {
namespace {

constexpr OperatorAdaptor kAdaptors[] = {
    {"activation", prepare_activation},
    {"argmax", prepare_argmax},
    {"attention", prepare_attention},
    {"attention_weights", prepare_attention_weights},
    {"embedding", prepare_embedding},
    {"gated_activation", prepare_gated_activation},
    {"gemm", prepare_gemm},
    {"layer_norm", prepare_layer_norm},
    {"log_softmax", prepare_log_softmax},
    {"mean_pool", prepare_mean_pool},
    {"rms_norm", prepare_rms_norm},
    {"row_entropy", prepare_row_entropy},
    {"sinusoidal_positions", prepare_sinusoidal_positions},
    {"sliding_window_attention", prepare_attention},
    {"softmax", prepare_softmax},
    {"top_k", prepare_top_k},
};

}  // namespace

std::span<const OperatorAdaptor> operator_adaptors() {
  return kAdaptors;
}

}  // namespace vkformer
