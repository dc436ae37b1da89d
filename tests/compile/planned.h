// The pipelines that plans need on a device, each once: what vkformer_compile makes.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/benchmark_operators.h"
#include "plan/plan.h"
#include "vkformer/model.h"
#include "vkformer/model_source.h"

namespace vkformer::compile {

struct PlannedPipeline {
  KernelId kernel{};
  std::vector<uint32_t> spec;
  std::string what;                            // the row or check that needs it first
  std::array<uint32_t, 3> groups = {0, 0, 0};  // of that one's dispatch
  double flops = 0;                            // likewise
  int uses = 0;                                // dispatches of all plans
  bool benchmark = false;                      // a row needs it
  // The planner takes it for this device by itself, not only where a check asks for another way.
  bool chosen = false;
  bool model = false;         // so is the pass of one of the benchmark's models
  bool estimated = false;     // the model of time goes by it
  bool reproducible = false;  // Dispatch::reproducible

  // "local_size=64 rows=1"; a value without a name in the kernel's list has its number.
  std::string constants() const;
};

// Whether pipelines of a plan are what the device would take, and what asked for the plan.
struct PlanOrigin {
  std::string what;
  bool benchmark = false;
  bool chosen = false;
  bool model = false;
  bool estimated = true;
};

class PlannedPipelines {
 public:
  // `only`: a part of the names of kernels that count.
  explicit PlannedPipelines(std::string only) : only_(std::move(only)) {}

  void add(const PlanOrigin& origin, const Plan& plan);
  void refuse(const PlanOrigin& origin, const Error& error);
  // Everything that the rows of `vkformer bench operators` need.
  void add_rows(const DeviceCaps& caps, Precision precision = Precision::kF32);
  // The same in halves, and products of 1 to 512 rows with weights of every format in every
  // precision, which the rows lack.
  void add_precisions(const DeviceCaps& caps);
  // What one operator needs: "matmul; gemm/f16; {}; A=1,768 B=768,768", as the rows have it.
  Status add_row(const DeviceCaps& caps, const std::string& text, Precision precision);
  // Everything that the passes of one model need; each is for the part of the model that needs it
  // first.
  Status add_passes(const DeviceCaps& caps, const ModelSource& source, const ModelOptions& options,
                    const SessionSizes& sizes);
  // Everything that plans of the models of `vkformer bench models` need.
  void add_models(const DeviceCaps& caps) { add_models(caps, true); }
  // The same where blocks, rows and queries are others than the device's vendor gets: what the
  // model of time is asked to choose from.
  void add_choices(const DeviceCaps& caps);
  // Everything that the checks of conformance need, in all ways.
  void add_checks(const DeviceCaps& caps);

  // In the order in which plans need them.
  const std::vector<PlannedPipeline>& list() const { return list_; }
  int refused() const { return refused_; }

 private:
  void add_models(const DeviceCaps& caps, bool chosen);
  void add_row(const DeviceCaps& caps, const OperatorRow& row, Precision precision,
               bool estimated = true);

  std::string only_;
  std::map<std::pair<KernelId, std::vector<uint32_t>>, size_t> places_;
  std::vector<PlannedPipeline> list_;
  int refused_ = 0;
};

}  // namespace vkformer::compile
