// Examples of conformance reports, fingerprints and comparisons of devices.
#include <vkformer/conformance.h>
#include <vkformer/fingerprint.h>
#include <vkformer/operators.h>
#include <vkformer/session.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "examples.h"

using vkformer::Tensor;

namespace {

vkformer::Status show_report(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  //! [conformance_checks run_conformance ConformanceReport::count ConformanceCheck::failed]
  // Checks one operator against its reference in double precision; without filters, all of them.
  vkformer::ConformanceOptions options;
  options.extent = vkformer::ConformanceExtent::kQuick;
  options.filters = {"softmax/plain"};
  for (const std::string& name : vkformer::conformance_checks(options)) std::puts(name.c_str());
  const auto report = vkformer::run_conformance(device, options);
  if (!report) return report.error();
  std::printf("%d passed\n", report->count(vkformer::ConformanceOutcome::kPassed));
  for (const vkformer::ConformanceCheck& check : report->checks) {
    if (check.failed()) std::printf("%s: %s\n", check.name.c_str(), check.message.c_str());
  }
  //! [end]

  //! [conformance_json conformance_junit conformance_html parse_conformance_json]
  //! [compare_conformance]
  // Writes a report as JSON, JUnit XML and HTML, reads it again, and compares both.
  const std::string json = vkformer::conformance_json(*report);
  std::printf("%zu, %zu and %zu bytes\n", json.size(), vkformer::conformance_junit(*report).size(),
              vkformer::conformance_html(*report).size());
  const auto again = vkformer::parse_conformance_json(json);
  if (!again) return again.error();
  for (const vkformer::ConformanceChange& change : vkformer::compare_conformance(*report, *again)) {
    std::printf("%s changed\n", change.name.c_str());
  }
  //! [end]
  return expect(report->checks.size() == again->checks.size() &&
                    report->count(vkformer::ConformanceOutcome::kPassed) > 0,
                "the same checks");
}

vkformer::Status show_fingerprint(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  //! [take_fingerprint Fingerprint::digest fingerprint_json parse_fingerprint_json]
  //! [compare_fingerprints]
  // Takes the fingerprint of one operator's checks, writes it, reads it, and compares both.
  vkformer::FingerprintOptions options;
  options.filters = {"softmax/plain"};
  const auto fingerprint = vkformer::take_fingerprint(device, options);
  if (!fingerprint) return fingerprint.error();
  std::printf("%016llx\n", static_cast<unsigned long long>(fingerprint->digest()));
  const auto other = vkformer::parse_fingerprint_json(vkformer::fingerprint_json(*fingerprint));
  if (!other) return other.error();
  const auto difference = vkformer::compare_fingerprints(*fingerprint, *other);
  if (difference) std::puts(difference->message.c_str());
  //! [end]
  return expect(!difference && fingerprint->digest() == other->digest(), "equal fingerprints");
}

vkformer::Status show_devices(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::string directory = setting.goldens + "/bert-sentiment/model";
  //! [compare_devices]
  // Finds the first operator whose results differ between two devices, here the same one twice.
  const vkformer::TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 4}, {1, 5, 7, 2})}};
  const auto difference = vkformer::compare_devices(device, device, directory, inputs);
  if (!difference) return difference.error();
  std::printf("%d tensors, the first difference at [%s]\n", difference->tensors,
              difference->label.c_str());
  //! [end]

  //! [find_nan]
  // Finds the operator that wrote the first NaN while a function ran.
  vkformer::OperatorCall call;
  call.name = "softmax";
  call.inputs = {{"X", Tensor::from_floats({1, 2}, {std::numeric_limits<float>::quiet_NaN(), 0})}};
  const auto origin = vkformer::find_nan(device, [&]() -> vkformer::Status {
    const auto run = vkformer::run_operator(device, call);
    if (!run) return run.error();
    return {};
  });
  if (!origin) return origin.error();
  std::printf("%s wrote it\n", origin->op.c_str());
  //! [end]
  return expect(difference->label.empty() && origin->op == "softmax", "no difference, one NaN");
}

vkformer::Status show_kernels(const Setting& setting) {
  // A cache folder of the example's own, so that no demotions of the user are taken back.
  vkformer::DeviceOptions options;
  options.cache_directory = setting.scratch;
  const auto device = vkformer::Device::create(options);
  if (!device) return device.error();
  const std::string folder = setting.scratch + "/shaders";
  std::filesystem::create_directories(folder);
  //! [dump_shaders forget_demotions]
  // Writes the SPIR-V of every kernel, and lets kernels run again that had failed a check.
  const auto dumped = vkformer::dump_shaders(*device, folder);
  if (!dumped) return dumped.error();
  const auto forgotten = vkformer::forget_demotions(*device);
  if (!forgotten) return forgotten.error();
  //! [end]
  return expect(!std::filesystem::is_empty(folder), "files of SPIR-V");
}

}  // namespace

vkformer::Status show_conformance(const Setting& setting) {
  for (const auto show : {show_report, show_fingerprint, show_devices, show_kernels}) {
    const auto shown = show(setting);
    if (!shown) return shown;
  }
  return {};
}
