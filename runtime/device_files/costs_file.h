// What slices have learned of a device's speed, in a text file beside the pipeline cache. What does
// not match exactly (a line, the device, its driver, the kernels) is as good as no file. Slices
// then begin low and learn again.
#pragma once

#include <optional>
#include <string>

#include "device_files/pipeline_cache_file.h"
#include "plan/kernel_costs.h"

namespace vkformer {

// The file of that device in that directory.
std::string costs_path(const std::string& directory, const PipelineCacheKey& key);

// As it lies in the file: a line for the key, then "fixed US", "kernel NAME WORK US" and
// "dispatch KEY US", and a checksum.
std::string costs_text(const PipelineCacheKey& key, const KernelCosts::Table& table);
// Nothing where the text is damaged or of something else.
std::optional<KernelCosts::Table> parse_costs(const std::string& text, const PipelineCacheKey& key);

std::optional<KernelCosts::Table> read_costs(const std::string& path, const PipelineCacheKey& key);
// Replaces the file whole or not at all; false where it cannot be written.
bool write_costs(const std::string& path, const PipelineCacheKey& key,
                 const KernelCosts::Table& table);

}  // namespace vkformer
