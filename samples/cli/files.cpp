#include "files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

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

Result<std::string> read_text_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error(path, "opened");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return file_error(path, "read");
  return text;
}

Status write_text_file(const std::string& path, const std::string& text) {
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

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
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
