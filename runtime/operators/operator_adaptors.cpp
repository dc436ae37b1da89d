#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

constexpr OperatorAdaptor kAdaptors[] = {
#define VKF_CALL(name) {#name, prepare_##name},
#include "ops/op_list.def"
};

}  // namespace

std::span<const OperatorAdaptor> operator_adaptors() {
  return kAdaptors;
}

}  // namespace vkformer
