// What is wrong with a command line, in words that say how to go on.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vkformer::cli {

// The message for an error of app.parse(). It names a command or an option that does not exist and
// the nearest one that does, and the help to read.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

// The message for a name that is no command of `app`, whose own name on the command line is `path`:
// "vkformer" or "vkformer bench".
std::string unknown_command(const CLI::App& app, const std::string& path, const std::string& name);

// The names of the commands of `app`, in order.
std::vector<std::string> command_names(const CLI::App& app);

}  // namespace vkformer::cli
