#include "files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "ranks.h"
#include "terminal.h"

namespace vkformer::cli {

namespace {

constexpr int kMostLevels = 64;  // of JSON

Error file_error(const std::string& path, const char* what) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidFile;
  const char* why = errno != 0 ? std::strerror(errno) : "unknown reason";
  return {code, "[" + path + "] could not be " + what + ": " + why + "."};
}

Error type_error(const std::string& file, const char* key, const char* expected) {
  return {ErrorCode::kInvalidFile,
          "[" + file + "] has a \"" + key + "\" that is not " + expected + "."};
}

}  // namespace

void InputFile::Close::operator()(std::FILE* file) const {
  if (file != stdin) std::fclose(file);
}

Result<InputFile> InputFile::open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{ErrorCode::kInvalidFile,
                 "[" + path + "] is a directory, but a file is expected; give the path of one."};
  }
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return file_error(path, "opened");
  return InputFile(file, path);
}

Result<InputFile> InputFile::standard_input() {
  if (const Status shared = share_standard_input(); !shared) return shared.error();
  return InputFile(stdin, "stdin");
}

Status InputFile::check_read() const {
  return std::ferror(file_.get()) == 0 ? Status() : Status(file_error(name_, "read to its end"));
}

Result<size_t> InputFile::read(std::span<char> bytes) {
  errno = 0;
  const size_t count = std::fread(bytes.data(), 1, bytes.size(), file_.get());
  if (count < bytes.size()) {
    if (const Status good = check_read(); !good) return good.error();
  }
  return count;
}

Result<bool> InputFile::read_line(std::string& line, size_t most) {
  line.clear();
  errno = 0;
  ++lines_;
  while (true) {
#ifdef _WIN32
    const int byte = std::getc(file_.get());
#else
    const int byte = getc_unlocked(file_.get());
#endif
    at_end_ = byte == EOF;
    if (byte == EOF || byte == '\n') break;
    if (line.size() == most) {
      return Error{ErrorCode::kInvalidFile,
                   "[" + name_ + ", line " + std::to_string(lines_) + "] has more than " +
                       std::to_string(most) +
                       " bytes, which is the limit of a line; is it a file of lines of text?"};
    }
    line.push_back(static_cast<char>(byte));
  }
  if (!at_end_) return true;
  if (const Status good = check_read(); !good) return good.error();
  return !line.empty();
}

Result<std::string> read_text_file(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file) return file.error();
  constexpr size_t kPiece = size_t{1} << 16;
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    const Result<size_t> count = file->read(std::span(text).subspan(before));
    if (!count) return count.error();
    text.resize(before + *count);
    if (*count < kPiece) return text;
    if (text.size() > kMostFileBytes) {
      return Error{ErrorCode::kInvalidFile, "[" + path + "] has more than " +
                                                std::to_string(kMostFileBytes) +
                                                " bytes, which is the limit of such a file."};
    }
  }
}

Status write_text_file(const std::string& path, const std::string& text) {
  if (!is_first_rank()) return {};
  // Beside it, then renamed: whoever reads it has the old text or the new, whole. A pipe or a
  // terminal is written to as it is.
  std::error_code code;
  const bool special = std::filesystem::is_other(path, code);
  const std::string part = special ? path : path + ".part";
  errno = 0;
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  const bool written = static_cast<bool>(file);
  if (written && !special) {
    std::filesystem::rename(part, path, code);
    errno = code.value();
  }
  if (written && (special || !code)) return {};
  const Error failed = file_error(path, "written");
  if (!special) std::filesystem::remove(part, code);
  return failed;
}

Status write_bytes(const std::string& path, const Result<std::vector<std::byte>>& bytes) {
  if (!bytes) return bytes.error();
  return write_text_file(path,
                         std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
}

Json parse_json(std::string_view text) {
  // What nests deeper is dropped while it is read: whoever walks through it later calls itself.
  bool deep = false;
  const auto keep = [&](int depth, Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    deep = deep || (opens && depth >= kMostLevels);
    return !deep;
  };
  Json value = Json::parse(text, keep, false);
  return deep ? Json(Json::value_t::discarded) : value;
}

Result<Json> read_json_file(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  Json value = parse_json(*text);
  if (value.is_discarded() || !value.is_object()) {
    return Error{ErrorCode::kInvalidFile, "[" + path + "] is not a JSON object of at most " +
                                              std::to_string(kMostLevels) + " levels."};
  }
  return value;
}

bool piped_input() {
  if (!share_standard_input() || is_terminal(stdin)) return false;
  const int first = std::getc(stdin);
  return first != EOF && std::ungetc(first, stdin) == first;
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string model_config_file(const std::string& directory) {
  const std::string gliner = directory + "/gliner_config.json";
  return file_exists(gliner) ? gliner : directory + "/config.json";
}

Result<int64_t> json_integer(const Json& object, const char* key, int64_t fallback,
                             const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  if (!found->is_number_integer()) return type_error(file, key, "an integer");
  return found->get<int64_t>();
}

Result<double> json_number(const Json& object, const char* key, double fallback,
                           const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  if (!found->is_number()) return type_error(file, key, "a number");
  return found->get<double>();
}

}  // namespace vkformer::cli
