#include "compile/recording_file.h"

#include <set>
#include <span>

#include "checkpoint/mapped_file.h"
#include "checkpoint/replace_file.h"
#include "compile/statistics_report.h"
#include "conformance/kernels.h"
#include "json/json_access.h"
#include "vulkan/device_impl.h"

namespace vkformer::compile {
namespace {

constexpr const char* kFormat = "vkformer pipelines 2";
// More than any kernel or plan has.
constexpr size_t kMostWords = 1 << 20;
constexpr size_t kMostPipelines = 100'000;
constexpr size_t kMostConstants = 64;
constexpr int64_t kMostUint = 0xffffffff;

Result<uint32_t> uint_of(const JsonRef& json) {
  VKF_ASSIGN(const int64_t value, json.integer(0, kMostUint));
  return static_cast<uint32_t>(value);
}

Result<std::vector<uint32_t>> uints_of(const JsonRef& json, size_t most) {
  VKF_ASSIGN(const size_t count, json.array_size());
  if (count > most) {
    return json.malformed("has " + std::to_string(count) + " elements; at most " +
                          std::to_string(most) + " are read");
  }
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    VKF_ASSIGN(values[i], uint_of(json.element(i)));
  }
  return values;
}

Result<KernelId> kernel_of(const JsonRef& place, std::string_view name) {
  for (const KernelId id : conformance::all_kernels()) {
    if (name == conformance::name_of(id)) return id;
  }
  return place.not_supported("names the kernel '" + std::string(name.substr(0, 80)) +
                             "', which this build does not have");
}

Status read_kernels(const JsonRef& json, RecordedPipelines& recorded) {
  if (!json.node().is_object()) return json.wrong_type("an object");
  for (const auto& [name, node] : json.node().items()) {
    const JsonRef kernel(node, json.path() + "." + name.substr(0, 80));
    VKF_ASSIGN(const KernelId id, kernel_of(kernel, name));
    VKF_ASSIGN(const JsonRef spirv, kernel.member("spirv"));
    VKF_ASSIGN(auto words, uints_of(spirv, kMostWords));
    const auto interface = reflect_spirv(words);
    if (!interface) return interface.error().with_context(spirv.path());
    recorded.kernels[id] = std::move(words);
    VKF_ASSIGN(const JsonRef size, kernel.member("subgroup_size"));
    VKF_ASSIGN(recorded.subgroup_sizes[id], uint_of(size));
  }
  return {};
}

Result<PlannedPipeline> read_pipeline(const JsonRef& json, const RecordedPipelines& recorded) {
  PlannedPipeline one;
  VKF_ASSIGN(const JsonRef kernel, json.member("kernel"));
  VKF_ASSIGN(const std::string name, kernel.text());
  VKF_ASSIGN(one.kernel, kernel_of(kernel, name));
  if (recorded.kernels.count(one.kernel) == 0) {
    return kernel.malformed("names '" + name + "', whose SPIR-V the file lacks");
  }
  VKF_ASSIGN(const JsonRef constants, json.member("constants"));
  VKF_ASSIGN(one.spec, uints_of(constants, kMostConstants));
  VKF_ASSIGN(const JsonRef groups, json.member("groups"));
  VKF_ASSIGN(const auto counts, uints_of(groups, one.groups.size()));
  std::copy(counts.begin(), counts.end(), one.groups.begin());
  VKF_ASSIGN(const JsonRef flops, json.member("flops"));
  if (!flops.node().is_number()) return flops.wrong_type("a number");
  one.flops = flops.node().get<double>();
  VKF_ASSIGN(one.what, json.text_or("for", ""));
  VKF_ASSIGN(one.benchmark, json.boolean_or("benchmark", false));
  VKF_ASSIGN(one.chosen, json.boolean_or("chosen", false));
  VKF_ASSIGN(one.model, json.boolean_or("model", false));
  VKF_ASSIGN(one.estimated, json.boolean_or("estimated", true));
  one.uses = 1;
  return one;
}

}  // namespace

uint32_t required_subgroup_size(const Context& context, KernelId kernel) {
  const bool sized = (kernel_info(kernel).features & kFeature_matrix) != 0;
  return sized && context.sizes_subgroups ? context.caps.subgroup_size : 0;
}

Status write_recording(const std::string& path, const VulkanDevice& device,
                       const std::vector<PlannedPipeline>& pipelines) {
  Json json;
  json["format"] = kFormat;
  json["device"] = device_json(device);
  json["kernels"] = Json::object();
  json["pipelines"] = Json::array();
  std::set<KernelId> kernels;
  for (const PlannedPipeline& one : pipelines) {
    const char* const name = conformance::name_of(one.kernel);
    if (kernels.insert(one.kernel).second) {
      json["kernels"][name] = {
          {"subgroup_size", required_subgroup_size(device.impl().context, one.kernel)},
          {"spirv", kernel_spirv(one.kernel)}};
    }
    json["pipelines"].push_back({{"kernel", name},
                                 {"constants", one.spec},
                                 {"for", one.what},
                                 {"groups", one.groups},
                                 {"flops", one.flops},
                                 {"benchmark", one.benchmark},
                                 {"chosen", one.chosen},
                                 {"model", one.model},
                                 {"estimated", one.estimated}});
  }
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return replace_file(path, std::vector{std::as_bytes(std::span(text))});
}

Result<RecordedPipelines> read_recording(const std::string& path) {
  VKF_ASSIGN(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return parse_recording({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

Result<RecordedPipelines> parse_recording(std::string_view text, const std::string& name) {
  VKF_ASSIGN(const nlohmann::json document, parse_json(text, name));
  const JsonRef json(document, name);
  VKF_ASSIGN(const JsonRef format, json.member("format"));
  VKF_ASSIGN(const std::string version, format.text());
  if (version != kFormat) {
    return format.not_supported("is '" + version.substr(0, 80) + "'; this program reads '" +
                                kFormat + "'");
  }
  RecordedPipelines recorded;
  VKF_ASSIGN(const JsonRef device, json.member("device"));
  recorded.device = device.node();
  VKF_ASSIGN(const JsonRef kernels, json.member("kernels"));
  VKF_CHECK(read_kernels(kernels, recorded));
  VKF_ASSIGN(const JsonRef pipelines, json.member("pipelines"));
  VKF_ASSIGN(const size_t count, pipelines.array_size());
  if (count > kMostPipelines) {
    return pipelines.malformed("has " + std::to_string(count) + " elements; at most " +
                               std::to_string(kMostPipelines) + " are read");
  }
  for (size_t i = 0; i < count; ++i) {
    VKF_ASSIGN(PlannedPipeline one, read_pipeline(pipelines.element(i), recorded));
    recorded.pipelines.push_back(std::move(one));
  }
  return recorded;
}

}  // namespace vkformer::compile
