// Activation functions that kernels fuse after their sum; include/activation.glsl computes them.
#ifndef VKFORMER_PARAMS_ACTIVATION_H
#define VKFORMER_PARAMS_ACTIVATION_H
#include "types.h"
#ifdef __cplusplus
#define VKF_ACTIVATION inline constexpr uint32_t
#else
#define VKF_ACTIVATION const uint
#endif

VKF_ACTIVATION kActivationNone = 0u;
VKF_ACTIVATION kActivationRelu = 1u;
VKF_ACTIVATION kActivationGeluErf = 2u;
VKF_ACTIVATION kActivationGeluTanh = 3u;
VKF_ACTIVATION kActivationSilu = 4u;
VKF_ACTIVATION kActivationQuickGelu = 5u;  // x sigmoid(1.702 x)
VKF_ACTIVATION kActivationTanh = 6u;
VKF_ACTIVATION kActivationSigmoid = 7u;
VKF_ACTIVATION kActivationEluPlusOne = 8u;  // elu(x) + 1, the feature map of linear attention

// Added to the kind of a matrix product whose columns are pairs: y = kind(the first) * the second.
VKF_ACTIVATION kActivationGate = 64u;

#undef VKF_ACTIVATION
#endif
