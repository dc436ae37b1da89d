// A wrong kernel is found, named, omitted, and the runtime is right again.
#include "vkformer/conformance.h"

#include <algorithm>

#include "conformance/planted.h"
#include "reference/softmax.h"
#include "support/golden.h"
#include "support/operator_check.h"
#include "vkformer/operators.h"

namespace vkformer::testing {
namespace {

ConformanceOptions only(const std::string& filter) {
  ConformanceOptions options;
  options.filters = {filter};
  options.repeats = 2;
  return options;
}

// The kernel that this device takes for a softmax.
std::string softmax_kernel(const Device& device) {
  return device.tier() == Tier::kBaseline ? "softmax_row__f32_none_f32"
                                          : "softmax_row__f32_none_f32_subgroup";
}

PlantedKernels wrong_softmax(const std::string& name) {
  const KernelId kernel = kernel_named(name);
  // The last product is the one by the reciprocal of the sum; it becomes a sum.
  const size_t last = places_of(kernel_spirv(kernel), kFMul).size() - 1;
  return {{kernel, with_fault(kernel, kFMul, kFAdd, last)}};
}

double softmax_error(const Device& device) {
  const Array x = random_array({1, 2, 3, 100}, 7, 3);
  OperatorCall call{"softmax", "{}", {{"X", reference::to_tensor(x)}}};
  const auto run = run_operator(device, call);
  REQUIRE_MESSAGE(run.ok(), run.error().message);
  const std::vector<float> y = *run->outputs.at("Y").to_floats();
  const Array expected = *reference::softmax(x);
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double difference = std::abs(y[i] - expected.data[i]);
    worst = std::isfinite(difference) ? std::max(worst, difference) : 1e30;
  }
  return worst;
}

// Without the wrong kernel: right by another one, or refused where the tier has no other.
void check_never_wrong(const Device& device) {
  if (device.tier() != Tier::kBaseline) {
    CHECK(softmax_error(device) < 1e-5);
    return;
  }
  const auto run = run_operator(
      device, {"softmax", "{}", {{"X", reference::to_tensor(random_array({2, 3}, 7, 3))}}});
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().message.find(softmax_kernel(device)) != std::string::npos);
}

ConformanceReport small_report() {
  ConformanceReport report;
  report.vkformer = "0.1.0";
  report.extent = ConformanceExtent::kQuick;
  report.device.name = "A <device> & \"more\"";
  report.device.uuid = "00ff";
  report.tier = Tier::kBaseline;
  report.checks = {{"softmax/plain/1x1/baseline",
                    "softmax",
                    Tier::kBaseline,
                    ConformanceOutcome::kPassed,
                    "",
                    {"softmax_row"},
                    0.25,
                    3,
                    10,
                    2,
                    1.5,
                    "again"},
                   {"softmax/plain/1x2/baseline-wide",
                    "softmax",
                    Tier::kBaseline,
                    ConformanceOutcome::kFailed,
                    "[Y] is <wrong>.",
                    {"softmax_row"},
                    7,
                    99,
                    10,
                    2,
                    1.5,
                    "again & again"}};
  report.kernels_run = {"softmax_row"};
  report.kernels_not_run = {"other: why"};
  report.demoted = {"softmax_row"};
  report.demotion_file = "file";
  report.seconds = 1.5;
  return report;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a kernel that is wrong is found, left out, and results are right again") {
    if (!have_test_device()) return;
    const CacheFolder cache("conformance_test");
    const std::string name = softmax_kernel(*test_device());
    const PlantedKernels planted = wrong_softmax(name);
    ConformanceOptions options = only("softmax/plain/normal/2x3x5x33");
    options.demote = true;
    options.failure_folder = cache.path + "/failures";
    {
      const Device device = planted_device(planted, cache.path);
      CHECK(softmax_error(device) > 0.01);
      const auto report = run_conformance(device, options);
      REQUIRE_MESSAGE(report.ok(), report.error().message);
      CHECK(report->count(ConformanceOutcome::kFailed) > 0);
      CHECK(report->demoted == std::vector<std::string>{name});
      for (const ConformanceCheck& check : report->checks) {
        const auto& ran = check.kernels;
        const bool wrong = std::find(ran.begin(), ran.end(), name) != ran.end();
        CHECK_MESSAGE(check.failed() == wrong, check.name);
      }
      const std::string folder =
          options.failure_folder + "/softmax.plain.normal.2x3x5x33." + choice_name(device.tier());
      for (const char* file : {"README.txt", "inputs.safetensors", "expected.safetensors",
                               "actual.safetensors", "graph.txt"}) {
        CHECK(std::filesystem::exists(folder + "/" + file));
      }
      CHECK(std::filesystem::exists(folder + "/" + name + ".spv"));
      check_never_wrong(device);  // at once
    }
    const Device later = planted_device(planted, cache.path);
    check_never_wrong(later);
    const DeviceInfo info = later.info();
    CHECK(std::any_of(info.notes.begin(), info.notes.end(),
                      [&](const std::string& note) { return note.find(name) != note.npos; }));
    REQUIRE(forget_demotions(later).ok());
    CHECK(softmax_error(planted_device(planted, cache.path)) > 0.01);
  }

  TEST_CASE("an operator of which every kernel is wrong is refused, not computed wrongly") {
    if (!have_test_device()) return;
    const CacheFolder cache("conformance_refused");
    PlantedKernels planted = wrong_softmax("softmax_row__f32_none_f32");
    planted.merge(wrong_softmax("softmax_row__f32_none_f32_subgroup"));
    const Device device = planted_device(planted, cache.path);
    ConformanceOptions options = only("softmax/plain/normal/2x3x5x33");
    options.demote = true;
    REQUIRE(run_conformance(device, options).ok());
    OperatorCall call{"softmax", "{}", {{"X", reference::to_tensor(random_array({1, 9}, 1))}}};
    const auto run = run_operator(device, call);
    REQUIRE_FALSE(run.ok());
    CHECK(run.error().code == ErrorCode::kUnsupported);
    CHECK(run.error().message.find("[softmax]") != std::string::npos);
  }

  TEST_CASE("lists of expected failures turn failures into known ones, and passes into surprises") {
    if (!have_test_device()) return;
    const std::string name = softmax_kernel(*test_device());
    const Device device = planted_device(wrong_softmax(name), "none");
    ConformanceOptions options = only("softmax/plain/normal/2x3x5x33");
    options.expected_never = {std::string("softmax/plain/normal/2x3x5x33/") +
                              choice_name(device.tier())};
    options.expected_not_yet = {"softmax/*"};
    const auto report = run_conformance(device, options);
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    CHECK(report->count(ConformanceOutcome::kFailed) == 0);
    CHECK(report->count(ConformanceOutcome::kExpectedNever) == 1);
    CHECK(report->count(ConformanceOutcome::kPassed) == 0);
    const auto clean = run_conformance(*test_device(), options);
    REQUIRE(clean.ok());
    CHECK(clean->count(ConformanceOutcome::kUnexpectedPass) ==
          static_cast<int>(clean->checks.size()));
  }

  TEST_CASE("the first operator that writes a NaN is named, and nothing where none does") {
    if (!have_test_device()) return;
    const Device device = *test_device();
    Array x = random_array({3, 40}, 5);
    const auto look = [&] {
      return find_nan(device, [&]() -> Status {
        const OperatorCall call{
            "gated_activation", R"({"kind": "silu"})", {{"X", reference::to_tensor(x)}}};
        const auto run = run_operator(device, call);
        return run ? Status{} : run.error();
      });
    };
    const auto clean = look();
    REQUIRE_MESSAGE(clean.ok(), clean.error().message);
    CHECK(clean->op.empty());
    x[40 + 7] = kNan;
    const auto found = look();
    REQUIRE(found.ok());
    CHECK(found->op == "gated_activation");
    CHECK(found->tensor == "Y");
    CHECK(found->element == 27);
    CHECK_FALSE(find_nan(device, []() -> Status {
                  return Error{ErrorCode::kCancelled, "no"};
                }).ok());
    CHECK(vulkan_of(device)->profiler() == nullptr);
  }

  TEST_CASE("the first layer in which two devices differ is named") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("gpt2-base");
    const TensorMap inputs = golden.pass_inputs();
    const Device right = *test_device();
    const auto same = compare_devices(right, planted_device({}, "none", Tier::kBaseline),
                                      golden.path("model"), inputs);
    REQUIRE_MESSAGE(same.ok(), same.error().message);
    CHECK(same->op.empty());
    CHECK(same->tensors > 10);
    const std::string name = right.tier() == Tier::kBaseline
                                 ? "layer_norm_row__f32_f32_f32"
                                 : "layer_norm_row__f32_f32_f32_subgroup";
    const KernelId kernel = kernel_named(name);
    const size_t last = places_of(kernel_spirv(kernel), kFMul).size() - 1;
    const Device wrong = planted_device({{kernel, with_fault(kernel, kFMul, kFAdd, last)}}, "none");
    const auto found = compare_devices(right, wrong, golden.path("model"), inputs);
    REQUIRE_MESSAGE(found.ok(), found.error().message);
    CHECK(found->op == "layer_norm");
    CHECK(found->label.find("decoder.0") != std::string::npos);
    CHECK(found->relative > 1e-3);
  }

  TEST_CASE("demotions need a cache, and a device") {
    if (!have_test_device()) return;
    const std::string name = softmax_kernel(*test_device());
    const Device device = planted_device(wrong_softmax(name), "none");
    ConformanceOptions options = only("softmax/plain/normal/2x3x5x33");
    options.demote = true;
    const auto report = run_conformance(device, options);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().message.find("cache") != std::string::npos);
    CHECK_FALSE(run_conformance(device_of(nullptr), {}).ok());
    options.repeats = -1;
    CHECK_FALSE(run_conformance(*test_device(), options).ok());
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("a conformance report survives JSON, and its pages hold no raw markup") {
    ConformanceReport report = small_report();
    CHECK_FALSE(parse_conformance_json(conformance_json(report))->fingerprint.has_value());
    report.fingerprint = {"0123456789abcdef", 40, 38, "<wrong> bits", 1.5};
    const auto back = parse_conformance_json(conformance_json(report));
    REQUIRE_MESSAGE(back.ok(), back.error().message);
    REQUIRE(back->fingerprint.has_value());
    CHECK(back->fingerprint->digest == report.fingerprint->digest);
    CHECK(back->fingerprint->tensors == 40);
    CHECK(back->fingerprint->compared_with_host == 38);
    CHECK(back->fingerprint->message == report.fingerprint->message);
    CHECK(conformance_html(report).find(report.fingerprint->digest) != std::string::npos);
    CHECK(back->device.name == report.device.name);
    CHECK(back->checks.size() == 2);
    CHECK(back->checks[1].outcome == ConformanceOutcome::kFailed);
    CHECK(back->checks[1].op == "softmax");
    CHECK(back->checks[1].tier == Tier::kBaseline);
    CHECK(back->checks[1].message == report.checks[1].message);
    CHECK(back->demoted == report.demoted);
    CHECK(compare_conformance(report, *back).empty());
    for (const std::string& page : {conformance_html(report), conformance_junit(report)}) {
      CHECK(page.find("<device>") == std::string::npos);
      CHECK(page.find("<wrong>") == std::string::npos);
      CHECK(page.find("softmax/plain/1x2/baseline-wide") != std::string::npos);
      CHECK(page.find("again &amp; again") != std::string::npos);
    }
  }

  TEST_CASE("a damaged conformance report is refused") {
    const std::string text = conformance_json(small_report());
    CHECK_FALSE(parse_conformance_json("").ok());
    CHECK_FALSE(parse_conformance_json("{}").ok());
    CHECK_FALSE(parse_conformance_json(text.substr(0, text.size() / 2)).ok());
    std::string wrong = text;
    wrong.replace(wrong.find("\"outcome\":\"passed\""), 18, "\"outcome\":[1,2,3] ");
    const auto parsed = parse_conformance_json(wrong);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code == ErrorCode::kInvalidFile);
    wrong = text;
    wrong.replace(wrong.find("\"outcome\":\"passed\""), 18, "\"outcome\":\"posted\"");
    const auto unknown = parse_conformance_json(wrong);
    REQUIRE_FALSE(unknown.ok());
    CHECK(unknown.error().code == ErrorCode::kInvalidFile);
    CHECK(unknown.error().message.find("[outcome] is 'posted'") != std::string::npos);
  }

  TEST_CASE("two conformance reports differ in outcomes, and in checks that one lacks") {
    const ConformanceReport before = small_report();
    ConformanceReport after = before;
    after.checks[0].outcome = ConformanceOutcome::kFailed;
    after.checks[1].name = "softmax/new/baseline";
    const std::vector<ConformanceChange> changes = compare_conformance(before, after);
    REQUIRE(changes.size() == 3);
    CHECK(changes[0].before == ConformanceOutcome::kPassed);
    CHECK(changes[0].after == ConformanceOutcome::kFailed);
    CHECK_FALSE(changes[1].after.has_value());
    CHECK_FALSE(changes[2].before.has_value());
  }

  TEST_CASE("names of conformance checks are unique, and every operator has some") {
    std::vector<std::string> names = conformance_checks();
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    ConformanceOptions some;
    some.extent = ConformanceExtent::kQuick;
    CHECK(conformance_checks(some).size() < names.size());
    some.filters = {"softmax/plain/normal"};
    CHECK(conformance_checks(some).size() > 1);
    for (const std::string& name : conformance_checks(some)) {
      CHECK_MESSAGE(name.find(some.filters[0]) == 0, name);
    }
    for (uint16_t i = 0; i < static_cast<uint16_t>(OpId::kCount); ++i) {
      const std::string op = op_name(static_cast<OpId>(i));
      const auto first = std::lower_bound(names.begin(), names.end(), op + "/");
      CHECK_MESSAGE((first != names.end() && first->rfind(op + "/", 0) == 0), op);
    }
  }
}

}  // namespace vkformer::testing
