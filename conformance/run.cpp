// Runs the checks: plans each in all ways, runs what differs, compares.
#include <algorithm>
#include <chrono>
#include <set>

#include "base/check.h"
#include "base/fnv.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "conformance/cases.h"
#include "conformance/failure_folder.h"
#include "conformance/kernels.h"
#include "conformance/models.h"
#include "conformance/variations.h"
#include "measure/conformance_support.h"
#include "operators/graph_runner.h"
#include "recording/dispatch_watch.h"
#include "vkformer/fingerprint.h"

namespace vkformer {

using namespace conformance;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// "attention/*" or "attention/plain/1x1"
bool names(const std::string& pattern, const std::string& name) {
  if (!pattern.empty() && pattern.back() == '*') {
    return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
  }
  return name == pattern;
}

bool wanted(const ConformanceOptions& options, const std::string& name) {
  if (options.filters.empty()) return true;
  return std::any_of(options.filters.begin(), options.filters.end(), [&](const std::string& part) {
    return name.find(part) != std::string::npos || part.compare(0, name.size(), name) == 0;
  });
}

struct ChosenChecks {
  std::vector<Check> checks;
  std::vector<ModelCheck> models;
};

// Those of the extent that pass the filters.
ChosenChecks chosen_checks(const ConformanceOptions& options) {
  const bool full = options.extent == ConformanceExtent::kFull;
  ChosenChecks chosen{all_checks(), model_checks()};
  std::erase_if(chosen.checks,
                [&](const Check& c) { return (!full && !c.quick) || !wanted(options, c.name); });
  std::erase_if(chosen.models, [&](const ModelCheck& c) { return !wanted(options, c.name); });
  return chosen;
}

class Run {
 public:
  Run(const Device& device, const ConformanceOptions& options)
      : device_(device), options_(options), caps_(capabilities_of(device)) {
    const bool full = options.extent == ConformanceExtent::kFull;
    repeats_ = options.repeats > 0 ? options.repeats : full ? 25 : 3;
    report_.vkformer = VKFORMER_VERSION;
    report_.extent = options.extent;
    report_.device = device.info();
    report_.tier = device.tier();
  }

  Result<ConformanceReport> run() {
    const Clock::time_point begin = Clock::now();
    const auto [checks, models] = chosen_checks(options_);
    const int all = static_cast<int>(checks.size() + models.size());
    int done = 0;
    if (options_.filters.empty()) VKF_CHECK(note_fingerprint());
    for (const Check& check : checks) {
      VKF_CHECK(run_check(check));
      if (options_.progress) options_.progress(check.name, ++done, all);
    }
    for (const ModelCheck& check : models) {
      VKF_CHECK(run_model(check));
      if (options_.progress) options_.progress(check.name, ++done, all);
    }
    finish_kernels();
    if (options_.demote) VKF_CHECK(demote());
    report_.seconds = milliseconds_since(begin) * 1e-3;
    return std::move(report_);
  }

 private:
  Status note_fingerprint() {
    const Clock::time_point begin = Clock::now();
    const auto taken = take_fingerprint(device_, {.progress = options_.progress});
    ConformanceFingerprint& f = report_.fingerprint.emplace();
    f.seconds = milliseconds_since(begin) * 1e-3;
    if (!taken && taken.error().code != ErrorCode::kUnsupported) return taken.error();
    if (!taken) {
      f.message = taken.error().message;
      return {};
    }
    f.digest = hex_text(taken->digest());
    f.tensors = static_cast<int>(taken->entries.size());
    f.compared_with_host = taken->compared_with_host;
    if (!taken->host_difference) return {};
    f.message = taken->host_difference->message;
    ConformanceCheck check;
    check.op = "fingerprint";
    check.tier = report_.tier;
    check.name = std::string("fingerprint/quick/host/") + choice_name(check.tier);
    check.message = f.message;
    check.milliseconds = 1e3 * f.seconds;
    check.reproduce = "vkformer fingerprint --device " + report_.device.uuid + " --tier " +
                      choice_name(report_.tier);
    judge(check);
    report_.checks.push_back(std::move(check));
    return {};
  }

  // One check in every way that gives another plan.
  Status run_check(const Check& check) {
    auto made = check.make();
    if (!made) return made.error().with_context(check.name);
    std::set<std::string> plans;
    for (const Variation& variation : variations_of(caps_, check, *made)) {
      GraphRunOptions run;
      run.caps = variation.caps;
      run.precision = made->precision;
      run.until = GraphRunOptions::Until::kPlan;
      auto planned = run_graph(HandleAccess::impl(device_), made->op.graph, made->op.inputs, run);
      if (planned && !plans.insert(planned->plan).second) continue;
      if (!planned && !plans.insert(planned.error().message).second) continue;
      VKF_CHECK(run_one(check, *made, variation));
    }
    return {};
  }

  Status run_one(const Check& check, const CheckCase& made, const Variation& variation) {
    ConformanceCheck result;
    result.name = check.name + "/" + variation.name;
    if (!options_.filters.empty() && !wanted(options_, result.name)) return {};
    result.op = check.op;
    result.tier = variation.tier;
    result.reproduce = "vkformer conformance --full --filter " + result.name + " --device " +
                       report_.device.uuid + " --tier " + choice_name(report_.tier);
    const Clock::time_point begin = Clock::now();
    TensorMap outputs;
    const Status passed = execute(made, variation, result, outputs);
    if (!passed) result.message = passed.error().message;
    result.milliseconds = milliseconds_since(begin);
    if (!passed && passed.error().code == ErrorCode::kDeviceLost) return passed;
    judge(result);
    if (!result.message.empty() && !options_.failure_folder.empty()) {
      VKF_CHECK(write_failure({options_.failure_folder, device_, result, made, outputs}));
    }
    if (result.failed()) note_suspects(result);
    report_.checks.push_back(std::move(result));
    return {};
  }

  // Runs, with every memory poisoned and between guards, and compares every expected output.
  Status execute(const CheckCase& made, const Variation& variation, ConformanceCheck& result,
                 TensorMap& outputs) {
    GraphRunOptions run;
    run.caps = variation.caps;
    run.precision = made.precision;
    run.poison = GraphRunOptions::Poison::kOn;
    run.guards = GraphRunOptions::Guards::kOn;
    run.repeats = repeats_;
    run.live_slots = made.live_slots;
    auto ran = run_graph(HandleAccess::impl(device_), made.op.graph, made.op.inputs, run);
    if (!ran && made.may_be_refused && ran.error().code == ErrorCode::kUnsupported) {
      result.outcome = ConformanceOutcome::kPassed;
      return {};
    }
    if (!ran) {
      // What ran is known all the same.
      run.until = GraphRunOptions::Until::kPlan;
      if (auto planned =
              run_graph(HandleAccess::impl(device_), made.op.graph, made.op.inputs, run)) {
        note_kernels(planned->kernels, result);
      }
      return ran.error();
    }
    note_kernels(ran->kernels, result);
    result.repeats = repeats_;
    outputs = std::move(ran->outputs);
    if (made.op.finish != nullptr) {
      VKF_ASSIGN(outputs, made.op.finish(std::move(outputs)));
    }
    for (const auto& [name, expected] : made.expected) {
      const auto found = outputs.find(name);
      if (found == outputs.end()) {
        return internal_error("[" + name + "] is missing among the outputs.");
      }
      const Comparison comparison = compare(name, found->second, expected);
      result.error = std::max(result.error, comparison.error);
      result.ulps = std::max(result.ulps, comparison.ulps);
      result.elements += comparison.elements;
      if (!comparison.message.empty()) result.message += comparison.message;
    }
    return {};
  }

  void note_kernels(const std::vector<KernelId>& kernels, ConformanceCheck& result) {
    for (const KernelId id : kernels) {
      const std::string name = name_of(id);
      if (std::find(result.kernels.begin(), result.kernels.end(), name) == result.kernels.end()) {
        result.kernels.push_back(name);
      }
      run_.insert(id);
    }
  }

  // A single kernel is to blame. Of several the one that its operator is named after; the others
  // have checks of their own.
  void note_suspects(const ConformanceCheck& result) {
    for (const KernelId id : run_) {
      const std::string name = name_of(id);
      const bool ran =
          std::find(result.kernels.begin(), result.kernels.end(), name) != result.kernels.end();
      const bool own = name.compare(0, result.op.size(), result.op) == 0;
      if (ran && (own || result.kernels.size() == 1)) suspects_.insert(id);
    }
  }

  void judge(ConformanceCheck& result) const {
    const auto listed = [&](const std::vector<std::string>& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const std::string& pattern) { return names(pattern, result.name); });
    };
    const bool never = listed(options_.expected_never);
    const bool not_yet = !never && listed(options_.expected_not_yet);
    if (result.message.empty()) {
      result.outcome =
          never || not_yet ? ConformanceOutcome::kUnexpectedPass : ConformanceOutcome::kPassed;
    } else {
      result.outcome = never     ? ConformanceOutcome::kExpectedNever
                       : not_yet ? ConformanceOutcome::kExpectedNotYet
                                 : ConformanceOutcome::kFailed;
    }
  }

  // At the device's own tier on the device itself, at lower ones on a device made like it.
  Status run_model(const ModelCheck& check) {
    for (int number = static_cast<int>(caps_.tier); number >= 0; --number) {
      const auto tier = static_cast<Tier>(number);
      if (tier == caps_.tier) {
        VKF_CHECK(run_model_on(check, device_, tier));
        continue;
      }
      DeviceOptions lower;
      lower.device = report_.device.uuid;
      lower.tier = tier;
      lower.cache_directory = "none";
      const Result<Device> made = Device::create(lower);
      if (made) VKF_CHECK(run_model_on(check, *made, tier));
    }
    return {};
  }

  Status run_model_on(const ModelCheck& check, const Device& device, Tier tier) {
    ConformanceCheck result;
    result.name = check.name + "/" + choice_name(tier);
    result.op = "model";
    result.tier = tier;
    result.reproduce = "vkformer conformance --filter " + check.name + " --device " +
                       report_.device.uuid + " --tier " + choice_name(tier);
    const Clock::time_point begin = Clock::now();
    auto compared = check.run(device);
    if (compared) {
      result.error = compared->error;
      result.ulps = compared->ulps;
      result.elements = compared->elements;
      result.message = compared->message;
      result.repeats = 1;
    } else {
      result.message = compared.error().message;
      if (compared.error().code == ErrorCode::kDeviceLost) return compared.error();
    }
    if (HandleAccess::impl(device) == HandleAccess::impl(device_))
      VKF_CHECK(note_model_kernels(check, device, result));
    result.milliseconds = milliseconds_since(begin);
    judge(result);
    report_.checks.push_back(std::move(result));
    return {};
  }

  // A second time, dispatch by dispatch, to see which kernels a model uses.
  Status note_model_kernels(const ModelCheck& check, const Device& device,
                            ConformanceCheck& result) {
    std::set<std::string> seen;
    VKF_CHECK(
        watch_dispatches(HandleAccess::impl(device), [&](const WatchedTensor& tensor) -> Status {
          seen.insert(std::string(tensor.kernel));
          return {};
        }));
    const auto again = check.run(device);
    VKF_CHECK(watch_dispatches(HandleAccess::impl(device), nullptr));
    if (again && !result.message.empty() != !again->message.empty()) {
      result.message += " A second run, one dispatch at a time, gave another outcome.";
    }
    result.kernels.assign(seen.begin(), seen.end());
    for (const KernelId id : all_kernels()) {
      if (seen.count(name_of(id)) != 0) run_.insert(id);
    }
    return {};
  }

  void finish_kernels() {
    for (const KernelId id : all_kernels()) {
      if (run_.count(id) != 0) {
        report_.kernels_run.emplace_back(name_of(id));
        continue;
      }
      const std::string reason = why_not(id, caps_);
      report_.kernels_not_run.push_back(std::string(name_of(id)) + ": " +
                                        (reason.empty() ? "no check here ran it" : reason));
    }
  }

  Status demote() {
    if (suspects_.empty()) return {};
    VKF_ASSIGN(report_.demotion_file,
               demote_kernels(device_, {suspects_.begin(), suspects_.end()}));
    for (const KernelId id : suspects_) report_.demoted.emplace_back(name_of(id));
    return {};
  }

  Device device_;
  const ConformanceOptions& options_;
  const DeviceCaps caps_;
  int repeats_ = 1;
  ConformanceReport report_;
  std::set<KernelId> run_, suspects_;
};

}  // namespace

std::vector<std::string> conformance_checks(const ConformanceOptions& options) {
  const ChosenChecks chosen = chosen_checks(options);
  std::vector<std::string> list;
  for (const Check& check : chosen.checks) list.push_back(check.name);
  for (const ModelCheck& check : chosen.models) list.push_back(check.name);
  return list;
}

Result<ConformanceReport> run_conformance(const Device& device, const ConformanceOptions& options) {
  return guarded([&]() -> Result<ConformanceReport> {
    if (!HandleAccess::impl(device)) {
      return invalid_argument("[conformance] The device is empty; make a Device first.");
    }
    if (options.repeats < 0 || options.repeats > 10000) {
      return invalid_argument("[conformance] The option repeats is " +
                              std::to_string(options.repeats) + ", but must be from 0 to 10000.");
    }
    return Run(device, options).run();
  });
}

Status forget_demotions(const Device& device) {
  return guarded([&]() -> Status {
    if (!HandleAccess::impl(device)) {
      return invalid_argument("[conformance] The device is empty; make a Device first.");
    }
    VKF_CHECK(demote_kernels(device, {}));
    return {};
  });
}

}  // namespace vkformer
