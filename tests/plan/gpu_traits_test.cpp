// What kernels may ask of a GPU by its vendor.
#include "plan/gpu_traits.h"

#include <doctest/doctest.h>

#include <string>

#include "ops/matmul_table.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("every row of the GPUs' traits has a reason and numbers that the kernels take") {
    for (const GpuTraitsRow& row : gpu_traits_rows()) {
      CAPTURE(row.vendor);
      CHECK(row.vendor != 0);
      CHECK_FALSE(row.reason.empty());
      const GpuTraits& t = row.traits;
      for (const uint32_t block : {t.matmul_block, t.matmul_packed_block}) {
        CHECK((block == 16 || block == 32 || block == 64 || block == 128));
      }
      for (const uint32_t rows :
           {t.matmul_rows, t.matmul_packed_rows, t.matmul_dot_rows, t.matmul_dot_rows_of_16}) {
        CHECK((rows >= 1 && rows <= 8));
      }
      CHECK((t.attention_queries == 1 || t.attention_queries == 2 || t.attention_queries == 4));
      CHECK(gpu_traits(row.vendor, std::string(row.driver_part)) == t);
    }
    CHECK(gpu_traits(0x1234, "a driver of nobody") == GpuTraits{});
  }

  TEST_CASE("no product takes a block above its GPU's traits") {
    for (const GpuTraitsRow& row : gpu_traits_rows()) {
      DeviceCaps caps;
      caps.device_class = DeviceClass::kIntegrated;
      caps.limits.max_invocations = 1024;
      caps.limits.max_group_size = {1024, 1024, 64};
      caps.gpu = row.traits;
      CAPTURE(row.vendor);
      for (const MatmulTableRow& choice : matmul_table(caps)) {
        if (choice.choice.strategy != MatmulStrategy::kTiled) continue;
        CHECK(choice.choice.rows <= row.traits.matmul_block);
      }
      CHECK(matmul_table(caps).back().choice.rows == row.traits.matmul_block);
    }
  }
}

}  // namespace vkformer::testing
