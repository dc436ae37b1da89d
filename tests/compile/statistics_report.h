// What vkformer_compile --statistics writes: a device, its pipelines, and what the driver's
// compiler says of each, as JSON. --ir adds files with what it prints.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compile/planned.h"
#include "vulkan/pipelines.h"

namespace vkformer::compile {

using Json = nlohmann::ordered_json;

class StatisticsReport {
 public:
  // `ir_folder`: where representations go; "" for none.
  StatisticsReport(const VulkanDevice& device, std::string ir_folder);

  // Not every kernel is in it, only those with this part in their names.
  void only(const std::string& part) { json_["only"] = part; }
  // The device for which a recording was planned.
  void planned_for(const Json& device) { json_["planned_for"] = device; }
  Status add(const PlannedPipeline& planned, const CompiledPipeline& compiled);
  void add_failure(const PlannedPipeline& planned, const Error& error);
  Status write(const std::string& path) const;

 private:
  Status write_representations(const std::string& stem, const Executable& executable, Json& files);

  std::string driver_;
  std::string ir_folder_;
  Json json_;
};

// Name, driver and clamped capabilities of a device, as far as plans depend on them.
Json device_json(const VulkanDevice& device);

}  // namespace vkformer::compile
