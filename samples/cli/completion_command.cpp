// `vkformer completion`: scripts with which shells complete commands, options and their values.
#include <memory>

#include "command_line.h"
#include "option_facts.h"
#include "usage.h"

namespace vkformer::cli {

namespace {

// `text` in single quotes, as bash and zsh read it.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// The same for fish, where a backslash escapes within quotes.
std::string fish_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// What bash offers after an option, or in the place of an argument: a compgen command.
std::string bash_values(const OptionFacts& facts) {
  switch (facts.kind) {
    case ValueKind::kChoice:
      return "words " + shell_quoted(joined(facts.choices, " "));
    case ValueKind::kFile:
      return "files -f";
    case ValueKind::kFolder:
      return "files -d";
    case ValueKind::kText:
      return "files -f";  // an input may be one
    default:
      return "words ''";
  }
}

// How a command's arguments are completed; all in the same way, by the last of them.
std::string bash_arguments(const CLI::App& app) {
  const std::vector<std::string> commands = command_names(app);
  if (!commands.empty()) return "words " + shell_quoted(joined(commands, " "));
  std::string values = "words ''";
  for (const OptionFacts& facts : facts_of(app)) {
    if (facts.positional) values = bash_values(facts);
  }
  return values;
}

constexpr const char* kBashStart =
    "# bash completion of vkformer, written by `vkformer completion bash`.\n"
    "_vkformer() {\n"
    "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "  local command=vkformer options= i\n"
    "  words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n"
    "  files() {\n"
    "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$current\")\n"
    "    compopt -o filenames 2>/dev/null\n"
    "  }\n"
    "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
    "    case \"$command ${COMP_WORDS[i]}\" in\n";

std::string bash_script(const CLI::App& app) {
  const std::vector<CommandFacts> commands = all_commands(app);
  std::string paths, values, rest;
  for (const CommandFacts& command : commands) {
    if (command.app != &app)
      paths += (paths.empty() ? "      " : " |\\\n        ") + shell_quoted(command.path);
    std::string options = "--help";
    for (const OptionFacts& facts : facts_of(*command.app)) {
      for (const std::string& name : facts.names) {
        if (facts.positional) continue;
        options += " " + name;
        if (facts.kind == ValueKind::kNone) continue;
        values += "    " + shell_quoted(command.path + " " + name) + ") " + bash_values(facts) +
                  "; return ;;\n";
      }
    }
    rest += "    " + shell_quoted(command.path) + ")\n      options=" + shell_quoted(options) +
            "\n      " + bash_arguments(*command.app) + " ;;\n";
  }
  return kBashStart + paths +
         ") command=\"$command ${COMP_WORDS[i]}\" ;;\n"
         "    esac\n  done\n  case \"$command $previous\" in\n" +
         values + "  esac\n  case \"$command\" in\n" + rest +
         "  esac\n"
         "  if [[ $current == -* ]]; then words \"$options\"; fi\n"
         "}\n"
         "complete -F _vkformer vkformer\n";
}

// `text` inside the brackets of an _arguments specification.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionFacts& facts) {
  switch (facts.kind) {
    case ValueKind::kChoice:
      return "(" + joined(facts.choices, " ") + ")";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kFile:
    case ValueKind::kText:
      return "_files";
    default:
      return " ";
  }
}

// The specifications of a command's options and arguments, each on its own line.
std::string zsh_specifications(const CLI::App& app) {
  std::string text = "    '(-h --help)'{-h,--help}'[print this help and exit]'";
  int place = 0;
  for (const OptionFacts& facts : facts_of(app)) {
    const std::string value = facts.kind == ValueKind::kNone
                                  ? std::string()
                                  : ":" +
                                        zsh_text(facts.positional ? facts.names[0] : facts.value) +
                                        ":" + zsh_action(facts);
    if (facts.positional) {
      const std::string at = facts.several ? "*" : std::to_string(++place);
      text += " \\\n    " + shell_quoted(at + value);
      continue;
    }
    for (const std::string& name : facts.names) {
      text += " \\\n    " + shell_quoted((facts.several ? "*" : "") + name + "[" +
                                         zsh_text(facts.help) + "]" + value);
    }
  }
  return text;
}

std::string function_name(std::string path) {
  for (char& c : path) {
    if (c == ' ' || c == '-') c = '_';
  }
  return "_" + path;
}

// A function for the command, which calls those of its commands.
std::string zsh_function(const CommandFacts& command) {
  const std::string head = function_name(command.path) + "() {\n";
  if (command.app->get_subcommands({}).empty()) {
    return head + "  _arguments \\\n" + zsh_specifications(*command.app) + "\n}\n\n";
  }
  std::string list, calls;
  for (const CLI::App* below : command.app->get_subcommands({})) {
    list += "        " + shell_quoted(below->get_name() + ":" + below->get_description()) + "\n";
    calls += "        " + below->get_name() + ") " +
             function_name(command.path + " " + below->get_name()) + " ;;\n";
  }
  return head +
         "  local curcontext=\"$curcontext\" state line\n"
         "  local -a commands\n"
         "  typeset -A opt_args\n"
         "  _arguments -C \\\n" +
         zsh_specifications(*command.app) +
         " \\\n    '1: :->command' '*:: :->arguments'\n"
         "  case $state in\n"
         "    command)\n"
         "      commands=(\n" +
         list +
         "      )\n"
         "      _describe command commands ;;\n"
         "    arguments)\n"
         "      case $words[1] in\n" +
         calls +
         "      esac ;;\n"
         "  esac\n}\n\n";
}

std::string zsh_script(const CLI::App& app) {
  std::string text =
      "#compdef vkformer\n# zsh completion of vkformer, written by `vkformer completion zsh`.\n\n";
  for (const CommandFacts& command : all_commands(app)) text += zsh_function(command);
  return text +
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
         "  _vkformer \"$@\"\n"
         "else\n"
         "  compdef _vkformer vkformer\n"
         "fi\n";
}

constexpr const char* kFishStart =
    "# fish completion of vkformer, written by `vkformer completion fish`.\n"
    "# Whether the commands that are typed already are these.\n"
    "function __vkformer_at\n"
    "    set -l path vkformer\n"
    "    for word in (commandline -opc)[2..-1]\n"
    "        contains -- \"$path $word\" $__vkformer_commands; and set path \"$path $word\"\n"
    "    end\n"
    "    test \"$path\" = \"$argv\"\n"
    "end\n"
    "complete -c vkformer -f\n";

std::string fish_line(const std::string& path, const std::string& what, const std::string& help) {
  return "complete -c vkformer -n " + fish_quoted("__vkformer_at " + path) + " " + what + " -d " +
         fish_quoted(help) + "\n";
}

// The files, folders or words that may stand there.
std::string fish_values(const OptionFacts& facts) {
  switch (facts.kind) {
    case ValueKind::kChoice:
      return "-x -a " + fish_quoted(joined(facts.choices, " "));
    case ValueKind::kFolder:
      return "-x -a '(__fish_complete_directories)'";
    case ValueKind::kNone:
      return "";
    case ValueKind::kNumber:
      return "-x";
    default:
      return "-r -F";
  }
}

std::string fish_script(const CLI::App& app) {
  std::string names, lines;
  for (const CommandFacts& command : all_commands(app)) {
    names += " " + fish_quoted(command.path);
    for (const CLI::App* below : command.app->get_subcommands({})) {
      lines += fish_line(command.path, "-a " + below->get_name(), below->get_description());
    }
    lines += fish_line(command.path, "-s h -l help", "print this help and exit");
    for (const OptionFacts& facts : facts_of(*command.app)) {
      std::string what;
      for (const std::string& name : facts.names) {
        if (facts.positional) break;
        what += name[1] == '-' ? "-l " + name.substr(2) + " " : "-s " + name.substr(1) + " ";
      }
      if (facts.positional && facts.kind == ValueKind::kFolder) {
        what = "-a '(__fish_complete_directories)'";
      } else if (facts.positional && facts.kind == ValueKind::kChoice) {
        what = "-a " + fish_quoted(joined(facts.choices, " "));
      } else {
        what += facts.positional ? "-F" : fish_values(facts);
      }
      lines += fish_line(command.path, what, facts.help);
    }
  }
  return "set -g __vkformer_commands" + names + "\n" + kFishStart + lines;
}

}  // namespace

void add_completion_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "completion", "Print the script with which a shell completes commands and options.");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "shell")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}));
  add_examples(*command,
               "  source <(vkformer completion bash)\n"
               "  vkformer completion zsh > ~/.zfunc/_vkformer\n"
               "  vkformer completion fish > ~/.config/fish/completions/vkformer.fish\n");
  command->callback([&app, &line, shell] {
    line.run = [&app, shell] {
      std::string text = *shell == "bash"  ? bash_script(app)
                         : *shell == "zsh" ? zsh_script(app)
                                           : fish_script(app);
      text.pop_back();
      print_line(text);
      return kExitOk;
    };
  });
}

}  // namespace vkformer::cli
