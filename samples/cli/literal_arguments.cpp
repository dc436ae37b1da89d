#include "literal_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace vkformer::cli {
namespace {

constexpr char kMark = '\x01';

bool needs_mark(const std::string& value) {
  if (value.empty()) return false;
  return value.front() == kMark || (value.front() == '[' && value.back() == ']');
}

}  // namespace

std::vector<std::string> literal_arguments(int count, const char* const* list) {
  std::vector<std::string> arguments(list + std::min(count, 1), list + count);
  std::reverse(arguments.begin(), arguments.end());
  for (std::string& argument : arguments) {
    // The value of "--option=value" stands after the sign.
    const size_t sign = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const size_t value = sign == std::string::npos ? 0 : sign + 1;
    if (needs_mark(argument.substr(value))) argument.insert(value, 1, kMark);
  }
  return arguments;
}

void accept_literals(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    // CLI11 runs what transforms before what checks.
    option->transform(CLI::Validator(
        [](std::string& value) {
          if (!value.empty() && value.front() == kMark) value.erase(0, 1);
          return std::string();
        },
        ""));
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    accept_literals(*command);
  }
}

std::string without_marks(std::string message) {
  std::erase(message, kMark);
  return message;
}

}  // namespace vkformer::cli
