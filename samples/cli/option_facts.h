// What help, man pages and completion say of commands and options, read from the CLI11 app: the one
// source of all three.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace vkformer::cli {

// What the value of an option is.
enum class ValueKind : uint8_t { kNone, kText, kNumber, kChoice, kFile, kFolder };

struct OptionFacts {
  std::vector<std::string> names;     // "-q", "--quiet"; of an argument its one name, "MODEL"
  bool positional = false;            // an argument
  ValueKind kind = ValueKind::kNone;  // kNone: a flag
  std::string value;                  // what stands for the value: "FILE", "N", "a|b"
  std::vector<std::string> choices;   // of kChoice
  bool several = false;               // takes several values, or may be repeated
  bool required = false;
  std::string help;  // the description, with range, default and what the option goes with
  std::string group;
};

// Of one option or argument.
OptionFacts facts_of(const CLI::Option& option);
// Of all of a command, in the order in which help shows them, without --help.
std::vector<OptionFacts> facts_of(const CLI::App& command);

// A command at any depth, and how it is called: "vkformer bench gemm".
struct CommandFacts {
  const CLI::App* app = nullptr;
  std::string path;
};
// The app itself first, then its commands, each followed by its own.
std::vector<CommandFacts> all_commands(const CLI::App& app);

// Help in which an option's line has its value, and its description the range and the default.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace vkformer::cli
