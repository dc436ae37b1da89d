#include "compile/statistics_report.h"

#include <filesystem>
#include <span>

#include "checkpoint/replace_file.h"
#include "conformance/estimates/caps_json.h"
#include "conformance/kernels.h"
#include "measure/kernel_statistics.h"
#include "vulkan/device_impl.h"

namespace vkformer::compile {
namespace {

Json pipeline_json(const PlannedPipeline& planned) {
  const std::vector<std::string_view> names = conformance::constants_of(planned.kernel);
  Json constants = Json::object();
  for (size_t i = 0; i < planned.spec.size(); ++i) {
    constants[i < names.size() ? std::string(names[i]) : std::to_string(i)] = planned.spec[i];
  }
  return {{"kernel", conformance::name_of(planned.kernel)},
          {"constants", std::move(constants)},
          {"for", planned.what},
          {"groups", planned.groups},
          {"flops", planned.flops},
          {"uses", planned.uses},
          {"benchmark", planned.benchmark},
          {"chosen", planned.chosen},
          {"model", planned.model},
          {"estimated", planned.estimated}};
}

void set(Json& json, const char* name, const std::optional<double>& value) {
  if (!value) return;
  if (*value == static_cast<double>(static_cast<int64_t>(*value))) {
    json[name] = static_cast<int64_t>(*value);
  } else {
    json[name] = *value;
  }
}

Json statistics_json(const CompilerStatistics& s) {
  Json json = Json::object();
  set(json, "instructions", s.instructions);
  set(json, "registers", s.registers);
  if (s.registers) json["register_unit"] = s.register_unit;
  set(json, "spills", s.spills);
  set(json, "fills", s.fills);
  set(json, "scratch_bytes", s.scratch_bytes);
  set(json, "shared_bytes", s.shared_bytes);
  set(json, "occupancy", s.occupancy);
  if (s.occupancy) json["occupancy_unit"] = s.occupancy_unit;
  set(json, "cycles", s.cycles);
  set(json, "code_bytes", s.code_bytes);
  return json;
}

// For the name of a file.
std::string plain(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || c == '_' || c == '-' || c == '.') {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  constexpr size_t kLongest = 60;
  name.resize(std::min(name.size(), kLongest));
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

// Kernel and values: two pipelines differ in one of both.
std::string stem_of(const PlannedPipeline& planned) {
  std::string stem = conformance::name_of(planned.kernel);
  for (const uint32_t value : planned.spec) stem += "_" + std::to_string(value);
  return stem;
}

Status write_text(const std::string& path, std::string_view text) {
  return replace_file(path, std::vector{std::as_bytes(std::span(text))});
}

}  // namespace

Json device_json(const VulkanDevice& device) {
  const DeviceCaps& caps = device.caps();
  const DeviceInfo info = device.info();
  return {{"name", info.name},
          {"driver", info.driver},
          {"vulkan", info.api_version},
          {"kind", choice_name(info.kind)},
          {"tier", choice_name(caps.tier)},
          {"subgroup_size", caps.subgroup_size},
          {"max_invocations", caps.limits.max_invocations},
          {"max_shared_bytes", caps.limits.max_shared_bytes},
          {"caps", estimates::caps_json(caps, device.impl().cache_key.vendor)}};
}

StatisticsReport::StatisticsReport(const VulkanDevice& device, std::string ir_folder)
    : driver_(device.info().driver), ir_folder_(std::move(ir_folder)) {
  json_["device"] = device_json(device);
  json_["pipelines"] = Json::array();
}

Status StatisticsReport::write_representations(const std::string& stem,
                                               const Executable& executable, Json& files) {
  std::error_code error;
  std::filesystem::create_directories(ir_folder_, error);
  if (error) {
    return invalid_argument("[" + ir_folder_ + "] cannot be made: " + error.message() +
                            ". Name another folder for --ir.");
  }
  for (const Representation& one : executable.representations) {
    std::string name = stem + "." + plain(executable.name) + "." + plain(one.name) + ".txt";
    VKF_CHECK(write_text((std::filesystem::path(ir_folder_) / name).string(), one.text));
    files.push_back(std::move(name));
  }
  return {};
}

Status StatisticsReport::add(const PlannedPipeline& planned, const CompiledPipeline& compiled) {
  Json json = pipeline_json(planned);
  json["compile_ms"] = compiled.compile_ms;
  json["executables"] = Json::array();
  size_t number = 0;
  for (const Executable& executable : compiled.executables) {
    Json one{{"name", executable.name}, {"description", executable.description}};
    if (executable.subgroup_size > 0) one["subgroup_size"] = executable.subgroup_size;
    one["statistics"] = statistics_json(normalize(executable, driver_));
    one["raw"] = Json::object();
    for (const Statistic& s : executable.statistics) {
      std::visit([&](const auto value) { one["raw"][s.name] = value; }, s.value);
    }
    if (!ir_folder_.empty()) {
      // Executables of one pipeline may share a name.
      std::string stem = stem_of(planned);
      if (compiled.executables.size() > 1) stem += "." + std::to_string(number);
      one["ir"] = Json::array();
      VKF_CHECK(write_representations(stem, executable, one["ir"]));
    }
    ++number;
    json["executables"].push_back(std::move(one));
  }
  json_["pipelines"].push_back(std::move(json));
  return {};
}

void StatisticsReport::add_failure(const PlannedPipeline& planned, const Error& error) {
  Json json = pipeline_json(planned);
  json["error"] = error.message;
  json_["pipelines"].push_back(std::move(json));
}

Status StatisticsReport::write(const std::string& path) const {
  // A driver's names may be in any encoding.
  return write_text(path, json_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace vkformer::compile
