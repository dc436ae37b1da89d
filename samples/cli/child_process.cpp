#include "child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

extern char** environ;

namespace vkformer::cli {

namespace {

Error child_error(const std::string& what) {
  return {ErrorCode::kInternal, "[vkformer] could not be run again: " + what + "."};
}

// Everything that comes out of `descriptor` until its end.
std::string drain(int descriptor) {
  std::string text;
  std::array<char, 4096> piece;
  ssize_t count = 0;
  while ((count = read(descriptor, piece.data(), piece.size())) > 0) {
    text.append(piece.data(), static_cast<size_t>(count));
  }
  return text;
}

}  // namespace

Result<std::string> run_self(const std::vector<std::string>& arguments) {
  std::string program = "vkformer";
  std::vector<char*> argv = {program.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& copy : copies) argv.push_back(copy.data());
  argv.push_back(nullptr);
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) return child_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[1]);
  pid_t child = 0;
  const int code = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string output;
  if (code == 0) output = drain(pipe_ends[0]);
  close(pipe_ends[0]);
  if (code != 0) return child_error("posix_spawn gave " + std::to_string(code));
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return child_error("it failed; its message is above");
  }
  return output;
}

double process_age_ms() {
  // Field 22 of /proc/self/stat: start time in clock ticks since boot. The name in field 2 is in
  // brackets and may hold spaces.
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return 0;
  size_t position = bracket + 1;
  for (int field = 2; field < 22; ++field) position = line.find(' ', position) + 1;
  const double started =
      std::strtod(line.c_str() + position, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - started) *
         1e3;
}

}  // namespace vkformer::cli
