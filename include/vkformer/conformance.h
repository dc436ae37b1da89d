// Conformance: whether vkformer computes what it should on a device. Every operator and every
// kernel that the device can run, at its tier and the tiers below, against references in double.
// Whole models are checked, too. The report can be sent to somebody else. A separate library,
// vkformer_conformance.
//
// Threading: a run wants its device for itself. Lifetime: nothing outlives a call but what it
// writes. All data is made from seeds; no files are needed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/tensor.h"

namespace vkformer {

struct ConformanceOptions {
  ConformanceExtent extent = ConformanceExtent::kFull;
  // Parts of names, of which a check's must have one, or the whole name; empty: all checks.
  std::vector<std::string> filters;
  int repeats = 0;  // runs of every check, which must give the same bits; 0: 3 or, in full, 25
  // Names, or beginnings of names that end in *. These checks are known to fail here: those that
  // never will pass, and those that do not yet. A pass of a "not yet" is reported as a surprise.
  std::vector<std::string> expected_never;
  std::vector<std::string> expected_not_yet;
  // Kernels of failed checks are omitted on this device and driver from now on. Their names go into
  // a file beside the pipeline cache, which new devices read.
  bool demote = false;
  // A folder for every failed check, with all that is needed to see it elsewhere; empty: none.
  std::string failure_folder;
  // Called after every check with its name; empty: nobody.
  std::function<void(const std::string& name, int done, int all)> progress;
};

// One check on one way of running it.
struct ConformanceCheck {
  // "softmax/masked/2x3x5x33/subgroup-wide": operator, case, size, tier and variation. Stable.
  std::string name;
  std::string op;  // ops/op_list.def, or "model"
  Tier tier = Tier::kBaseline;
  ConformanceOutcome outcome = ConformanceOutcome::kPassed;
  std::string message;               // of a failure: a full sentence
  std::vector<std::string> kernels;  // variants that ran
  double error = 0;                  // the largest difference, as a share of what is allowed
  double ulps = 0;                   // the largest difference in units in the last place of f32
  int64_t elements = 0;              // compared
  int repeats = 0;                   // runs with equal bits
  double milliseconds = 0;           // wall clock, of all runs and the reference
  std::string reproduce;             // command line

  bool failed() const { return outcome == ConformanceOutcome::kFailed; }
};

// What the device computes in reproducible precision, as a digest that equal devices share
// (fingerprint.h).
struct ConformanceFingerprint {
  // Hexadecimal; empty where the device cannot compute in that precision.
  std::string digest;
  // In the digest, and of these compared with the host.
  int tensors = 0, compared_with_host = 0;
  // The first that is not the host's, or why there is no digest.
  std::string message;
  double seconds = 0;
};

struct ConformanceReport {
  std::string vkformer;  // version
  ConformanceExtent extent = ConformanceExtent::kFull;
  DeviceInfo device;
  Tier tier = Tier::kBaseline;  // highest that was checked
  // The first section of a run without filters. Where the host has other bits it is a failed check
  // as well, by the name "fingerprint/quick/host" and the tier.
  std::optional<ConformanceFingerprint> fingerprint;
  std::vector<ConformanceCheck> checks;
  std::vector<std::string> kernels_run;      // variants that some check ran
  std::vector<std::string> kernels_not_run;  // and those that none did, with the reason after it
  std::vector<std::string> demoted;          // variants that this run demoted
  std::string demotion_file;                 // written; empty: none
  double seconds = 0;

  int count(ConformanceOutcome outcome) const {
    int n = 0;
    for (const ConformanceCheck& check : checks) n += check.outcome == outcome ? 1 : 0;
    return n;
  }
};

// Names of the checks of that extent that the filters select, without tier and variation.
VKFORMER_API std::vector<std::string> conformance_checks(const ConformanceOptions& options = {});
VKFORMER_API Result<ConformanceReport> run_conformance(const Device& device,
                                                       const ConformanceOptions& options = {});

// The report as JSON (docs/conformance.md has the schema), as JUnit XML, and as one HTML page that
// needs nothing else.
VKFORMER_API std::string conformance_json(const ConformanceReport& report);
VKFORMER_API std::string conformance_junit(const ConformanceReport& report);
VKFORMER_API std::string conformance_html(const ConformanceReport& report);
// What conformance_json wrote; an error for anything else.
VKFORMER_API Result<ConformanceReport> parse_conformance_json(const std::string& text);

// Checks whose outcome differs between two reports.
struct ConformanceChange {
  std::string name;
  std::optional<ConformanceOutcome> before;  // absent: that report has no such check
  std::optional<ConformanceOutcome> after;
};
VKFORMER_API std::vector<ConformanceChange> compare_conformance(const ConformanceReport& before,
                                                                const ConformanceReport& after);

// Takes back what ConformanceOptions::demote wrote for this device and driver.
VKFORMER_API Status forget_demotions(const Device& device);
// Writes the SPIR-V of every kernel as FOLDER/NAME.spv, for spirv-val and spirv-dis.
VKFORMER_API Status dump_shaders(const Device& device, const std::string& folder);

// The first place where two devices, or one at two tiers, differ by more than rounding.
struct LayerDifference {
  std::string label;  // where in the model: "encoder.0.self_attn"; empty: nowhere
  std::string op;     // operator
  std::string tensor;
  double difference = 0;  // the largest, absolute
  double relative = 0;    // the same over the tensor's largest value
  int64_t element = 0;
  int tensors = 0;  // compared, up to and with this one
};
// Loads the model on both, runs a pass with the same inputs, and compares what every operator
// wrote, in order. `relative`: what counts as a difference, over a tensor's largest value.
struct CompareOptions {
  ModelOptions first, second;  // how it is loaded on each
  double relative = 1e-3;
};
VKFORMER_API Result<LayerDifference> compare_devices(const Device& first, const Device& second,
                                                     const std::string& directory,
                                                     const TensorMap& inputs,
                                                     const CompareOptions& options = {});

// Where a NaN came from; `op` is empty where there was none.
struct NanOrigin {
  std::string op;      // the first operator that wrote one
  std::string label;   // where in the model
  std::string kernel;  // variant
  std::string tensor;
  int64_t element = 0;
};
// Looks at what every dispatch writes while `work` runs, which uses that device. An error of `work`
// is given back where no NaN was written.
VKFORMER_API Result<NanOrigin> find_nan(const Device& device, const std::function<Status()>& work);

}  // namespace vkformer
