#include "usage.h"

#include <algorithm>

#include "suggestion.h"

namespace vkformer::cli {

namespace {

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

// "--temperature" for the option "temperature".
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// The commands that have an option of that name, as "generate, chat".
std::string commands_with(const CLI::App& app, const std::string& option) {
  std::string list;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::vector<std::string> names = option_names(*command);
    if (std::find(names.begin(), names.end(), option) == names.end()) continue;
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  return list;
}

std::string unknown_option(const CLI::App& app, const CLI::App& command, const std::string& path,
                           const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::string text = "[" + name + "] is not an option of `" + path + "`";
  // A single dash before a long name is a typing error, too.
  const std::string typed = name.size() > 2 && name[1] != '-' ? "-" + name : name;
  const std::string nearest = nearest_name(typed, option_names(command));
  if (!nearest.empty()) return text + "; did you mean " + nearest + "?";
  const std::string others = commands_with(app, name);
  if (!others.empty()) text += "; these commands have it: " + others;
  return text + ".";
}

std::string help_hint(const std::string& path) {
  return " See `" + path + " --help`.";
}

}  // namespace

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string unknown_command(const CLI::App& app, const std::string& path, const std::string& name) {
  const std::string text = "[" + name + "] is not a command of `" + path + "`";
  const std::string nearest = nearest_name(name, command_names(app));
  if (nearest.empty()) return text + "." + help_hint(path);
  return text + "; did you mean `" + path + " " + nearest + "`?" + help_hint(path);
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  // What nobody took explains more than what is missing in its place.
  const std::vector<std::string> left = app.remaining(true);
  const bool has_commands = !command->get_subcommands({}).empty();
  if (!left.empty()) {
    const std::string& word = left.front();
    if (is_option(word)) return unknown_option(app, *command, path, word) + help_hint(path);
    if (has_commands) return unknown_command(*command, path, word);
    return "[" + word + "] is one argument too many for `" + path + "`." + help_hint(path);
  }
  if (command->get_require_subcommand_min() > 0) {
    return "`" + path + "` needs a command." + help_hint(path);
  }
  return "`" + path + "`: " + error.what() + "." + help_hint(path);
}

}  // namespace vkformer::cli
