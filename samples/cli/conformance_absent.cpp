// What a program links where the conformance library is not built (VKFORMER_BUILD_CONFORMANCE=OFF).
#include "vkformer/benchmark.h"
#include "vkformer/conformance.h"
#include "vkformer/fingerprint.h"

namespace vkformer {
namespace {

Error absent() {
  return {ErrorCode::kUnsupported,
          "[conformance] This build omits conformance and the benchmarks of operators; build "
          "vkformer with VKFORMER_BUILD_CONFORMANCE=ON."};
}

}  // namespace

std::vector<std::string> conformance_checks(const ConformanceOptions&) {
  return {};
}

Result<ConformanceReport> run_conformance(const Device&, const ConformanceOptions&) {
  return absent();
}

std::string conformance_json(const ConformanceReport&) {
  return {};
}

std::string conformance_junit(const ConformanceReport&) {
  return {};
}

std::string conformance_html(const ConformanceReport&) {
  return {};
}

Result<ConformanceReport> parse_conformance_json(const std::string&) {
  return absent();
}

std::vector<ConformanceChange> compare_conformance(const ConformanceReport&,
                                                   const ConformanceReport&) {
  return {};
}

Status forget_demotions(const Device&) {
  return absent();
}

Status dump_shaders(const Device&, const std::string&) {
  return absent();
}

Result<LayerDifference> compare_devices(const Device&, const Device&, const std::string&,
                                        const TensorMap&, const CompareOptions&) {
  return absent();
}

Result<NanOrigin> find_nan(const Device&, const std::function<Status()>&) {
  return absent();
}

uint64_t Fingerprint::digest() const {
  return 0;
}

Result<Fingerprint> take_fingerprint(const Device&, const FingerprintOptions&) {
  return absent();
}

std::string fingerprint_json(const Fingerprint&) {
  return {};
}

Result<Fingerprint> parse_fingerprint_json(const std::string&) {
  return absent();
}

std::optional<FingerprintDifference> compare_fingerprints(const Fingerprint&, const Fingerprint&) {
  return std::nullopt;
}

std::vector<std::string> benchmark_operators() {
  return {};
}

Result<std::vector<OperatorTime>> benchmark_operator(const Device&, const std::string&, int) {
  return absent();
}

}  // namespace vkformer
