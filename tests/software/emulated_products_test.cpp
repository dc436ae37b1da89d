// Products of software devices with emulated subgroups.
#include "conformance/emulated_subgroups.h"

namespace vkformer::testing {

TEST_SUITE("gpu") {
  TEST_CASE("wide products of software devices are right with subgroups of 16") {
    if (!has_subgroups()) return;
    CHECK(run_emulated(16, DeviceClass::kSoftware, {"matmul/f16/", "matmul/strided"}).size() == 2);
  }
}

}  // namespace vkformer::testing
