// What the commands print: data on stdout, messages on stderr, and the program's exit codes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vkformer/result.h"

namespace vkformer::cli {

// Keeps keys in the order in which they were added.
using Json = nlohmann::ordered_json;

// What the program exits with; documented in --help and docs/cli.md.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // the operation failed
  kExitUsage = 2,        // the command line is wrong
  kExitUnsupported = 3,  // a model family, operator or file feature is not supported
  kExitNoDevice = 4,     // no suitable Vulkan device
};

// Writes one line to stdout.
void print_line(std::string_view text);
// Writes `value` to stdout as one line. NaN and infinities become null, and bytes that are not
// UTF-8 become U+FFFD.
void print_json(const Json& value);
std::string json_text(const Json& value);

// Who says messages from now on, beside the program's name; empty: nobody else does.
void set_message_origin(std::string origin);
// Writes "vkformer: message" to stderr.
void print_message(std::string_view message);
// Prints the error and gives the exit code for it.
int report(const Error& error);
// The same for a device that could not be opened.
int report_device(const Error& error);
// Prints what is wrong with the command line and gives kExitUsage.
int report_usage(std::string_view message);

// Why stdout could not be written, from errno. Whoever calls it reports it: finish_output() then
// says it no second time.
Error stdout_error();
// What `code` becomes once stdout is flushed: kExitFailed if not everything could be written, which
// it says.
int finish_output(int code);

// `value` with `digits` digits after the point.
std::string fixed(double value, int digits);
// "3.0 million", "512": a count for people.
std::string count_text(int64_t count);
// `text` filled with spaces up to `width` characters.
std::string padded(std::string_view text, size_t width);

}  // namespace vkformer::cli
