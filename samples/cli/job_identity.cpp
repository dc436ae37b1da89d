#include "job_identity.h"

#include <algorithm>
#include <array>

#include "file_marks.h"
#include "option_facts.h"

namespace vkformer::cli {

namespace {

// What may differ between the processes of a job, beside the options of the group Device.
constexpr std::array<std::string_view, 8> kOwnOptions = {
    "--output", "--outputs", "--quiet", "--json", "--resume", "--shared", "--progress", "--stream"};

// The first long name, which the pages use; an argument has one name.
std::string name_of(const OptionFacts& facts) {
  const auto found = std::find_if(facts.names.begin(), facts.names.end(),
                                  [](const std::string& name) { return name.starts_with("--"); });
  return found != facts.names.end() ? *found : facts.names.back();
}

bool is_own(const OptionFacts& facts) {
  return facts.group == "Device" ||
         std::any_of(facts.names.begin(), facts.names.end(), [](const std::string& name) {
           return std::find(kOwnOptions.begin(), kOwnOptions.end(), name) != kOwnOptions.end();
         });
}

// Whether values are paths; of "PATH[=SCALE]" what comes before the sign is one.
bool names_files(const OptionFacts& facts) {
  return facts.kind == ValueKind::kFile || facts.kind == ValueKind::kFolder ||
         facts.value.starts_with("DIR") || facts.value.starts_with("PATH[");
}

// A path as the marks of what it leads to, since it may be another one on every machine.
Result<Json> file_value(const OptionFacts& facts, const std::string& value) {
  const size_t equals = facts.value.starts_with("PATH[") ? value.rfind('=') : std::string::npos;
  const Result<Json> marks = path_marks(value.substr(0, equals));
  if (!marks) return marks.error().with_context("[" + name_of(facts) + "]");
  if (equals == std::string::npos) return *marks;
  return Json{{"files", *marks}, {"scale", value.substr(equals + 1)}};
}

// Whom a process is compared with, and what to do where they differ.
struct Other {
  const std::string& where;
  const std::string& advice;
};

std::string changed(const std::string& name, const Other& other, const std::string& begun,
                    const std::string& own) {
  return "[" + name + "] is " + own + " here, but " + begun + " " + other.where + ". " +
         other.advice;
}

// Where two values of an option or argument differ.
std::string value_difference(const std::string& name, const Json& begun, const Json& own,
                             const Other& with) {
  // Of one folder the file is named.
  const bool folders = begun.is_array() && own.is_array() && begun.size() == 1 && own.size() == 1 &&
                       begun[0].is_object() && own[0].is_object();
  if (!folders) return changed(name, with, json_text(begun), json_text(own));
  for (const auto& [file, mark] : own[0].items()) {
    const Json other = begun[0].value(file, Json("missing"));
    if (other != mark) return changed(name + ", " + file, with, json_text(other), json_text(mark));
  }
  for (const auto& [file, mark] : begun[0].items()) {
    if (!own[0].contains(file))
      return changed(name + ", " + file, with, json_text(mark), "missing");
  }
  return "";
}

}  // namespace

Result<Json> job_identity(const CLI::App& command) {
  Json identity = {{"program", "vkformer " VKFORMER_VERSION}, {"command", command.get_name()}};
  Json& options = identity["options"] = Json::object();
  for (const CLI::Option* option : command.get_options()) {
    const OptionFacts facts = facts_of(*option);
    // An old name's value is the new one's.
    if (option == command.get_help_ptr() || is_own(facts) || facts.group.empty()) continue;
    std::vector<std::string> values = option->results();
    if (values.empty() && !names_files(facts)) values = {option->get_default_str()};
    Json& list = options[name_of(facts)] = Json::array();
    for (const std::string& value : values) {
      Result<Json> part = names_files(facts) ? file_value(facts, value) : Result<Json>(Json(value));
      if (!part) return part.error();
      list.push_back(std::move(*part));
    }
  }
  return identity;
}

std::string identity_difference(const Json& begun, const Json& own, const std::string& where,
                                const std::string& advice) {
  const Other with{where, advice};
  for (const char* key : {"program", "command"}) {
    const Json other = begun.value(key, Json("missing"));
    if (other != own[key]) return changed(key, with, json_text(other), json_text(own[key]));
  }
  const Json options = begun.value("options", Json::object());
  for (const auto& [name, value] : own["options"].items()) {
    const Json other = options.value(name, Json());
    if (other == value) continue;
    const std::string difference = value_difference(name, other, value, with);
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace vkformer::cli
