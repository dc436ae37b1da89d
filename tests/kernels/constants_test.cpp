// The lists of specialization constants (shaders/params/constants.h). The build checks that they
// have what the SPIR-V has (cmake/constant_checks.cmake).
#include <map>
#include <set>
#include <string>

#include "kernel_constants.inc"
#include "plan/plan.h"
#include "software/strategies.h"

namespace vkformer::testing {

TEST_SUITE("cpu") {
  TEST_CASE("every listed specialization constant is in the SPIR-V of a kernel") {
    std::map<std::string, std::set<uint32_t>> used;  // ids, by list
    std::map<std::string, size_t> declared;
    for (uint32_t i = 0; i < static_cast<uint32_t>(KernelId::kCount); ++i) {
      const auto id = static_cast<KernelId>(i);
      const KernelInfo& info = kernel_info(id);
      if (info.words == 0) continue;  // needs a feature that this build omits
      const auto interface = kernel_interface(id);
      REQUIRE(interface);
      const std::string list(info.constants_list);
      declared[list] = info.constants;
      used[list].insert(interface->spec_ids.begin(), interface->spec_ids.end());
    }
    CHECK(declared.size() > (has_software_strategies() ? 40 : 30));
    for (const auto& [list, count] : declared) {
      CAPTURE(list);
      CHECK(used[list].size() == count);
    }
  }

  TEST_CASE("constants are set and read by name, and keep their default where none is given") {
    Dispatch d;
    d.set_constants(MatmulTiledConstants{.block = 32, .wide = 3});
    CHECK(d.spec == std::vector<uint32_t>{128, 32, 8, 4, 255, 0, 0, 3, 1, 0});
    CHECK(d.spec[MatmulTiledConstants::kWide] == 3);
    CHECK(d.spec_list == kernel_info(KernelId::matmul_tiled__f32_f32_f32).constants_list);
    const auto read = d.constants_as<MatmulTiledConstants>();
    CHECK(read.block == 32);
    CHECK(read.tile_m == 8);
  }
}

}  // namespace vkformer::testing
