// Fuzz target: the description of a cluster, as `vkformer plan --cluster` reads it, and the plan on
// it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cluster_file.h"
#include "files.h"

using namespace vkformer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMostDevices = 64;  // more take longer, and go the same ways
  const cli::Json file = cli::parse_json({reinterpret_cast<const char*>(data), size});
  const auto options = cli::cluster_of_json(file, "fuzz");
  if (!options.ok() || options->nodes > kMostDevices) return 0;
  int64_t devices = 0;
  for (const ClusterDevice& device : options->devices) {
    if (device.count > kMostDevices) return 0;
    devices += device.count * options->nodes;
  }
  if (devices > kMostDevices) return 0;
  const auto plan = plan_cluster(
      ModelSource::directory(VKFORMER_SOURCE_DIR "/tests/golden/llama-gqa/model"), *options);
  if (!plan.ok()) return 0;
  for (const ClusterSplit& split : plan->splits) {
    if (split.pipelines * split.depth + split.idle != devices) __builtin_trap();
  }
  if (cli::cluster_lines(*plan).empty() || cli::json_text(cli::cluster_json(*plan)).empty()) {
    __builtin_trap();
  }
  return 0;
}
