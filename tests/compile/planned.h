// The pipelines that plans need on a device, each once: what vkformer_compile makes.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace vkformer::compile {

struct PlannedPipeline {
  KernelId kernel{};
  std::vector<uint32_t> spec;
  std::string what;                            // the row or check that needs it first
  std::array<uint32_t, 3> groups = {0, 0, 0};  // of that one's dispatch
  int uses = 0;                                // dispatches of all plans
  bool benchmark = false;                      // a row needs it
  // The planner takes it for this device by itself, not only where a check asks for another way.
  bool chosen = false;

  // "local_size=64 rows=1"; a value without a name in the kernel's list has its number.
  std::string constants() const;
};

// Whether pipelines of a plan are what the device would take, and what asked for the plan.
struct PlanOrigin {
  std::string what;
  bool benchmark = false;
  bool chosen = false;
};

class PlannedPipelines {
 public:
  // `only`: a part of the names of kernels that count.
  explicit PlannedPipelines(std::string only) : only_(std::move(only)) {}

  void add(const PlanOrigin& origin, const Plan& plan);
  void refuse(const PlanOrigin& origin, const Error& error);
  // Everything that the rows of `vkformer bench operators` need.
  void add_rows(const DeviceCaps& caps);
  // Everything that the checks of conformance need, in all ways.
  void add_checks(const DeviceCaps& caps);

  // In the order in which plans need them.
  const std::vector<PlannedPipeline>& list() const { return list_; }
  int refused() const { return refused_; }

 private:
  std::string only_;
  std::map<std::pair<KernelId, std::vector<uint32_t>>, size_t> places_;
  std::vector<PlannedPipeline> list_;
  int refused_ = 0;
};

}  // namespace vkformer::compile
