// Makes every pipeline that the checks of conformance and the rows and models of `vkformer bench`
// plan on a device, in all ways, and runs none. For drivers that compile for hardware which is not
// there (tools/drivers).
//
// Every pipeline is named on stderr before it is made, so that what a driver prints there has a
// heading. The device: VKFORMER_TEST_DEVICE, _TIER, _LIMITS.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compile/planned.h"
#include "compile/recording_file.h"
#include "compile/statistics_report.h"
#include "conformance/kernels.h"
#include "support/test_options.h"
#include "vulkan/device_impl.h"

using namespace vkformer;
using namespace vkformer::compile;

namespace {

struct Options {
  std::string only;
  bool benchmark = false;
  bool choices = false;
  bool reproducible = false;
  std::string model, weights = "stored";
  int64_t tokens = 512;
  std::vector<std::string> set;  // "block=128"
  std::vector<std::string> rows;
  std::string precision = "f32";
  std::string statistics, ir, record, replay;
};

int fail(const std::string& sentence) {
  std::fprintf(stderr, "compile: %s\n", sentence.c_str());
  return 1;
}

// Gives the named constants other values, in every pipeline whose kernel has them.
Status set_constants(const std::vector<std::string>& wanted, std::vector<PlannedPipeline>& list) {
  for (const std::string& text : wanted) {
    const size_t sign = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, sign);
    uint32_t value = 0;
    const char* const end = text.data() + text.size();
    const char* const begin = text.data() + std::min(sign + 1, text.size());
    const auto [last, error] = std::from_chars(begin, end, value);
    if (begin == end || last != end || error != std::errc()) {
      return invalid_argument("[" + text + "] is not NAME=VALUE with a number below 2^32.");
    }
    bool found = false;
    for (PlannedPipeline& one : list) {
      const auto names = conformance::constants_of(one.kernel);
      for (size_t i = 0; i < std::min(names.size(), one.spec.size()); ++i) {
        if (names[i] != name) continue;
        one.spec[i] = value;
        found = true;
      }
    }
    if (!found)
      return invalid_argument("[" + name + "] is a constant of no kernel that is planned.");
  }
  // Two that differed may be one now.
  std::set<std::pair<KernelId, std::vector<uint32_t>>> seen;
  std::erase_if(list, [&](const PlannedPipeline& one) {
    return !seen.insert({one.kernel, one.spec}).second;
  });
  return {};
}

class Compiler {
 public:
  Compiler(VulkanDevice& device, const Options& options)
      : device_(device), options_(options), report_(device, options.ir) {}

  StatisticsReport& report() { return report_; }
  // `requires`: the sizes of subgroups for which pipelines were planned; null: this device's.
  Status make(const PlannedPipeline& one, const std::map<KernelId, uint32_t>* required) {
    const std::string name = conformance::name_of(one.kernel);
    const std::string line = name + " " + one.constants();
    kernels_.insert(name);
    ++made_;
    std::fflush(stdout);  // a driver may print of the last one there
    std::fprintf(stderr, "PIPELINE %s (%s)\n", line.c_str(), one.what.c_str());
    const PipelineStore& store = *device_.impl().pipelines;
    const Status done = required == nullptr ? Status() : check_size(one, *required);
    const auto pipeline =
        done ? device_.impl().pipelines->get(one.kernel, one.spec, one.reproducible)
             : Result<Pipeline>(done.error());
    if (!pipeline) {
      ++failures_;
      std::printf("FAILED %s: %s\n", line.c_str(), pipeline.error().message.c_str());
      report_.add_failure(one, pipeline.error());
      return {};
    }
    if (options_.statistics.empty() && options_.ir.empty()) return {};
    VKF_ASSIGN(const CompiledPipeline compiled,
               store.compiled(one.kernel, one.spec, one.reproducible));
    return report_.add(one, compiled);
  }
  int finish(int refused) const {
    std::printf("compile: %d pipelines of %zu kernels, %d plans refused, %d failed\n", made_,
                kernels_.size(), refused, failures_);
    return failures_ == 0 && made_ > 0 ? 0 : 1;
  }

 private:
  Status check_size(const PlannedPipeline& one,
                    const std::map<KernelId, uint32_t>& required) const {
    const uint32_t planned = required.at(one.kernel);
    const uint32_t here = required_subgroup_size(device_.impl().context, one.kernel);
    if (planned == here) return {};
    const auto text = [](uint32_t size) { return size == 0 ? "any size" : std::to_string(size); };
    return unsupported("[subgroups] The pipeline was planned for subgroups of " + text(planned) +
                       ", and this device would have " + text(here) +
                       ". Record on the device itself.");
  }

  VulkanDevice& device_;
  const Options& options_;
  StatisticsReport report_;
  std::set<std::string> kernels_;
  int made_ = 0;
  int failures_ = 0;
};

Status plan(const Options& options, const DeviceCaps& caps, PlannedPipelines& planned) {
  if (!options.model.empty()) {
    VKF_ASSIGN(const WeightFormat weights, choice_from_name<WeightFormat>(options.weights));
    VKF_ASSIGN(const Precision precision, choice_from_name<Precision>(options.precision));
    return planned.add_passes(caps, ModelSource::directory(options.model),
                              {.weights = weights, .precision = precision},
                              {.tokens = options.tokens, .new_tokens = 1});
  }
  if (!options.rows.empty()) {
    VKF_ASSIGN(const Precision precision, choice_from_name<Precision>(options.precision));
    for (const std::string& row : options.rows) VKF_CHECK(planned.add_row(caps, row, precision));
    return {};
  }
  if (options.reproducible) {
    planned.add_rows(caps, Precision::kReproducible);
    return {};
  }
  planned.add_rows(caps);
  planned.add_models(caps);
  planned.add_precisions(caps);
  if (options.choices) planned.add_choices(caps);
  if (!options.benchmark) planned.add_checks(caps);
  return {};
}

int run(const Options& options) {
  DeviceOptions device_options = test_device_options();
  device_options.compile_threads = 0;
  // Hardware that is not there has nothing to wait for, and any number of units.
  DeviceTweaks tweaks;
  tweaks.timeline = DeviceTweaks::Timeline::kFences;
  tweaks.compute_units = DeviceTweaks::ComputeUnits::kUnknown;
  const bool wants = !options.statistics.empty() || !options.ir.empty();
  if (wants) tweaks.capture = Capture::kStatistics;
  if (!options.ir.empty()) tweaks.capture = Capture::kRepresentations;
  RecordedPipelines recorded;
  if (!options.replay.empty()) {
    auto read = read_recording(options.replay);
    if (!read) return fail(read.error().message);
    recorded = std::move(*read);
    tweaks.planted = recorded.kernels;
  }
  const auto device = VulkanDevice::create_tweaked(device_options, tweaks);
  if (!device) return fail(device.error().message);
  const Context& context = (*device)->impl().context;
  if (wants && context.capture == Capture::kNone) return fail(context.why_no_capture);

  PlannedPipelines planned(options.only);
  std::vector<PlannedPipeline> list = std::move(recorded.pipelines);
  if (options.replay.empty()) {
    const Status added = plan(options, (*device)->caps(), planned);
    if (!added) return fail(added.error().message);
    list = planned.list();
  } else {
    std::erase_if(list, [&](const PlannedPipeline& one) {
      return std::string(conformance::name_of(one.kernel)).find(options.only) == std::string::npos;
    });
  }
  const Status set = set_constants(options.set, list);
  if (!set) return fail(set.error().message);
  if (!options.record.empty()) {
    const Status written = write_recording(options.record, **device, list);
    if (!written) return fail(written.error().message);
    std::printf("compile: %zu pipelines recorded, %d plans refused\n", list.size(),
                planned.refused());
    return list.empty() ? 1 : 0;
  }
  Compiler compiler(**device, options);
  if (!options.only.empty()) compiler.report().only(options.only);
  if (!options.replay.empty()) compiler.report().planned_for(recorded.device);
  for (const PlannedPipeline& one : list) {
    const Status made =
        compiler.make(one, options.replay.empty() ? nullptr : &recorded.subgroup_sizes);
    if (!made) return fail(made.error().message);
  }
  if (!options.statistics.empty()) {
    const Status written = compiler.report().write(options.statistics);
    if (!written) return fail(written.error().message);
  }
  return compiler.finish(planned.refused());
}

}  // namespace

int main(int count, char** list) {
  Options options;
  CLI::App app(
      "Makes every pipeline that the checks of conformance and the rows and models of `vkformer "
      "bench` plan on a device, and runs none. The device: VKFORMER_TEST_DEVICE, "
      "VKFORMER_TEST_TIER, VKFORMER_TEST_LIMITS.");
  app.add_option("--only", options.only, "kernels whose names have this part");
  app.add_flag("--benchmark", options.benchmark,
               "the benchmark's rows and models alone, and products with weights of every format");
  app.add_flag("--reproducible", options.reproducible, "the rows in reproducible precision alone");
  app.add_flag("--choices", options.choices,
               "its models also with the blocks, rows and queries that other vendors get");
  auto* model = app.add_option("--model", options.model,
                               "what a model directory's prompt and step need, and nothing else");
  app.add_option("--weights", options.weights, "how weights are stored")->needs(model);
  app.add_option("--tokens", options.tokens, "tokens of its prompt")->needs(model);
  app.add_option("--row", options.rows,
                 "what one operator needs, and nothing else: "
                 "'OPERATOR; CALL; ATTRIBUTES; INPUTS' as in the benchmark's rows")
      ->allow_extra_args(false)
      ->excludes(model);
  app.add_option("--precision", options.precision, "arithmetic of these rows, or of the model");
  app.add_option("--set", options.set,
                 "NAME=VALUE: another value for a specialization constant of every kernel with it")
      ->allow_extra_args(false);
  app.add_option("--statistics", options.statistics,
                 "JSON file for what the driver's compiler says of each pipeline");
  app.add_option("--ir", options.ir, "folder for the texts that the driver's compiler prints");
  auto* record = app.add_option(
      "--record", options.record,
      "file for the pipelines as this device is given them, with SPIR-V; compiles nothing");
  app.add_option("--replay", options.replay,
                 "file of --record whose pipelines to make in place of planning")
      ->excludes(record);
  CLI11_PARSE(app, count, list);
  return run(options);
}
