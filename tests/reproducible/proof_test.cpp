// Reproducible precision on the device: the proof, and one fingerprint whatever the device is told
// to be.
#include "conformance/planted.h"
#include "recording/arithmetic_proof.h"
#include "support/test_device.h"
#include "vkformer/fingerprint.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

// Sums of every kind, and every function.
const std::vector<std::string> kSomeChecks = {"activation/gelu/normal/5x33",
                                              "attention/causal/1x4x2x7x33",
                                              "gated_activation/silu/1x258",
                                              "layer_norm/plain/5x33",
                                              "log_softmax/normal/9x33",
                                              "matmul/f32/5x8x128",
                                              "matmul/q4m/5x8x128",
                                              "mean_pool/normal/3x5x33",
                                              "rms_norm/plain/7x64",
                                              "softmax/plain/normal/2x3x5x33",
                                              "state_scan/selective/full/2x19x4x2x16x8",
                                              "token_scores/"};

Fingerprint fingerprint_of(const Device& device, const FingerprintOptions& options) {
  const auto taken = take_fingerprint(device, options);
  REQUIRE_MESSAGE(taken.ok(), taken.error().message);
  CHECK(taken->entries.size() >= 8);
  return *taken;
}

void check_equal(const Fingerprint& a, const Fingerprint& b) {
  const auto difference = compare_fingerprints(a, b);
  CHECK_MESSAGE(!difference, difference->message);
  CHECK(a.digest() == b.digest());
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("the arithmetic of the device is that of the host, with and without guards") {
    if (!have_test_device()) return;
    const auto device = vulkan_of(*test_device());
    const Status proven = prove_arithmetic(device);
    CHECK_MESSAGE(proven.ok(), proven.error().message);
    CHECK(device->impl().context.arithmetic_is_proven);
    // The same with denormals as zeros by integer operations.
    const Device other = *make_test_device(test_device_options(), test_device_tweaks());
    Context& context = vulkan_of(other)->impl().context;
    context.arithmetic = {.guard_denormals = true};
    CHECK(prove_arithmetic(vulkan_of(other)).ok());
  }

  TEST_CASE("a device whose sums are wrong is refused by the name of the operation") {
    if (!have_test_device()) return;
    const KernelId kernel = kernel_named("arithmetic_proof_run__f32");
    const Device device = planted_device({{kernel, with_fault(kernel, 129, 131, 0)}}, "none",
                                         Tier::kBaseline);  // a sum becomes a difference
    const Status proven = prove_arithmetic(vulkan_of(device));
    REQUIRE(!proven.ok());
    CHECK(proven.error().code == ErrorCode::kUnsupported);
    CHECK(proven.error().message.find("a + b") != std::string::npos);
    const auto model = Model::load(device, VKFORMER_SOURCE_DIR "/models/digits",
                                   {.precision = Precision::kReproducible});
    REQUIRE(!model.ok());
    CHECK(model.error().message.find("reproducible") != std::string::npos);
  }

  TEST_CASE("every tier, limit and way with denormals gives one fingerprint") {
    if (!have_test_device()) return;
    const FingerprintOptions some{.filters = kSomeChecks};
    const Fingerprint wanted = fingerprint_of(*test_device(), some);
    DeviceOptions options = test_device_options();
    options.cache_directory = "none";
    options.limits = LimitProfile::kAndroid2022;
    const auto device = make_test_device(options, test_device_tweaks());
    REQUIRE(device.ok());
    check_equal(fingerprint_of(*device, some), wanted);
    const auto guarded = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE(guarded.ok());
    Context& context = vulkan_of(*guarded)->impl().context;
    context.arithmetic = {.guard_denormals = true};
    context.arithmetic_is_proven = true;
    check_equal(fingerprint_of(*guarded, some), wanted);
  }

  TEST_CASE("no result depends on the order in which workgroups run") {
    if (!have_test_device()) return;
    const FingerprintOptions some{.filters = kSomeChecks};
    const Fingerprint wanted = fingerprint_of(*test_device(), some);
    DeviceTweaks tweaks = test_device_tweaks();
    tweaks.scatter_seed = 1;
    const auto scattered = make_test_device(test_device_options(), tweaks);
    REQUIRE(scattered.ok());
    check_equal(fingerprint_of(*scattered, some), wanted);
  }

  TEST_CASE("fingerprints survive JSON, and a difference is named") {
    if (!have_test_device()) return;
    const Fingerprint taken = fingerprint_of(*test_device(), {.filters = kSomeChecks});
    const std::string text = fingerprint_json(taken);
    const auto again = parse_fingerprint_json(text);
    REQUIRE_MESSAGE(again.ok(), again.error().message);
    check_equal(taken, *again);
    Fingerprint other = taken;
    other.entries[3].digest ^= 1;
    other.entries[3].parts.back() ^= 1;
    const auto difference = compare_fingerprints(taken, other);
    REQUIRE(difference.has_value());
    CHECK(difference->name == taken.entries[3].name);
    CHECK(difference->last == element_count(taken.entries[3].shape) - 1);
    // Values tell the element.
    const size_t element = 5;
    other.entries[3].values[4 * element + 1] ^= std::byte{1};
    const auto exact =
        compare_fingerprints(taken, *parse_fingerprint_json(fingerprint_json(other)));
    REQUIRE(exact.has_value());
    CHECK(exact->first == element);
    CHECK(exact->last == element);
    CHECK_MESSAGE(exact->message.find("at element 5: its bits are ") != std::string::npos,
                  exact->message);
    // Values that do not fit the shape, or are none.
    const size_t values = text.find("\"values\": \"") + 11;
    CHECK_FALSE(parse_fingerprint_json(std::string(text).insert(values, "00")).ok());
    CHECK_FALSE(parse_fingerprint_json(std::string(text).replace(values, 2, "0g")).ok());
    for (const char* wrong : {"", "[]", "{}", "{\"format\":\"vkformer fingerprint 2\"}", "null"}) {
      CHECK_FALSE(parse_fingerprint_json(wrong).ok());
    }
  }
}

}  // namespace vkformer::testing
