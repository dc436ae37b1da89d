#include "conformance/variations.h"

#include <algorithm>

#include "ops/matmul_table.h"
#include "software/strategies.h"

namespace vkformer::conformance {
namespace {

// The same device at that tier, without demotions and tuning: all kernels are to be checked.
DeviceCaps at_tier(const DeviceCaps& caps, Tier tier) {
  DeviceCaps lesser = caps;
  lesser.tier = tier;
  lesser.demoted.clear();
  lesser.tuned_matmul = {};
  return lesser;
}

struct Way {
  const char* name;
  bool (*apply)(DeviceCaps& caps);  // false: no other than the device's own
};
constexpr Way kWays[] = {
    {"", [](DeviceCaps&) { return true; }},
    {"-wide",
     [](DeviceCaps& c) {
       const bool other = c.device_class != DeviceClass::kDiscrete;
       c.device_class = DeviceClass::kDiscrete;
       return other;
     }},
    {"-no-matrix2",
     [](DeviceCaps& c) {
       const bool other = c.matrix2();
       c.device_class = DeviceClass::kDiscrete;
       c.has_matrix2 = false;
       return other;
     }},
    {"-software",
     [](DeviceCaps& c) {
       const bool other = c.device_class != DeviceClass::kSoftware;
       c.device_class = DeviceClass::kSoftware;
       return other;
     }},
    {"-no-int64",
     [](DeviceCaps& c) {
       const bool other = c.int64();
       c.compiler.has_int64 = false;
       return other;
     }},
    {"-streams",
     [](DeviceCaps& c) {
       c.device_class = DeviceClass::kSoftware;
       c.compiler.fast_uniform_loads = c.compiler.streams_uniform_loads = true;
       return c.int64() && has_software_strategies();
     }},
    {"-literal",
     [](DeviceCaps& c) {
       c.device_class = DeviceClass::kSoftware;
       c.compiler.wants_literals = true;
       c.compiler.has_int64 = false;  // as in SwiftShader, whose kernels these are
       return c.literal_tiles() && has_software_strategies();
     }},
};

}  // namespace

std::vector<Variation> variations_of(const DeviceCaps& caps, const Check& check,
                                     const CheckCase& made) {
  uint32_t rows = 0;
  if (check.op == "matmul") {
    const Shape& shape = made.expected.begin()->second.values.shape;
    rows = static_cast<uint32_t>(shape[shape.size() - 2]);
  }
  std::vector<Variation> list;
  for (int tier = static_cast<int>(caps.tier); tier >= 0; --tier) {
    const DeviceCaps own = at_tier(caps, static_cast<Tier>(tier));
    const std::string name = choice_name(own.tier);
    for (const Way& way : kWays) {
      DeviceCaps varied = own;
      if (!way.apply(varied)) continue;
      list.push_back({own.tier, name + way.name, varied});
      if (rows == 0) continue;
      for (const MatmulChoice& choice : matmul_candidates(varied, rows, made.precision)) {
        DeviceCaps tuned = varied;
        tuned.tuned_matmul = {std::vector{choice}, std::vector{choice}};
        std::string text = choice_text(choice);
        std::replace(text.begin(), text.end(), ' ', '-');
        list.push_back({own.tier, name + way.name + "-" + text, std::move(tuned)});
      }
    }
  }
  return list;
}

}  // namespace vkformer::conformance
