// The lists of specialization constants (shaders/params/constants.h) against the SPIR-V of every
// kernel that declares them.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernel_constants.inc"
#include "kernels/spirv_instructions.h"
#include "plan/plan.h"
#include "software/strategies.h"

namespace vkformer::testing {
namespace {

struct ListedKernel {
  KernelId id;
  std::vector<uint32_t> defaults;  // of its list, by id
};

std::vector<ListedKernel> listed_kernels() {
#define VKF_CONSTANT_DEFAULT(id, name, field, otherwise) otherwise,
#define VKF_KERNEL(name, group, features, list) {KernelId::name, {list(VKF_CONSTANT_DEFAULT)}},
  return {
#include "kernel_list.inc"
  };
#undef VKF_KERNEL
}

// Defaults in the SPIR-V, by id; several where the id is also that of a workgroup's size.
std::multimap<uint32_t, uint32_t> defaults_in(const std::vector<uint32_t>& words) {
  constexpr uint32_t kDecorate = 71, kSpecId = 1, kSpecConstant = 50;
  std::map<uint32_t, uint32_t> ids;  // of specialization constants, by result
  std::multimap<uint32_t, uint32_t> found;
  for (const Instruction& in : instructions(words)) {
    if (in.op == kDecorate && in.operands[1] == kSpecId) ids[in.operands[0]] = in.operands[2];
    if (in.op == kSpecConstant) found.emplace(ids.at(in.operands[1]), in.operands[2]);
  }
  return found;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every kernel's specialization constants are those of its list") {
    std::map<std::string, std::set<uint32_t>> used;  // ids, by list
    std::map<std::string, size_t> declared;
    for (const ListedKernel& kernel : listed_kernels()) {
      const KernelInfo& info = kernel_info(kernel.id);
      CAPTURE(info.name);
      CHECK(info.constants == kernel.defaults.size());
      if (info.words == 0) continue;  // needs a feature that this build leaves out
      const auto interface = kernel_interface(kernel.id);
      REQUIRE(interface);
      const std::string list(info.constants_list);
      declared[list] = info.constants;
      for (const auto& [id, value] : defaults_in(kernel_spirv(kernel.id))) {
        CAPTURE(id);
        REQUIRE(id < info.constants);
        used[list].insert(id);
        // The size of a workgroup has a default besides that of the constant.
        if (id != interface->local_size_spec_id[0]) CHECK(value == kernel.defaults[id]);
      }
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
