// `vkformer help`: what --help prints.
#include <algorithm>
#include <memory>

#include "command_line.h"
#include "usage.h"

namespace vkformer::cli {

namespace {

int print_help(const CLI::App& app, const std::vector<std::string>& names) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  for (const std::string& name : names) {
    const std::vector<std::string> known = command_names(*command);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return report_usage(unknown_command(*command, path, name));
    }
    command = command->get_subcommand(name);
    path += " " + name;
  }
  std::string text = command->get_formatter()->make_help(command, path, CLI::AppFormatMode::Normal);
  if (text.ends_with('\n')) text.pop_back();
  print_line(text);
  return kExitOk;
}

}  // namespace

void add_help_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("help", "Print the help of the program or of a command.");
  const auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("COMMAND", *names, "command, such as generate or bench gemm");
  add_examples(*command,
               "  vkformer help generate\n"
               "  vkformer help bench gemm\n");
  command->callback(
      [&app, &line, names] { line.run = [&app, names] { return print_help(app, *names); }; });
}

}  // namespace vkformer::cli
