// The kernels that gave wrong results on a device, in a small text file beside the pipeline cache.
// Like the cache it holds for one device, driver and build of vkformer; for others it is ignored.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "device_files/pipeline_cache_file.h"
#include "kernels/catalogue.h"

namespace vkformer {

// The file of that device in that directory.
std::string demotion_path(const std::string& directory, const PipelineCacheKey& key);

// Empty where there is no such file. Why it cannot be used is an error.
Result<std::vector<KernelId>> read_demoted_kernels(const std::string& path,
                                                   const PipelineCacheKey& key);
// Replaces the file whole or not at all; without kernels it is removed.
Status write_demoted_kernels(const std::string& path, const PipelineCacheKey& key,
                             std::span<const KernelId> kernels);

}  // namespace vkformer
