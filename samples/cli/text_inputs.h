// Texts from the command line or a file, and their way to token rows. Used by the
// task commands, attend, tokenize and bench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files.h"
#include "vkformer/result.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

// One input text and where it came from, for messages.
struct TextInput {
  std::string text;
  std::string origin;  // "argument 3", "words.txt, line 7"
};

// Whole lines of a file.
struct NumberedLines {
  std::string text;
  std::string file;   // for messages
  int64_t first = 1;  // the number of the first line
};

// Gives the inputs of a command piece by piece, so that a file may be of any length.
class InputReader {
 public:
  // Exactly one of `texts` and `file` ("-" is stdin) must be given.
  static Result<InputReader> open(std::vector<std::string> texts, const std::string& file);

  static InputReader of_lines(NumberedLines lines);

  // The next inputs, at most `count`; none at the end.
  Result<std::vector<TextInput>> next(size_t count);

 private:
  InputReader() = default;
  // The next line of what is read; false at the end.
  Result<bool> read_line(std::string& text);
  bool cut_line(std::string& text);

  std::vector<std::string> texts_;
  std::optional<InputFile> file_;       // neither this
  std::optional<NumberedLines> lines_;  // nor these: texts_ are the inputs
  size_t cut_ = 0;                      // bytes of lines_ given so far
  size_t position_ = 0;                 // arguments given so far, or lines of the whole file
};

enum class LongInput : uint8_t { kError, kTruncate };

// Tokens of one input. An input of more than `limit` tokens (0: no limit) is an error that names
// its origin, or is cut.
Result<Encoding> encode_input(const Tokenizer& tokenizer, const TextInput& input, int64_t limit,
                              LongInput long_input);

}  // namespace vkformer::cli
