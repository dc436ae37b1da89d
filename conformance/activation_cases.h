// Checks of activations, alone and as gates: every kind over rows of every size.
#pragma once

#include "conformance/cases.h"
#include "reference/activation.h"

namespace vkformer::conformance {

using ActivationReference = Result<Array> (*)(const Array& x, reference::ActivationKind kind);

// The operator named so, of rows `x`. Errors grow with the gated value: `magnitude`.
Result<CheckCase> activation_case(const char* op, const Array& x, const std::string& kind,
                                  ActivationReference reference, double magnitude);

// Of every kind, rows of every size with columns that are multiples of `factor`.
void add_activation_checks(OperatorCases& cases, int64_t factor,
                           Result<CheckCase> (*make)(const Array& x, const std::string& kind));

inline constexpr const char* kActivationKinds[] = {
    "gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "tanh", "sigmoid", "elu_plus_one"};

}  // namespace vkformer::conformance
