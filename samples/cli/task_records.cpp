#include "task_records.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "files.h"
#include "ranks.h"

namespace vkformer::cli {

namespace {

constexpr size_t kReadBytes = 1 << 16;

bool is_object_text(const std::string& line) {
  return line.find_first_not_of(" \t") != std::string::npos &&
         line[line.find_first_not_of(" \t")] == '{' && Json::accept(line);
}

Error field_error(const char* key, const char* what) {
  return {ErrorCode::kInvalidArgument,
          "[" + std::string(key) + "] " + what + "; the input needs a text under that key."};
}

}  // namespace

std::string format_of_lines(const std::string& first, const std::string& format) {
  if (format != "auto") return format;
  return is_object_text(first) ? "json" : "text";
}

bool is_passed_over(const std::string& line, const std::string& format) {
  return format == "json" && line.find_first_not_of(" \t\r\n") == std::string::npos;
}

int64_t count_lines(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return 0;
  Result<InputFile> file = InputFile::open(path);
  if (!file) return 0;
  std::vector<char> bytes(kReadBytes);
  int64_t lines = 0;
  char last = '\n';
  while (true) {
    const Result<size_t> count = file->read(bytes);
    if (!count || *count == 0) break;
    lines += std::count(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(*count), '\n');
    last = bytes[*count - 1];
  }
  return last == '\n' ? lines : lines + 1;
}

Result<RecordReader> RecordReader::open(std::vector<std::string> arguments, const std::string& file,
                                        const std::string& format, const std::string& plain_key) {
  const auto count = static_cast<int64_t>(arguments.size());
  Result<InputReader> inputs = InputReader::open(std::move(arguments), file);
  if (!inputs) return inputs.error();
  RecordReader reader(std::move(*inputs), file.empty() && format == "auto" ? "text" : format,
                      plain_key);
  reader.total_ = file.empty() ? count : count_lines(file);
  return reader;
}

RecordReader RecordReader::of_lines(NumberedLines lines, const std::string& format,
                                    const std::string& plain_key) {
  return {InputReader::of_lines(std::move(lines)), format, plain_key};
}

TaskRecord RecordReader::read(TextInput input) const {
  TaskRecord record{Json::object(), std::move(input.origin)};
  if (format_ == "text") {
    record.fields[plain_key_] = std::move(input.text);
    return record;
  }
  Json fields = parse_json(input.text);
  if (fields.is_object()) {
    record.fields = std::move(fields);
  } else {
    record.error = Error{ErrorCode::kInvalidFile,
                         "[line] is not a JSON object, which every line of such a file must be; "
                         "give --format text if the lines are plain text."};
  }
  return record;
}

Result<std::vector<TaskRecord>> RecordReader::next(size_t count) {
  std::vector<TaskRecord> records;
  while (records.size() < count) {
    Result<std::vector<TextInput>> inputs = inputs_.next(count - records.size());
    if (!inputs) return inputs.error();
    if (inputs->empty()) break;
    for (TextInput& input : *inputs) {
      format_ = format_of_lines(input.text, format_);
      if (is_passed_over(input.text, format_)) continue;
      records.push_back(read(std::move(input)));
    }
  }
  return records;
}

void LineWriter::Close::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

Error LineWriter::error(const char* what) const {
  if (path_.empty()) return stdout_error();
  return {ErrorCode::kInvalidFile,
          "[" + path_ + "] could not be " + what + ": " + std::strerror(errno) + "."};
}

Result<LineWriter> LineWriter::open(const std::string& path, Existing existing) {
  LineWriter writer;
  writer.path_ = is_first_rank() ? path : "/dev/null";
  if (path.empty()) {
    writer.file_.reset(stdout);
    return writer;
  }
  std::error_code ignored;
  if (const Status locked = writer.lock_file(); !locked) return locked.error();
  if (existing == Existing::kContinue && std::filesystem::is_regular_file(path, ignored)) {
    const Status kept = writer.keep_lines();
    if (!kept) return kept.error();
  }
  writer.file_.reset(
      std::fopen(writer.path_.c_str(), existing == Existing::kContinue ? "ab" : "wb"));
  if (!writer.file_) return writer.error("opened");
  return writer;
}

Status LineWriter::lock_file() {
  std::error_code ignored;
  const auto type = std::filesystem::status(path_, ignored).type();
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    return {};
  Result<SystemFile> file = SystemFile::open(path_, SystemFile::Content::kUpdate);
  if (!file) return file.error();
  const Result<LockState> lock = file->lock(0, 0);
  // A file system without locks cannot say.
  if (!lock || *lock == LockState::kTaken) {
    lock_ = std::move(*file);
    return {};
  }
  return Error{ErrorCode::kInvalidFile,
               "[" + path_ +
                   "] is written by another process; end it, or give --shared to all processes "
                   "that are to share the inputs."};
}

Status LineWriter::keep_lines() {
  Result<InputFile> file = InputFile::open(path_);
  if (!file) return file.error();
  uintmax_t whole = 0;  // bytes
  std::string line;
  while (true) {
    const Result<bool> read = file->read_line(line, SIZE_MAX);
    if (!read) return read.error();
    if (!*read || file->at_end()) break;  // no line end: half-written
    whole += line.size() + 1;
    ++kept_lines_;
    last_kept_line_.swap(line);
  }
  std::error_code fault;
  std::filesystem::resize_file(path_, whole, fault);
  if (!fault) return {};
  errno = fault.value();
  return error("cut after its last whole line");
}

Status LineWriter::write(const std::string& line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                       std::fputc('\n', file_.get()) != EOF;
  return written ? Status() : Status(error("written"));
}

Status LineWriter::flush() {
  return std::fflush(file_.get()) == 0 ? Status() : Status(error("written"));
}

Result<std::string> text_field(const Json& fields, const char* key) {
  const auto found = fields.find(key);
  if (found == fields.end() || found->is_null()) return field_error(key, "is missing");
  if (!found->is_string()) return field_error(key, "is not a text");
  return found->get<std::string>();
}

Result<std::optional<std::string>> optional_text_field(const Json& fields, const char* key) {
  const auto found = fields.find(key);
  if (found == fields.end() || found->is_null()) return std::optional<std::string>();
  Result<std::string> text = text_field(fields, key);
  if (!text) return text.error();
  return std::optional<std::string>(std::move(*text));
}

}  // namespace vkformer::cli
