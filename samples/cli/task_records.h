// Inputs of the task commands as JSON objects, and their answers as JSON lines.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>

#include "output.h"
#include "system_file.h"
#include "text_inputs.h"

namespace vkformer::cli {

// One input: a line of JSON, or a plain line or argument under the command's own key.
struct TaskRecord {
  Json fields = Json::object();
  std::string origin;                         // "argument 3", "words.txt, line 7"
  std::optional<Error> error = std::nullopt;  // why the line is no input
};

// Gives the inputs of a task command piece by piece.
class RecordReader {
 public:
  // Exactly one of `arguments` and `file` ("-" is stdin) must be given. `format` is "text", "json",
  // or "auto": JSON lines where the file's first line is a JSON object.
  static Result<RecordReader> open(std::vector<std::string> arguments, const std::string& file,
                                   const std::string& format, const std::string& plain_key);

  // Lines of a file that are at hand, the first of which has that number; `format` is not "auto".
  static RecordReader of_lines(NumberedLines lines, const std::string& format,
                               const std::string& plain_key);

  // The next inputs, at most `count`; none at the end. Empty lines between JSON lines are none.
  Result<std::vector<TaskRecord>> next(size_t count);
  // Inputs in all, or 0 where that is not known.
  int64_t total() const { return total_; }

 private:
  RecordReader(InputReader inputs, std::string format, std::string plain_key)
      : inputs_(std::move(inputs)), format_(std::move(format)), plain_key_(std::move(plain_key)) {}
  TaskRecord read(TextInput input) const;

  InputReader inputs_;
  std::string format_;
  std::string plain_key_;
  int64_t total_ = 0;
};

// What the lines of a file are, whose first line this is: `format`, or what "auto" finds.
std::string format_of_lines(const std::string& first, const std::string& format);
// Whether a line is no input: an empty one between JSON lines.
bool is_passed_over(const std::string& line, const std::string& format);
// Lines of a regular file, or 0.
int64_t count_lines(const std::string& path);

// Writes lines to a file or stdout.
class LineWriter {
 public:
  // An empty path is stdout. kContinue keeps the whole lines of an existing file and cuts off what
  // follows them. A file that another process writes is an error.
  enum class Existing : uint8_t { kReplace, kContinue };
  static Result<LineWriter> open(const std::string& path, Existing existing);

  // Whole lines that the file held, and the last of them.
  int64_t kept_lines() const { return kept_lines_; }
  const std::string& last_kept_line() const { return last_kept_line_; }
  Status write(const std::string& line);
  // Hands everything written so far to the system.
  Status flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  LineWriter() = default;
  Status lock_file();
  Status keep_lines();
  Error error(const char* what) const;

  std::string path_;
  std::optional<SystemFile> lock_;  // of a regular file
  std::unique_ptr<std::FILE, Close> file_;
  int64_t kept_lines_ = 0;
  std::string last_kept_line_;
};

// A field that must be a text.
Result<std::string> text_field(const Json& fields, const char* key);
// The same of a field that may be missing.
Result<std::optional<std::string>> optional_text_field(const Json& fields, const char* key);

}  // namespace vkformer::cli
