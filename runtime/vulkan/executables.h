// What a driver's compiler says of a pipeline (VK_KHR_pipeline_executable_properties): its
// executables, the statistics of each, and what the compiler prints of its stages. Nothing is
// interpreted: names and values are the driver's.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "driver/api_table.h"

namespace vkformer {

// What pipelines keep for it. Drivers that keep it compile the same code, into a separate cache
// entry.
enum class Capture : uint8_t { kNone, kStatistics, kRepresentations };

using StatisticValue = std::variant<bool, int64_t, uint64_t, double>;

struct Statistic {
  std::string name;
  std::string description;
  StatisticValue value;
};
double number_of(const StatisticValue& value);

// What a stage of the compiler left, as text: "ACO IR", "Assembly".
struct Representation {
  std::string name;
  std::string text;
};

struct Executable {
  std::string name;
  std::string description;
  uint32_t subgroup_size = 0;  // that it was compiled for; 0: the driver does not say
  std::vector<Statistic> statistics;
  std::vector<Representation> representations;  // the texts among them
};

// VkPipelineCreateFlags of a pipeline that keeps it.
VkPipelineCreateFlags capture_flags(Capture capture);

// Precondition: the pipeline was made with the flags of `capture`, on a device with the extension
// and its feature. One thread at a time for a pipeline.
Result<std::vector<Executable>> read_executables(const DeviceApi& api, VkDevice device,
                                                 VkPipeline pipeline, Capture capture);

}  // namespace vkformer
