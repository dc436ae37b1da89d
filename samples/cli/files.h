// Files that the program reads and writes: by pieces, by lines, or whole.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "vkformer/result.h"

namespace vkformer::cli {

// Most bytes of a line of an input, its end not counted.
constexpr size_t kMostLineBytes = size_t{16} << 20;
// Most bytes of a file that is read whole.
constexpr size_t kMostFileBytes = size_t{256} << 20;

// What every file that the program reads is read through, but for those that the library reads
// itself. That may be a file, a pipe or a device, from its beginning on. Errors name the path and
// say why.
class InputFile {
 public:
  // A directory is an error.
  static Result<InputFile> open(const std::string& path);
  // Of several processes of one command (ranks.h) all get what the first one has.
  static Result<InputFile> standard_input();

  // The path, or "stdin".
  const std::string& name() const { return name_; }
  // Fills `bytes` up to the end of the file; how many came.
  Result<size_t> read(std::span<char> bytes);
  // The next line without its end, as soon as it is there; the last one may lack the end. False
  // where nothing is left. One of more than `most` bytes is an error.
  Result<bool> read_line(std::string& line, size_t most = kMostLineBytes);
  // Whether the last line ended with the file instead of a line's end.
  bool at_end() const { return at_end_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  InputFile(std::FILE* file, std::string name) : file_(file), name_(std::move(name)) {}
  Status check_read() const;

  std::unique_ptr<std::FILE, Close> file_;
  std::string name_;
  int64_t lines_ = 0;
  bool at_end_ = false;
};

// The whole content, of at most kMostFileBytes.
Result<std::string> read_text_file(const std::string& path);
Status write_text_file(const std::string& path, const std::string& text);
// The bytes that were made, or the error of what made them.
Status write_bytes(const std::string& path, const Result<std::vector<std::byte>>& bytes);
// JSON of at most 64 levels, as config.json may have; is_discarded() where the text is none.
Json parse_json(std::string_view text);
// Content of a JSON file whose top level is an object.
Result<Json> read_json_file(const std::string& path);
// Whether stdin is no terminal and holds at least one byte, which is waited for.
bool piped_input();
bool file_exists(const std::string& path);
// The configuration of the model in a folder: gliner_config.json where it has that.
std::string model_config_file(const std::string& directory);

// Members of a JSON object. A missing or null one gives the fallback; one of another type is an
// error that names `file` and the key.
Result<int64_t> json_integer(const Json& object, const char* key, int64_t fallback,
                             const std::string& file);
Result<double> json_number(const Json& object, const char* key, double fallback,
                           const std::string& file);

}  // namespace vkformer::cli
