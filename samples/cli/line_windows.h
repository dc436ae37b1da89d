// The lines of a file in windows: runs of inputs that are read, answered and written as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"
#include "vkformer/result.h"

namespace vkformer::cli {

struct LineWindow {
  int64_t offset = 0;  // bytes, in the file
  int64_t bytes = 0;
  int64_t line = 1;  // number of its first line, from 1
  int64_t inputs = 0;
  std::string digest;  // digest_text() of its bytes
};

struct LineWindows {
  std::string format;  // "text" or "json"
  std::vector<LineWindow> list;
  int64_t inputs = 0;  // of all
};

struct LineWindowOptions {
  std::string format = "auto";  // as RecordReader::open() has it
  int64_t group = 1;            // inputs that are answered together; windows hold whole groups
  int64_t window = 0;           // inputs of a window, rounded up to groups; 0: by the number of all
};

// Reads the file once for its number of lines and once for its windows. A window ends early after
// 64 MiB.
Result<LineWindows> find_windows(const std::string& path, const LineWindowOptions& options);
// The window's bytes; an error where the file has others than those of which the digest is.
Result<std::string> read_window(const std::string& path, const LineWindow& window);

Json windows_json(const LineWindows& windows);
// Of a file that anybody may have written; `name` is what an error calls it.
Result<LineWindows> windows_from_json(const Json& json, const std::string& name);

}  // namespace vkformer::cli
