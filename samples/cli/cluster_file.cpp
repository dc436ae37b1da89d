#include "cluster_file.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "files.h"

namespace vkformer::cli {

namespace {

// Keys of an object of the file, each of them known.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  Status check(std::initializer_list<std::string_view> known) const {
    if (!object_.is_object()) return error("is not a JSON object");
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      std::string names;
      for (const std::string_view name : known)
        names += (names.empty() ? "" : ", ") + std::string(name);
      return error("has an unknown key \"" + key + "\"; known are " + names);
    }
    return {};
  }
  Status number(const char* key, double& value) const {
    if (!object_.contains(key)) return {};
    if (!object_[key].is_number()) return error(std::string("\"") + key + "\" is not a number");
    value = object_[key].get<double>();
    return {};
  }
  Status count(const char* key, int64_t& value) const {
    auto real = static_cast<double>(value);
    if (const Status read = number(key, real); !read) return read;
    constexpr double kMost = 9e15;  // whole numbers are exact up to there
    if (real != std::floor(real) || std::abs(real) > kMost)
      return error(std::string("\"") + key + "\" is not a whole number");
    value = static_cast<int64_t>(real);
    return {};
  }
  Error error(const std::string& problem) const {
    return {ErrorCode::kInvalidFile, "[" + where_ + "] " + problem + "."};
  }

 private:
  const Json& object_;
  std::string where_;
};

// The first that fails.
Status all_of(std::initializer_list<Status> steps) {
  for (const Status& step : steps) {
    if (!step) return step;
  }
  return {};
}

Status read_link(const Json& file, const char* key, const std::string& path, ClusterLink& link) {
  if (!file.contains(key)) return {};
  const Fields fields(file[key], path + ", " + key);
  return all_of({fields.check({"latency_seconds", "bytes_per_second"}),
                 fields.number("latency_seconds", link.latency),
                 fields.number("bytes_per_second", link.rate)});
}

Result<ClusterDevice> read_device(const Json& object, const std::string& where) {
  const Fields fields(object, where);
  ClusterDevice device;
  int64_t memory = 0;
  const Status read =
      all_of({fields.check({"name", "count", "memory_bytes", "read_bytes_per_second",
                            "operations_per_second", "launch_seconds", "submit_seconds"}),
              fields.count("count", device.count), fields.count("memory_bytes", memory),
              fields.number("read_bytes_per_second", device.read_rate),
              fields.number("operations_per_second", device.flops),
              fields.number("launch_seconds", device.launch),
              fields.number("submit_seconds", device.submit)});
  if (!read) return read.error();
  if (memory < 0) return fields.error("\"memory_bytes\" is negative");
  device.memory_bytes = static_cast<uint64_t>(memory);
  if (!object.contains("name") || !object["name"].is_string())
    return fields.error("\"name\" is missing or is not a text");
  device.name = object["name"].get<std::string>();
  return device;
}

std::string share(double value) {
  return fixed(100 * value, 0) + " %";
}

std::string row(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += padded(cell, 14);
  return line;
}

}  // namespace

Result<ClusterOptions> read_cluster_file(const std::string& path) {
  const Result<Json> file = read_json_file(path);
  if (!file) return file.error();
  return cluster_of_json(*file, path);
}

Result<ClusterOptions> cluster_of_json(const Json& file, const std::string& where) {
  const Fields fields(file, where);
  ClusterOptions options;
  const Status read = all_of(
      {fields.check({"nodes", "devices", "link_in_node", "link_between_nodes", "texts", "tokens",
                     "prompt_part", "notes"}),
       fields.count("nodes", options.nodes), fields.count("texts", options.texts),
       fields.count("tokens", options.tokens), fields.count("prompt_part", options.prompt_part),
       read_link(file, "link_in_node", where, options.in_node),
       read_link(file, "link_between_nodes", where, options.between_nodes)});
  if (!read) return read.error();
  if (!file.contains("devices") || !file["devices"].is_array())
    return fields.error("\"devices\" is missing or is not a list");
  for (const Json& object : file["devices"]) {
    Result<ClusterDevice> device =
        read_device(object, where + ", device " + std::to_string(options.devices.size()));
    if (!device) return device.error();
    options.devices.push_back(std::move(*device));
  }
  return options;
}

Json cluster_json(const ClusterPlan& plan) {
  Json json = {{"evidence", "estimated"}, {"best_depth", plan.splits[plan.best].depth}};
  Json& splits = json["splits"] = Json::array();
  for (const ClusterSplit& split : plan.splits) {
    Json own = {{"depth", split.depth},
                {"pipelines", split.pipelines},
                {"idle_devices", split.idle},
                {"step_seconds", split.step_seconds},
                {"tokens_per_second", split.tokens_per_second},
                {"bubbles", split.bubbles},
                {"link_use", split.link_use},
                {"first_token_seconds", split.first_token_seconds},
                {"prompt_bubbles", split.prompt_bubbles}};
    Json& stages = own["stages"] = Json::array();
    for (const ClusterStage& stage : split.stages) {
      stages.push_back({{"device", stage.stage.device},
                        {"first", stage.stage.first},
                        {"last", stage.stage.last},
                        {"weight_bytes", stage.stage.weight_bytes},
                        {"cache_bytes", stage.cache_bytes},
                        {"memory_use", stage.memory_use},
                        {"work", stage.stage.work}});
    }
    splits.push_back(std::move(own));
  }
  return json;
}

std::vector<std::string> cluster_lines(const ClusterPlan& plan) {
  const ClusterSplit& best = plan.splits[plan.best];
  std::vector<std::string> lines = {
      "estimated, most tokens a second: " + std::to_string(best.pipelines) + " pipelines of " +
          std::to_string(best.depth) + " devices, " + std::to_string(best.idle) + " devices idle",
      "", row({"device", "first", "last", "weights MB", "caches MB", "memory", "work"})};
  for (const ClusterStage& stage : best.stages) {
    lines.push_back(row({stage.stage.device, stage.stage.first, stage.stage.last,
                         fixed(static_cast<double>(stage.stage.weight_bytes) / 1e6, 1),
                         fixed(static_cast<double>(stage.cache_bytes) / 1e6, 1),
                         share(stage.memory_use), share(stage.stage.work)}));
  }
  lines.insert(lines.end(), {"", row({"depth", "pipelines", "idle", "ms a token", "tokens/s",
                                      "bubbles", "link use", "first token ms", "its bubbles"})});
  for (const ClusterSplit& split : plan.splits) {
    lines.push_back(
        row({std::to_string(split.depth), std::to_string(split.pipelines),
             std::to_string(split.idle), fixed(1e3 * split.step_seconds, 2),
             fixed(split.tokens_per_second, 1), share(split.bubbles), share(split.link_use),
             fixed(1e3 * split.first_token_seconds, 2), share(split.prompt_bubbles)}));
  }
  return lines;
}

}  // namespace vkformer::cli
