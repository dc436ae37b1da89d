#include "vkformer/estimate.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "conformance/estimates/data_sheets.h"
#include "conformance/estimates/recorded_gpus.h"
#include "conformance/kernels.h"
#include "measure/conformance_support.h"
#include "measure/planned_passes.h"

namespace vkformer {
namespace {

using estimates::CompiledKernel;
using estimates::DataSheet;
using estimates::DispatchTime;
using estimates::GpuRates;
using estimates::RecordedGpu;

constexpr double kMilli = 1e-3, kMicro = 1e-6, kGiga = 1e9;

// What plans are made and timed for.
struct Target {
  const DeviceCaps& caps;
  const GpuRates& rates;
  const RecordedGpu* recorded;  // null: nothing was compiled
};

// Why a kernel's time is less certain; "" where this pipeline was compiled.
const char* assumption(const Target& target, const RecordedGpu::Found& found) {
  if (target.recorded == nullptr || found.exact) return "";
  return found.kernel ? "another pipeline of it was compiled" : "it was not compiled";
}

class PassTimer {
 public:
  explicit PassTimer(const Target& target) : target_(target) {}

  void add(const Dispatch& d) {
    const std::string name = conformance::name_of(d.kernel);
    RecordedGpu::Found found;
    if (target_.recorded) found = target_.recorded->find(name, d.spec);
    const DispatchTime time = time_of(d, found.kernel, target_.rates);
    const double bound = time.bound();
    double& term = bound == time.arithmetic  ? pass_.arithmetic_ms
                   : bound == time.bandwidth ? pass_.bandwidth_ms
                                             : pass_.latency_ms;
    term += bound / kMilli;
    pass_.launch_ms += time.launch / kMilli;
    pass_.ms += time.total() / kMilli;
    ++pass_.dispatches;
    pass_.flops += d.flops;
    pass_.bytes += d.bytes;
    EstimatedKernel& kernel = kernels_[name];
    kernel.kernel = name;
    ++kernel.dispatches;
    kernel.ms += time.total() / kMilli;
    if (kernel.assumed.empty()) kernel.assumed = assumption(target_, found);
  }
  EstimatedPass finish() {
    for (auto& [name, kernel] : kernels_) pass_.kernels.push_back(std::move(kernel));
    std::stable_sort(
        pass_.kernels.begin(), pass_.kernels.end(),
        [](const EstimatedKernel& a, const EstimatedKernel& b) { return a.ms > b.ms; });
    return std::move(pass_);
  }

 private:
  const Target& target_;
  EstimatedPass pass_;
  std::map<std::string, EstimatedKernel> kernels_;
};

Result<ModelEstimate> estimate(const Target& target, const ModelSource& source,
                               const ModelOptions& options, const SessionSizes& sizes) {
  VKF_ASSIGN(std::vector<Plan> plans, plan_passes(target.caps, source, options, sizes));
  ModelEstimate made{
      .device = target.caps.name, .driver = target.caps.driver, .tier = target.caps.tier};
  std::vector<EstimatedPass> passes;
  for (Plan& plan : plans) {
    estimates::settle_step(plan);
    PassTimer timer(target);
    for (const Dispatch& d : plan.dispatches) timer.add(d);
    passes.push_back(timer.finish());
  }
  made.first = std::move(passes.front());
  if (passes.size() > 1) made.step = std::move(passes.back());
  return made;
}

// No row of the roofline says how many units a device has or what its memory's latency is.
Result<GpuRates> rates_of(const Roofline& roofline) {
  if (roofline.fma_gflops > 0 && roofline.copy_gbytes > 0) {
    return GpuRates{.clock = kGiga,
                    .issued = roofline.fma_gflops / 2,
                    .multiply_adds = roofline.fma_gflops / 2,
                    .bandwidth = roofline.copy_gbytes * kGiga,
                    .launch = (roofline.dispatch_us + roofline.barrier_us) * kMicro};
  }
  return invalid_argument(
      "[estimate] The roofline has no rates; take it from measure_roofline of this device.");
}

}  // namespace

std::vector<EstimatedGpu> estimated_gpus() {
  std::vector<EstimatedGpu> list;
  for (const DataSheet& sheet : estimates::data_sheets()) {
    const GpuRates& rates = sheet.rates;
    list.push_back({.chip = std::string(sheet.chip),
                    .product = std::string(sheet.product),
                    .target = std::string(sheet.target),
                    .fma_gflops = 2 * rates.units * rates.multiply_adds * rates.clock / kGiga,
                    .gbytes = rates.bandwidth / kGiga});
  }
  return list;
}

Result<ModelEstimate> estimate_model(const std::string& chip, const ModelSource& source,
                                     const ModelOptions& options, const SessionSizes& sizes) {
  return guarded([&]() -> Result<ModelEstimate> {
    const DataSheet* sheet = estimates::find_data_sheet(chip);
    if (sheet == nullptr) {
      std::string known;
      for (const DataSheet& one : estimates::data_sheets()) known += " " + std::string(one.chip);
      return invalid_argument(message({"[estimate] '", chip,
                                       "' is no chip with a data sheet; "
                                       "those are:",
                                       known, "."}));
    }
    VKF_ASSIGN(const RecordedGpu recorded, RecordedGpu::read(sheet->target));
    const DeviceCaps caps = caps_of(*sheet, recorded);
    VKF_ASSIGN(ModelEstimate made,
               estimate({caps, sheet->rates, &recorded}, source, options, sizes));
    made.device = sheet->product;
    return made;
  });
}

Result<ModelEstimate> estimate_model(const Device& device, const Roofline& roofline,
                                     const ModelSource& source, const ModelOptions& options,
                                     const SessionSizes& sizes) {
  return guarded([&]() -> Result<ModelEstimate> {
    if (!HandleAccess::impl(device)) {
      return invalid_argument("[estimate] The device is empty; make a Device first.");
    }
    VKF_ASSIGN(const GpuRates rates, rates_of(roofline));
    return estimate({capabilities_of(device), rates, nullptr}, source, options, sizes);
  });
}

}  // namespace vkformer
