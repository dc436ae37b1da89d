#include "option_facts.h"

#include <algorithm>
#include <cstdlib>

namespace vkformer::cli {

namespace {

// Ranges that end beyond it only keep numbers from overflowing.
constexpr double kLargestLimit = 65536;

// "INT:INT in [1 - 4096]" or "TEXT:{auto,text,json}": what CLI11 calls a type and its checks.
struct TypeText {
  std::string type;
  std::string check;
};

TypeText type_of(const CLI::Option& option) {
  const std::string text = option.get_type_name();
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<std::string> choices_of(const std::string& check) {
  std::vector<std::string> choices;
  if (check.empty() || check.front() != '{' || check.find('}') == std::string::npos) return choices;
  std::string rest = check.substr(1, check.find('}') - 1);
  for (size_t comma = 0; comma != std::string::npos; rest.erase(0, comma + 1)) {
    comma = rest.find(',');
    choices.push_back(rest.substr(0, comma));
    if (comma == std::string::npos) break;
  }
  return choices;
}

// "1 to 4096", "at least 1"; empty: there is no range.
std::string range_of(const std::string& check) {
  const size_t open = check.find(" in [");
  const size_t dash = check.find(" - ", open);
  const size_t close = check.find(']', dash);
  if (open == std::string::npos || dash == std::string::npos || close == std::string::npos) {
    return "";
  }
  const auto number = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
  const std::string low = check.substr(open + 5, dash - open - 5);
  const std::string high = check.substr(dash + 3, close - dash - 3);
  if (number(high) <= kLargestLimit) return low + " to " + high;
  return number(low) == 0 ? "" : "at least " + low;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string names_text(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  return joined(names, ", ");
}

ValueKind kind_of(const CLI::Option& option, const TypeText& type) {
  if (option.get_type_size() == 0) return ValueKind::kNone;
  if (!choices_of(type.check).empty()) return ValueKind::kChoice;
  if (type.type.find("FILE") != std::string::npos) return ValueKind::kFile;
  if (type.type == "DIR" || option.get_name(true, false) == "MODEL") return ValueKind::kFolder;
  for (const char* number : {"INT", "UINT", "FLOAT"}) {
    if (type.type == number) return ValueKind::kNumber;
  }
  return ValueKind::kText;
}

// Names that fit between an option and its description, and a line of a manual page.
bool fit_as_value(const std::vector<std::string>& choices) {
  constexpr size_t kMostCharacters = 80;
  return joined(choices, "|").size() <= kMostCharacters;
}

std::string value_text(const OptionFacts& facts, const TypeText& type) {
  if (facts.kind == ValueKind::kNumber) return "N";
  if (facts.kind != ValueKind::kChoice) return type.type;
  return fit_as_value(facts.choices) ? joined(facts.choices, "|") : "NAME";
}

// What stands in brackets after a description.
std::string details_of(const CLI::Option& option, const TypeText& type) {
  std::string text;
  const auto add = [&text](const std::string& detail) {
    if (!detail.empty()) text += (text.empty() ? "" : "; ") + detail;
  };
  const std::vector<std::string> choices = choices_of(type.check);
  if (!choices.empty() && (option.get_positional() || !fit_as_value(choices))) {
    add("of " + joined(choices, ", "));
  }
  add(range_of(type.check));
  if (!option.get_needs().empty()) add("needs " + names_text(option.get_needs()));
  if (!option.get_excludes().empty()) add("not with " + names_text(option.get_excludes()));
  const std::string otherwise = option.get_default_str();
  const bool empty = otherwise.empty() || otherwise == "[]" || otherwise == "{}";
  // Of an option that may come without its value, CLI11 keeps here what it then means.
  const bool optional = option.get_type_size() != 0 && option.get_expected_min() == 0;
  if (!empty) add((optional ? "alone: " : "default ") + otherwise);
  return text.empty() ? "" : " (" + text + ")";
}

void add_commands(const CLI::App& app, const std::string& path, std::vector<CommandFacts>& list) {
  list.push_back({&app, path});
  for (const CLI::App* command : app.get_subcommands({})) {
    add_commands(*command, path + " " + command->get_name(), list);
  }
}

}  // namespace

OptionFacts facts_of(const CLI::Option& option) {
  const TypeText type = type_of(option);
  OptionFacts facts;
  facts.positional = option.get_positional();
  if (facts.positional) facts.names.push_back(option.get_name(true, false));
  if (!facts.positional) {
    for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  }
  facts.kind = kind_of(option, type);
  facts.choices = choices_of(type.check);
  if (facts.kind != ValueKind::kNone) facts.value = value_text(facts, type);
  facts.several = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  facts.required = option.get_required();
  facts.help = option.get_description() + details_of(option, type);
  facts.group = option.get_group();
  return facts;
}

std::vector<OptionFacts> facts_of(const CLI::App& command) {
  std::vector<OptionFacts> list;
  for (const CLI::Option* option : command.get_options()) {
    // Old names have no group, and are shown nowhere.
    if (option == command.get_help_ptr() || option->get_group().empty()) continue;
    list.push_back(facts_of(*option));
  }
  return list;
}

std::vector<CommandFacts> all_commands(const CLI::App& app) {
  std::vector<CommandFacts> list;
  add_commands(app, app.get_name(), list);
  return list;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const OptionFacts facts = facts_of(*option);
  std::string text;
  if (!facts.positional && !facts.value.empty()) text = " " + facts.value;
  if (facts.several) text += " ...";
  if (facts.required && !facts.positional) text += " (required)";
  return text;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return facts_of(*option).help;
}

}  // namespace vkformer::cli
