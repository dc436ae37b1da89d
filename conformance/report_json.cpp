// The report as JSON, and back; the schema is in docs/conformance.md.
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/guarded.h"
#include "vkformer/conformance.h"

namespace vkformer {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "vkformer conformance 1";

Json device_json(const DeviceInfo& d) {
  return {{"name", d.name},
          {"driver", d.driver},
          {"kind", choice_name(d.kind)},
          {"api_version", d.api_version},
          {"uuid", d.uuid},
          {"best_tier", d.best_tier ? choice_name(*d.best_tier) : ""},
          {"subgroup_size", d.subgroup_size},
          {"memory_bytes", d.memory_bytes},
          {"max_storage_range", d.max_storage_range},
          {"max_shared_bytes", d.max_shared_bytes},
          {"max_invocations", d.max_invocations},
          {"notes", d.notes}};
}

// Numbers that JSON has no word for become -1.
double finite(double value) {
  return value - value == 0 ? value : -1;
}

// What is as usual is omitted: the report of a whole run stays small.
Json check_json(const ConformanceCheck& c) {
  Json json{{"name", c.name}, {"outcome", choice_name(c.outcome)}, {"kernels", c.kernels}};
  json["error"] = finite(c.error);
  json["ulps"] = finite(c.ulps);
  json["elements"] = c.elements;
  json["repeats"] = c.repeats;
  json["ms"] = c.milliseconds;
  if (!c.message.empty()) json["message"] = c.message;
  if (!c.message.empty()) json["reproduce"] = c.reproduce;
  return json;
}

// A text of a report that names nothing; caught where the report is read.
struct BadChoice {
  Error error;
};

template <class Choice>
Choice choice_from(const std::string& name) {
  const Result<Choice> found = choice_from_name<Choice>(name);
  if (!found) throw BadChoice{found.error()};
  return *found;
}

ConformanceCheck check_from(const Json& json) {
  ConformanceCheck c;
  c.name = json.at("name");
  c.outcome = choice_from<ConformanceOutcome>(json.at("outcome"));
  c.kernels = json.at("kernels").get<std::vector<std::string>>();
  c.error = json.at("error");
  c.ulps = json.at("ulps");
  c.elements = json.at("elements");
  c.repeats = json.at("repeats");
  c.milliseconds = json.at("ms");
  c.message = json.value("message", "");
  c.reproduce = json.value("reproduce", "");
  c.op = c.name.substr(0, c.name.find('/'));
  const std::string way = c.name.substr(c.name.rfind('/') + 1);
  c.tier = choice_from<Tier>(way.substr(0, way.find('-')));
  return c;
}

DeviceInfo device_from(const Json& json) {
  DeviceInfo d;
  d.name = json.at("name");
  d.driver = json.at("driver");
  d.kind = choice_from<DeviceClass>(json.at("kind"));
  d.api_version = json.at("api_version");
  d.uuid = json.at("uuid");
  const std::string tier = json.at("best_tier");
  if (!tier.empty()) d.best_tier = choice_from<Tier>(tier);
  d.subgroup_size = json.at("subgroup_size");
  d.memory_bytes = json.at("memory_bytes");
  d.max_storage_range = json.at("max_storage_range");
  d.max_shared_bytes = json.at("max_shared_bytes");
  d.max_invocations = json.at("max_invocations");
  d.notes = json.at("notes").get<std::vector<std::string>>();
  return d;
}

Json section_json(const ConformanceFingerprint& f) {
  Json json{{"digest", f.digest},
            {"tensors", f.tensors},
            {"compared_with_host", f.compared_with_host},
            {"seconds", f.seconds}};
  if (!f.message.empty()) json["message"] = f.message;
  return json;
}

ConformanceFingerprint section_from(const Json& json) {
  ConformanceFingerprint f;
  f.digest = json.at("digest");
  f.tensors = json.at("tensors");
  f.compared_with_host = json.at("compared_with_host");
  f.seconds = json.at("seconds");
  f.message = json.value("message", "");
  return f;
}

ConformanceReport report_from(const Json& json) {
  ConformanceReport r;
  r.vkformer = json.at("vkformer");
  r.extent = choice_from<ConformanceExtent>(json.at("extent"));
  r.tier = choice_from<Tier>(json.at("tier"));
  r.seconds = json.at("seconds");
  r.device = device_from(json.at("device"));
  if (json.contains("fingerprint")) r.fingerprint = section_from(json["fingerprint"]);
  r.kernels_run = json.at("kernels_run").get<std::vector<std::string>>();
  r.kernels_not_run = json.at("kernels_not_run").get<std::vector<std::string>>();
  r.demoted = json.at("demoted").get<std::vector<std::string>>();
  r.demotion_file = json.value("demotion_file", "");
  for (const Json& check : json.at("checks")) r.checks.push_back(check_from(check));
  return r;
}

}  // namespace

std::string conformance_json(const ConformanceReport& r) {
  Json json{
      {"format", kFormat},           {"vkformer", r.vkformer}, {"extent", choice_name(r.extent)},
      {"tier", choice_name(r.tier)}, {"seconds", r.seconds},   {"device", device_json(r.device)}};
  if (r.fingerprint) json["fingerprint"] = section_json(*r.fingerprint);
  for (const char* name : choice_names<ConformanceOutcome>()) {
    json["counts"][name] = r.count(*choice_from_name<ConformanceOutcome>(name));
  }
  json["kernels_run"] = r.kernels_run;
  json["kernels_not_run"] = r.kernels_not_run;
  json["demoted"] = r.demoted;
  if (!r.demotion_file.empty()) json["demotion_file"] = r.demotion_file;
  // One line a check, so that two reports can be compared by eye.
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.rfind('}'));
  text += ",\n \"checks\": [";
  for (size_t i = 0; i < r.checks.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") +
            check_json(r.checks[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text + "\n ]\n}\n";
}

Result<ConformanceReport> parse_conformance_json(const std::string& text) {
  return guarded([&]() -> Result<ConformanceReport> {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("format") || json["format"] != kFormat) {
      return invalid_file(std::string("[conformance] This is no report of the form '") + kFormat +
                          "'; make one with `vkformer conformance --json FILE`.");
    }
    try {
      return report_from(json);
    } catch (const BadChoice& bad) {
      return invalid_file("[conformance] The report is damaged: " + bad.error.message +
                          " Make the report anew.");
    } catch (const nlohmann::json::exception& error) {
      return invalid_file(std::string("[conformance] The report is damaged: ") + error.what() +
                          "; make it anew.");
    }
  });
}

std::vector<ConformanceChange> compare_conformance(const ConformanceReport& before,
                                                   const ConformanceReport& after) {
  std::vector<ConformanceChange> changes;
  const auto find = [](const ConformanceReport& report) {
    std::map<std::string, ConformanceOutcome> outcomes;
    for (const ConformanceCheck& c : report.checks) outcomes[c.name] = c.outcome;
    return outcomes;
  };
  const auto a = find(before), b = find(after);
  for (const auto& [name, outcome] : a) {
    const auto other = b.find(name);
    std::optional<ConformanceOutcome> now;
    if (other != b.end()) now = other->second;
    if (now != outcome) changes.push_back({name, outcome, now});
  }
  for (const auto& [name, outcome] : b) {
    if (a.count(name) == 0) changes.push_back({name, std::nullopt, outcome});
  }
  return changes;
}

}  // namespace vkformer
