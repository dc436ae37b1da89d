// Arguments that CLI11 would take for lists: it splits "[1, 2]" at commas and drops the brackets of
// "[MASK] and [MASK]". A mark in front keeps such an argument whole, and the option that gets it
// takes the mark off.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace vkformer::cli {

// The arguments after the program's name in the order of CLI11's parse(), the last one first.
std::vector<std::string> literal_arguments(int count, const char* const* list);

// Makes all options of the program and its commands take marks off.
void accept_literals(CLI::App& app);

// A message about arguments, without marks.
std::string without_marks(std::string message);

}  // namespace vkformer::cli
