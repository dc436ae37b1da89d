// needs: MatmulParams p, kActivation; with VKF_TABLES kTerms (includes activation.glsl).
// What a product has beside its sums: bias, addend, activation and gate.
#ifndef VKF_MATMUL_TERMS_GLSL
#define VKF_MATMUL_TERMS_GLSL
#include "activation.glsl"

#if VKF_TABLES  // constants there, so that nothing is loaded for what is absent
bool has_bias() { return (kTerms & kTermBias) != 0u; }
bool has_addend() { return (kTerms & kTermAddend) != 0u; }
#else
bool has_bias() { return p.bias_offset != kMatmulNone; }
bool has_addend() { return p.c_offset != kMatmulNone; }
#endif

uint epilogue() { return kActivation == 255u ? p.activation : kActivation; }
bool has_gate() { return (epilogue() & kActivationGate) != 0u; }
#endif
