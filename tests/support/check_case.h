// Runs a case of conformance/cases on one device of the tests.
#pragma once

#include "conformance/check.h"
#include "support/operator_check.h"

namespace vkformer::testing {

// Over poisoned memory, several times; compares every expected output and returns all of them.
inline TensorMap check_case_on(const TierDevice& device, const conformance::CheckCase& made) {
  TensorMap outputs = run_poisoned(device, made.op, {made.precision, made.live_slots});
  if (made.op.finish != nullptr) outputs = made.op.finish(std::move(outputs)).value();
  for (const auto& [name, expected] : made.expected) {
    REQUIRE(outputs.count(name) == 1);
    const conformance::Comparison comparison =
        conformance::compare(name, outputs.at(name), expected);
    CHECK_MESSAGE(comparison.message.empty(), comparison.message);
  }
  return outputs;
}

}  // namespace vkformer::testing
