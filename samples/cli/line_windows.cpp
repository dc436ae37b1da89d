#include "line_windows.h"

#include <algorithm>
#include <fstream>

#include "file_marks.h"
#include "files.h"
#include "task_records.h"

namespace vkformer::cli {

namespace {

constexpr int64_t kMostWindowBytes = int64_t{64} << 20;
// Enough windows that processes end at about the same time, and a kill costs little.
constexpr int64_t kUsualWindows = 1000;
// More would lose too much with a process, fewer would make too many files.
constexpr int64_t kMostGroups = 16;

// Inputs of a window.
int64_t window_inputs(int64_t all, const LineWindowOptions& options) {
  const int64_t group = std::max<int64_t>(options.group, 1);
  if (options.window > 0) return (options.window + group - 1) / group * group;
  return group * std::clamp<int64_t>(all / group / kUsualWindows, 1, kMostGroups);
}

// Gathers lines into windows.
class WindowFinder {
 public:
  WindowFinder(std::string format, int64_t most) : format_(std::move(format)), most_(most) {}

  // A line with its end.
  void add(const std::string& line) {
    if (line_ == 1) found_.format = format_of_lines(line, format_);
    const bool input = !is_passed_over(line, found_.format);
    const bool full = window_.inputs == most_ || window_.bytes >= kMostWindowBytes;
    if (input && full) close();
    text_ += line;
    window_.bytes += static_cast<int64_t>(line.size());
    window_.inputs += input ? 1 : 0;
    ++line_;
  }

  LineWindows finish() {
    if (window_.inputs > 0) close();
    return std::move(found_);
  }

 private:
  void close() {
    window_.digest = digest_text(text_);
    found_.inputs += window_.inputs;
    found_.list.push_back(window_);
    window_ = {.offset = window_.offset + window_.bytes, .line = line_};
    text_.clear();
  }

  std::string format_;
  int64_t most_;
  int64_t line_ = 1;  // the next one's number
  std::string text_;  // of the open window
  LineWindow window_;
  LineWindows found_;
};

Error damaged(const std::string& name, const char* what) {
  return {ErrorCode::kInvalidFile,
          "[" + name + "] " + what +
              ", so it is not what this program wrote; remove the folder and the output to begin "
              "again."};
}

}  // namespace

Result<LineWindows> find_windows(const std::string& path, const LineWindowOptions& options) {
  Result<InputFile> file = InputFile::open(path);
  if (!file) return file.error();
  WindowFinder finder(options.format, window_inputs(count_lines(path), options));
  std::string line;
  while (true) {
    const Result<bool> read = file->read_line(line);
    if (!read) return read.error();
    if (!*read) return finder.finish();
    if (!file->at_end()) line += '\n';
    finder.add(line);
  }
}

Result<std::string> read_window(const std::string& path, const LineWindow& window) {
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(window.bytes), '\0');
  file.seekg(window.offset);
  file.read(text.data(), window.bytes);
  if (file && digest_text(text) == window.digest) return text;
  return Error{ErrorCode::kInvalidFile,
               "[" + path + "] from line " + std::to_string(window.line) +
                   " on is not what the shared job began with; it was changed since, so give "
                   "another --output."};
}

Json windows_json(const LineWindows& windows) {
  Json list = Json::array();
  for (const LineWindow& w : windows.list) list.push_back({w.bytes, w.line, w.inputs, w.digest});
  return {{"format", windows.format}, {"list", std::move(list)}};
}

Result<LineWindows> windows_from_json(const Json& json, const std::string& name) {
  const bool shaped =
      json.is_object() && json.contains("format") && json.contains("list") &&
      (json["format"] == "text" || json["format"] == "json" || json["format"] == "") &&
      json["list"].is_array();
  if (!shaped) return damaged(name, "has no list of windows");
  LineWindows windows{.format = json["format"].get<std::string>()};
  int64_t offset = 0;
  int64_t line = 1;
  const auto count = [](const Json& value, int64_t most) {
    return value.is_number_unsigned() && value.get<uint64_t>() >= 1 &&
           value.get<uint64_t>() <= static_cast<uint64_t>(most);
  };
  // Beyond the limits of a window and a line there is none.
  constexpr int64_t kMostBytes = kMostWindowBytes + int64_t{kMostLineBytes} + 1;
  for (const Json& w : json["list"]) {
    const bool good = w.is_array() && w.size() == 4 && count(w[0], kMostBytes) &&
                      count(w[1], INT64_MAX) && count(w[2], kMostBytes) && w[3].is_string() &&
                      w[1].get<int64_t>() >= line && w[2].get<int64_t>() <= w[0].get<int64_t>();
    if (!good || offset > INT64_MAX / 2) return damaged(name, "has a window that cannot be");
    line = w[1].get<int64_t>();
    windows.list.push_back({.offset = offset,
                            .bytes = w[0].get<int64_t>(),
                            .line = line,
                            .inputs = w[2].get<int64_t>(),
                            .digest = w[3].get<std::string>()});
    offset += windows.list.back().bytes;
    windows.inputs += windows.list.back().inputs;
  }
  return windows;
}

}  // namespace vkformer::cli
