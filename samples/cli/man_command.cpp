// `vkformer man`: manual pages of the program and of every command.
#include <cctype>
#include <filesystem>
#include <memory>
#include <sstream>

#include "command_line.h"
#include "files.h"
#include "option_facts.h"

namespace vkformer::cli {

namespace {

// Text of a line in roff: no character means anything.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  const bool control = !result.empty() && (result.front() == '.' || result.front() == '\'');
  return control ? "\\&" + result : result;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// "vkformer-bench-gemm" of "vkformer bench gemm".
std::string page_name(std::string path) {
  for (char& c : path) {
    if (c == ' ') c = '-';
  }
  return path;
}

// A description as the line NAME has it: no capital, no period.
std::string name_text(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

std::string synopsis(const CommandFacts& command) {
  std::string text = ".B " + roff(command.path) + "\n[\\fIOPTIONS\\fR]";
  for (const OptionFacts& facts : facts_of(*command.app)) {
    if (!facts.positional) continue;
    const std::string name = "\\fI" + roff(facts.names[0]) + "\\fR" + (facts.several ? "..." : "");
    text += " " + (facts.required ? name : "[" + name + "]");
  }
  if (!command.app->get_subcommands({}).empty()) text += " \\fICOMMAND\\fR";
  return text + "\n";
}

std::string entry(const OptionFacts& facts) {
  std::string head;
  for (const std::string& name : facts.names) {
    head += (head.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  }
  if (!facts.positional && !facts.value.empty()) head += " \\fI" + roff(facts.value) + "\\fR";
  if (facts.several) head += " ...";
  return ".TP\n" + head + "\n" + roff(facts.help) + "\n";
}

// Arguments, commands, and options by group.
std::string entries(const CommandFacts& command) {
  const std::vector<OptionFacts> all = facts_of(*command.app);
  std::string arguments, commands, options;
  for (const OptionFacts& facts : all) {
    if (facts.positional) arguments += entry(facts);
  }
  for (const CLI::App* below : command.app->get_subcommands({})) {
    commands +=
        ".TP\n\\fB" + roff(below->get_name()) + "\\fR\n" + roff(below->get_description()) + "\n";
  }
  for (const std::string& group : command.app->get_groups()) {
    std::string list;
    for (const OptionFacts& facts : all) {
      if (!facts.positional && facts.group == group) list += entry(facts);
    }
    if (list.empty()) continue;
    if (group != "Options") options += ".SS " + roff(group) + "\n";
    options += list;
  }
  std::string text;
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  if (!commands.empty()) text += ".SH COMMANDS\n" + commands;
  return text + ".SH OPTIONS\n" + options + ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n" +
         "print a short form of this page and exit\n";
}

// What help has below the options: headings that end in a colon, indented lines, sentences.
std::string footer(const std::string& text) {
  std::string page;
  bool indented = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool inner = line.rfind("  ", 0) == 0;
    if (indented && !inner) page += ".EE\n";
    if (!indented && inner) page += ".EX\n";
    indented = inner;
    if (line.empty()) continue;
    if (!inner && line.back() == ':') {
      page += ".SH " + upper(roff(line.substr(0, line.size() - 1))) + "\n";
    } else {
      page += (inner ? "" : ".PP\n") + roff(inner ? line.substr(2) : line) + "\n";
    }
  }
  return indented ? page + ".EE\n" : page;
}

std::string page_of(const CommandFacts& command, const CLI::App& app) {
  const std::string name = page_name(command.path);
  const std::string text = command.app->get_description();
  std::string also;
  for (const CLI::App* below : app.get_subcommands({})) {
    if (command.app == &app)
      also += ",\n.BR " + roff(page_name("vkformer " + below->get_name())) + " (1)";
  }
  also = also.empty() ? ".BR vkformer (1)" : also.substr(2);
  return ".TH \"" + upper(roff(name)) +
         "\" 1 \"\" \"vkformer " VKFORMER_VERSION "\" \"vkformer\"\n.SH NAME\n" + roff(name) +
         " \\- " + roff(name_text(text)) + "\n.SH SYNOPSIS\n" + synopsis(command) +
         ".SH DESCRIPTION\n" + roff(text) + "\n" + entries(command) +
         footer(command.app->get_footer()) + ".SH SEE ALSO\n" + also + "\n";
}

int write_pages(const CommonOptions& common, const CLI::App& app, const std::string& folder) {
  const std::vector<CommandFacts> commands = all_commands(app);
  if (folder.empty()) {
    std::string page = page_of(commands.front(), app);
    page.pop_back();
    print_line(page);
    return kExitOk;
  }
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    return report(
        {ErrorCode::kInvalidFile, "[" + folder + "] could not be made: " + code.message() + "."});
  }
  for (const CommandFacts& command : commands) {
    const std::string file = folder + "/" + page_name(command.path) + ".1";
    const Status written = write_text_file(file, page_of(command, app));
    if (!written) return report(written.error());
  }
  if (!common.quiet) {
    print_message("wrote " + std::to_string(commands.size()) + " pages to " + folder + ".");
  }
  return kExitOk;
}

}  // namespace

void add_man_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "man", "Print the manual page, or write those of all commands to a folder.");
  const auto folder = std::make_shared<std::string>();
  add_folder_option(*command, "FOLDER", *folder, "folder for all pages, made where it is missing");
  command->add_flag("-q,--quiet", line.common.quiet,
                    "no progress and no notes on stderr; errors remain");
  add_examples(*command,
               "  vkformer man | man -l -\n"
               "  vkformer man ~/.local/share/man/man1\n");
  command->callback([&app, &line, folder] {
    line.run = [&app, &line, folder] { return write_pages(line.common, app, *folder); };
  });
}

}  // namespace vkformer::cli
