#include "conformance/estimates/caps_json.h"

#include "base/message.h"
#include "conformance/kernels.h"

namespace vkformer::estimates {
namespace {

using Json = nlohmann::ordered_json;

// Calls `field(name, member)` for each limit: one list for both directions.
template <class Limits, class Function>
void each_limit(Limits& limits, const Function& field) {
  field("max_storage_range", limits.max_storage_range);
  field("max_uniform_range", limits.max_uniform_range);
  field("max_storage_buffers", limits.max_storage_buffers);
  field("max_push_bytes", limits.max_push_bytes);
  field("max_shared_bytes", limits.max_shared_bytes);
  field("max_invocations", limits.max_invocations);
  field("max_group_size", limits.max_group_size);
  field("max_group_count", limits.max_group_count);
  field("storage_alignment", limits.storage_alignment);
  field("uniform_alignment", limits.uniform_alignment);
  field("max_allocation", limits.max_allocation);
}

template <class Caps, class Function>
void each_number(Caps& caps, const Function& field) {
  field("name", caps.name);
  field("driver", caps.driver);
  field("subgroup_size", caps.subgroup_size);
  field("compute_units", caps.compute_units);
  field("int64", caps.compiler.has_int64);
  field("quads", caps.compiler.has_quads);
  field("unit_lanes", caps.unit_lanes);
  field("max_unit_subgroups", caps.max_unit_subgroups);
  field("matrix2", caps.has_matrix2);
  field("keeps_dispatch_base", caps.keeps_dispatch_base);
  field("max_dispatch_flops", caps.max_dispatch_flops);
}

DeviceCaps read_caps(const Json& json) {
  DeviceCaps caps;
  const auto from = [](const Json& object) {
    return [&object](const char* name, auto& member) { object.at(name).get_to(member); };
  };
  each_number(caps, from(json));
  each_limit(caps.limits, from(json.at("limits")));
  for (const Json& unit : json.at("matrix_units")) {
    caps.matrix_units.push_back({unit.at(0), unit.at(1), unit.at(2)});
  }
  for (const KernelId kernel : conformance::all_kernels()) {
    for (const Json& name : json.at("demoted")) {
      if (name == conformance::name_of(kernel)) caps.demoted.push_back(kernel);
    }
  }
  caps.gpu = gpu_traits(json.at("vendor").get<uint32_t>(), caps.driver);
  return caps;
}

}  // namespace

Json caps_json(const DeviceCaps& caps, uint32_t vendor) {
  Json json{{"vendor", vendor},
            {"class", choice_name(caps.device_class)},
            {"tier", choice_name(caps.tier)}};
  const auto to = [](Json& object) {
    return [&object](const char* name, const auto& member) { object[name] = member; };
  };
  each_number(caps, to(json));
  json["limits"] = Json::object();
  each_limit(caps.limits, to(json["limits"]));
  json["matrix_units"] = Json::array();
  for (const MatrixUnit& unit : caps.matrix_units) {
    json["matrix_units"].push_back({unit.m, unit.n, unit.k});
  }
  json["demoted"] = Json::array();
  for (const KernelId kernel : caps.demoted) {
    json["demoted"].push_back(conformance::name_of(kernel));
  }
  return json;
}

Result<DeviceCaps> caps_from_json(const Json& json) {
  try {
    DeviceCaps caps = read_caps(json);
    VKF_ASSIGN(caps.device_class,
               choice_from_name<DeviceClass>(json.at("class").get<std::string>()));
    VKF_ASSIGN(caps.tier, choice_from_name<Tier>(json.at("tier").get<std::string>()));
    return caps;
  } catch (const nlohmann::json::exception& error) {
    return invalid_file(message({"[capabilities] They cannot be read: ", error.what(), "."}));
  }
}

}  // namespace vkformer::estimates
