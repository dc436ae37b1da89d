// `vkformer bench --estimate`: whole models on a GPU that is not there, or by the roofline of one
// that is.
#include "bench_estimate.h"

#include "vkformer/estimate.h"

namespace vkformer::cli {

namespace {

// The name in place of a chip: the device that is there.
constexpr const char* kThisDevice = "device";

// What every row's note begins with.
constexpr const char* kMark = "estimated";

// A chip's estimates, or the device's; and what they are held against.
struct Subject {
  std::string chip;
  std::optional<Device> device;
  Roofline roofline;

  Result<ModelEstimate> estimate(const BenchModel& model, const ModelOptions& load,
                                 const SessionSizes& sizes) const {
    return device ? estimate_model(*device, roofline, model.source, load, sizes)
                  : estimate_model(chip, model.source, load, sizes);
  }
};

Result<Subject> subject_of(const CommonOptions& common, const std::string& name) {
  Subject subject{.chip = name};
  if (name == kThisDevice) {
    Result<Device> device = open_device(common);
    if (!device) return device.error();
    const Result<Roofline> roofline = measure_roofline(*device);
    if (!roofline) return roofline.error();
    subject.device = std::move(*device);
    subject.roofline = *roofline;
    return subject;
  }
  for (const EstimatedGpu& gpu : estimated_gpus()) {
    if (gpu.chip != name) continue;
    subject.roofline.fma_gflops = gpu.fma_gflops;
    subject.roofline.copy_gbytes = gpu.gbytes;
  }
  return subject;
}

// "81% arithmetic, 12% bandwidth, 7% launches".
std::string bounds_text(const EstimatedPass& pass) {
  std::string text;
  const auto add = [&](double ms, const char* name) {
    const double percent = pass.ms > 0 ? 100 * ms / pass.ms : 0;
    if (percent < 0.5) return;
    text += (text.empty() ? "" : ", ") + fixed(percent, 0) + "% " + name;
  };
  add(pass.arithmetic_ms, "arithmetic");
  add(pass.bandwidth_ms, "bandwidth");
  add(pass.latency_ms, "latency");
  add(pass.launch_ms, "launches");
  return text;
}

// Of how much of the time this pipeline itself was not compiled.
std::string assumed_text(const EstimatedPass& pass) {
  double ms = 0;
  for (const EstimatedKernel& kernel : pass.kernels) ms += kernel.assumed.empty() ? 0 : kernel.ms;
  if (ms < 0.005 * pass.ms) return "";
  return "; " + fixed(100 * ms / pass.ms, 0) + "% by kernels compiled for other sizes, or not";
}

BenchRow row_of(const Subject& subject, const std::string& name, double ms,
                const EstimatedPass& pass, const std::string& speed) {
  BenchRow row;
  row.section = "models";
  row.name = name;
  row.value = ms;
  row.unit = "ms";
  row.flops = pass.flops;
  row.bytes = pass.bytes;
  set_roofline_share(subject.roofline, row);
  for (const EstimatedKernel& kernel : pass.kernels) {
    row.kernels += (row.kernels.empty() ? "" : " ") + kernel.kernel;
  }
  row.note = std::string(kMark) + " " + speed + "; " + bounds_text(pass) + assumed_text(pass);
  return row;
}

// Named as `bench models` names what it measures, so that `bench compare` has both.
void add_run(const Subject& subject, const BenchModel& model, const ModelRun& run,
             const ModelEstimate& estimate, std::vector<BenchRow>& rows) {
  const std::string name = model.name + " " + run.name;
  const auto rate = [&](double items, double ms) { return fixed(items * 1e3 / ms, 0); };
  const auto batch = static_cast<double>(run.batch);
  const auto tokens = batch * static_cast<double>(run.tokens);
  if (!estimate.step) {
    const bool pictures = model.config.contains("image_size");
    const std::string speed = pictures ? rate(batch, estimate.first.ms) + " inputs/s"
                                       : rate(tokens, estimate.first.ms) + " tokens/s";
    rows.push_back(row_of(subject, name, estimate.first.ms, estimate.first, speed));
    return;
  }
  const bool both = model.config.value("is_encoder_decoder", false);
  const double prompt_ms = estimate.first.ms + estimate.step->ms;
  rows.push_back(
      row_of(subject, both ? name + ", 1 token" : name, prompt_ms, estimate.first,
             both ? "encoder and first token" : rate(tokens, prompt_ms) + " prompt tokens/s"));
  rows.push_back(row_of(subject, model.name + " decoding", estimate.step->ms, *estimate.step,
                        rate(batch, estimate.step->ms) + " tokens/s"));
}

}  // namespace

int run_bench_estimate(const CommonOptions& common, const std::string& name,
                       const ModelBenchOptions& options, const ReportFiles& files) {
  const Result<Subject> subject = subject_of(common, name);
  if (!subject) return report(subject.error());
  BenchReport made = subject->device ? start_report(*subject->device) : start_report();
  made.roofline = subject->roofline;
  made.device["estimated"] = true;
  for (const std::string& model_name : bench_model_names(options)) {
    const Result<BenchModel> model = open_bench_model(model_name, options);
    if (!model) return report(model.error());
    for (const ModelRun& run : model->runs) {
      SessionSizes sizes = sizes_of(run);
      sizes.cache = model->cache;
      const Result<ModelEstimate> estimate = subject->estimate(*model, options.load, sizes);
      if (!estimate) return report(estimate.error().with_context(model_name));
      made.device["device"] = estimate->device;
      made.device["driver"] = estimate->driver;
      made.device["tier"] = choice_name(estimate->tier);
      add_run(*subject, *model, run, *estimate, made.rows);
    }
  }
  const Status written = emit_report(made, files);
  return written ? kExitOk : report(written.error());
}

}  // namespace vkformer::cli
