// `vkformer devices`: every Vulkan device of this machine.
#include "command_line.h"

namespace vkformer::cli {

namespace {

std::string best_tier(const DeviceInfo& info) {
  return info.best_tier ? choice_name(*info.best_tier) : "";
}

Json device_json(const DeviceInfo& info) {
  Json json;
  json["index"] = info.index;
  json["name"] = info.name;
  json["driver"] = info.driver;
  json["kind"] = choice_name(info.kind);
  json["api_version"] = info.api_version;
  json["uuid"] = info.uuid;
  json["best_tier"] = best_tier(info);
  json["subgroup_size"] = info.subgroup_size;
  json["memory_bytes"] = info.memory_bytes;
  json["max_storage_range"] = info.max_storage_range;
  json["max_shared_bytes"] = info.max_shared_bytes;
  json["max_invocations"] = info.max_invocations;
  json["notes"] = info.notes;
  return json;
}

void print_device(const DeviceInfo& info) {
  const double mib = 1024.0 * 1024.0;
  print_line("[" + std::to_string(info.index) + "] " + info.name + " (" + choice_name(info.kind) +
             ")");
  print_line("    driver       " + info.driver + ", Vulkan " + info.api_version);
  print_line("    best tier    " + best_tier(info) + ", subgroups of " +
             std::to_string(info.subgroup_size));
  print_line("    memory       " + fixed(static_cast<double>(info.memory_bytes) / mib, 0) +
             " MiB, bindings up to " + fixed(static_cast<double>(info.max_storage_range) / mib, 0) +
             " MiB");
  print_line("    workgroups   up to " + std::to_string(info.max_invocations) +
             " invocations and " + std::to_string(info.max_shared_bytes / 1024) +
             " KiB of shared memory");
  print_line("    uuid         " + info.uuid);
  for (const std::string& note : info.notes) print_line("    note         " + note);
}

int run_devices(const CommonOptions& common) {
  const Result<std::vector<DeviceInfo>> devices = list_devices();
  if (!devices) return report_device(devices.error());
  if (common.json) {
    Json list = Json::array();
    for (const DeviceInfo& info : *devices) list.push_back(device_json(info));
    print_json(list);
  } else {
    for (const DeviceInfo& info : *devices) print_device(info);
  }
  if (!devices->empty()) return kExitOk;
  const Result<Device> none = Device::create();
  return none ? kExitOk : report_device(none.error());
}

}  // namespace

void add_devices_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("devices", "List the Vulkan devices of this machine.");
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer devices\n"
               "  vkformer devices --json\n");
  command->callback([&line] { line.run = [&line] { return run_devices(line.common); }; });
}

}  // namespace vkformer::cli
