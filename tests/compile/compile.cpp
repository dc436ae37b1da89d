// Makes every pipeline that the checks of conformance and the rows of `vkformer bench operators`
// plan on a device, in all ways, and runs none. For drivers that compile for hardware which is not
// there, such as Mesa's RADV with RADV_FORCE_FAMILY.
//
//   vkformer_compile [--only PART] [--benchmark]
//
// --only: kernels whose names have this part; --benchmark: the rows alone. Every pipeline is named
// on stderr before it is made, so that what RADV_DEBUG=shaderstats prints there has a heading. The
// device: VKFORMER_TEST_DEVICE, _TIER, _LIMITS.
#include <cstdio>
#include <set>
#include <string>

#include "conformance/benchmark_operators.h"
#include "conformance/cases.h"
#include "conformance/kernels.h"
#include "conformance/variations.h"
#include "ops/op.h"
#include "support/test_options.h"
#include "vulkan/device_impl.h"

using namespace vkformer;

namespace {

class Compiler {
 public:
  Compiler(VulkanDevice& device, std::string only) : device_(device), only_(std::move(only)) {}

  void make(const std::string& what, const Plan& plan) {
    for (const Dispatch& d : plan.dispatches) {
      const std::string name = conformance::name_of(d.kernel);
      if (name.find(only_) == name.npos || !seen_.insert({name, d.spec}).second) continue;
      kernels_.insert(name);
      std::string line = name;
      for (const uint32_t value : d.spec) line += " " + std::to_string(value);
      std::fprintf(stderr, "PIPELINE %s (%s)\n", line.c_str(), what.c_str());
      const auto made = device_.impl().pipelines->get(d.kernel, d.spec);
      if (made) continue;
      ++failures_;
      std::printf("FAILED %s: %s\n", line.c_str(), made.error().message.c_str());
    }
  }
  void refuse(const std::string& what, const Error& error) {
    ++refused_;
    std::fprintf(stderr, "REFUSED %s: %s\n", what.c_str(), error.message.c_str());
  }
  int finish() const {
    std::printf("compile: %zu pipelines of %zu kernels, %d plans refused, %d failed\n",
                seen_.size(), kernels_.size(), refused_, failures_);
    return failures_ == 0 && !seen_.empty() ? 0 : 1;
  }

 private:
  VulkanDevice& device_;
  std::string only_;
  std::set<std::pair<std::string, std::vector<uint32_t>>> seen_;
  std::set<std::string> kernels_;
  int refused_ = 0;
  int failures_ = 0;
};

void make_rows(Compiler& compiler, const DeviceCaps& caps) {
  for (const OperatorRow& row : operator_rows()) {
    const std::string what = std::string(row.op) + ", " + row.model;
    const auto made = make_operator_graph(row);
    if (!made) {
      compiler.refuse(what, made.error());
      continue;
    }
    const auto plan = make_plan(made->graph, caps, Precision::kF32);
    if (plan) compiler.make(what, *plan);
    if (!plan) compiler.refuse(what, plan.error());
  }
}

void make_checks(Compiler& compiler, const DeviceCaps& caps) {
  for (const conformance::Check& check : conformance::all_checks()) {
    const auto made = check.make();
    if (!made) {
      compiler.refuse(check.name, made.error());
      continue;
    }
    for (const auto& variation : conformance::variations_of(caps, check, *made)) {
      const auto plan = make_plan(made->op.graph, variation.caps, made->precision);
      if (plan) compiler.make(check.name + "/" + variation.name, *plan);
      if (!plan) compiler.refuse(check.name + "/" + variation.name, plan.error());
    }
  }
}

}  // namespace

int main(int count, char** list) {
  std::string only;
  bool benchmark = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = list[i];
    if (word == "--benchmark") {
      benchmark = true;
    } else if (word == "--only" && i + 1 < count) {
      only = list[++i];
    } else {
      std::fprintf(stderr, "usage: vkformer_compile [--only PART] [--benchmark]\n");
      return 2;
    }
  }
  DeviceOptions options = test_device_options();
  options.compile_threads = 0;
  // Hardware that is not there has nothing to wait for.
  DeviceTweaks tweaks;
  tweaks.timeline = DeviceTweaks::Timeline::kFences;
  auto device = VulkanDevice::create_tweaked(options, tweaks);
  if (!device) {
    std::fprintf(stderr, "compile: %s\n", device.error().message.c_str());
    return 1;
  }
  Compiler compiler(**device, only);
  make_rows(compiler, (*device)->caps());
  if (!benchmark) make_checks(compiler, (*device)->caps());
  return compiler.finish();
}
