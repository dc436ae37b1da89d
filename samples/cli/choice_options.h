// Options of the commands that write texts: how tokens are chosen, and where texts end.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"
#include "vkformer/tasks.h"

namespace vkformer::cli {

struct ChoiceCommandOptions {
  std::string grammar;      // file with GBNF
  std::string json_schema;  // file
  std::vector<std::string> biases;
  std::string constraint;  // what the file of grammar or json_schema holds, once read
};

// --temperature and the rest of sampling, penalties, --stop, --grammar, --json-schema.
void add_choice_options(CLI::App& command, TextOptions& text, ChoiceCommandOptions& options);
// Reads what the files hold and the biases say, and picks a seed where none was given.
Status finish_choice(ChoiceCommandOptions& options, TextOptions& text);

// Measures a text while it is written.
class TextClock {
 public:
  TextClock() : begin_(now()) {}
  void piece() {
    if (first_ == 0) first_ = now() - begin_;
  }
  // "42 tokens in 1.20 s, 35.0 tokens/s, first text after 80 ms".
  std::string report(size_t tokens) const;

 private:
  static double now();  // seconds

  double begin_;
  double first_ = 0;
};

// Whether the user has asked to stop (Ctrl-C) since it was made; a second time ends the program.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool raised() const;

 private:
  void (*before_)(int);
};

}  // namespace vkformer::cli
