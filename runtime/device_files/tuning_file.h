// What the tuner found for a device, in a small text file beside the pipeline cache. Whatever does
// not match exactly, a line, the device, its driver, the kernels, is no tuning at all.
#pragma once

#include <string>

#include "base/check.h"
#include "device_files/pipeline_cache_file.h"
#include "plan/device_caps.h"

namespace vkformer {

// What a file must have been made with to be used.
struct TuningKey {
  PipelineCacheKey device;
  Tier tier = Tier::kBaseline;
};

// The file of that device in that directory.
std::string tuning_path(const std::string& directory, const TuningKey& key);

// As it lies in the file: a line for the key, one for every choice, and a checksum.
std::string tuning_text(const TuningKey& key, const MatmulTuning& tuning);
// Why it cannot be used is an error.
Result<MatmulTuning> parse_tuning(const std::string& text, const TuningKey& key);

// Empty where there is no such file.
Result<MatmulTuning> read_tuning(const std::string& path, const TuningKey& key);
// Replaces the file whole or not at all.
Status write_tuning(const std::string& path, const TuningKey& key, const MatmulTuning& tuning);

}  // namespace vkformer
