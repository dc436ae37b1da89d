#include "output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "terminal.h"

namespace vkformer::cli {

namespace {

bool stdout_failed = false;  // and somebody says so
int stdout_errno = 0;        // of the first failure

// Keeps the reason of the first failure, which a later call would lose.
void note_failure() {
  if (std::ferror(stdout) != 0 && stdout_errno == 0) stdout_errno = errno;
}

int flush_stdout() {
  if (std::ferror(stdout) == 0) errno = 0;
  const int failed = std::fflush(stdout);
  note_failure();
  return failed;
}

std::string& message_origin() {
  static std::string origin;
  return origin;
}

// Writes "vkformer: message" to stderr, the name in that color.
void print_in_color(Color color, std::string_view message) {
  flush_stdout();
  const std::string& origin = message_origin();
  const std::string name =
      colored(origin.empty() ? "vkformer:" : "vkformer, " + origin + ":", color, stderr);
  std::fprintf(stderr, "%s %.*s\n", name.c_str(), static_cast<int>(message.size()), message.data());
}

}  // namespace

void print_line(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  note_failure();
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void print_json(const Json& value) {
  print_line(json_text(value));
}

void set_message_origin(std::string origin) {
  message_origin() = std::move(origin);
}

void print_message(std::string_view message) {
  print_in_color(Color::kBold, message);
}

int report(const Error& error) {
  print_in_color(Color::kRed, error.message);
  return error.code == ErrorCode::kUnsupported ? kExitUnsupported : kExitFailed;
}

int report_device(const Error& error) {
  if (error.code == ErrorCode::kInvalidArgument) return report_usage(error.message);
  const char* end = error.message.ends_with('.') ? "" : ".";
  print_in_color(Color::kRed, error.message + end + " `vkformer doctor` says what it finds.");
  return kExitNoDevice;
}

int report_usage(std::string_view message) {
  print_in_color(Color::kRed, message);
  return kExitUsage;
}

Error stdout_error() {
  stdout_failed = true;
  const int code = stdout_errno != 0 ? stdout_errno : errno;
  return {ErrorCode::kInvalidFile, std::string("[stdout] could not be written: ") +
                                       std::strerror(code != 0 ? code : EIO) + "."};
}

int finish_output(int code) {
  if (flush_stdout() == 0 && std::ferror(stdout) == 0) return code;
  if (!stdout_failed) print_message(stdout_error().message);
  return code == kExitOk ? kExitFailed : code;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string count_text(int64_t count) {
  if (count >= 1'000'000'000) return fixed(static_cast<double>(count) / 1e9, 2) + " billion";
  if (count >= 1'000'000) return fixed(static_cast<double>(count) / 1e6, 1) + " million";
  return std::to_string(count);
}

std::string padded(std::string_view text, size_t width) {
  std::string result(text);
  if (result.size() < width) result.append(width - result.size(), ' ');
  return result;
}

}  // namespace vkformer::cli
