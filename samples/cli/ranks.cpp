#include "ranks.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "job_identity.h"
#include "output.h"
#include "vkformer/mpi_link.h"

namespace vkformer::cli {

namespace {

struct Ranks {
  std::shared_ptr<MpiLink> link;
  std::shared_ptr<DeviceLink> as_link;
  bool has_input = false;
  bool terminal = false;
};

Ranks& ranks() {
  static Ranks joined;
  return joined;
}

// Processes that a starter of MPI jobs says there are.
int count_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) return std::atoi(value);
  }
  return 1;
}

template <class Container>
Status broadcast(DeviceLink& link, Container& content) {
  uint64_t size = content.size();
  Status sent = link.broadcast(0, 0, std::as_writable_bytes(std::span(&size, 1)));
  if (!sent) return sent;
  content.resize(size);
  return link.broadcast(0, 0, std::as_writable_bytes(std::span(content)));
}

// The command, its options and files must be those of the first process.
Status check_identity(const CLI::App& command, DeviceLink& link) {
  const Result<Json> own = job_identity(command);
  if (!own) return own.error();
  std::string text = json_text(*own);
  if (const Status sent = broadcast(link, text); !sent) return sent;
  const std::string difference =
      identity_difference(Json::parse(text), *own, "in process 0",
                          "Start all processes with the same command on the same files.");
  if (difference.empty()) return {};
  return Error{ErrorCode::kInvalidArgument, difference};
}

// All of stdin, which at a terminal ends with its key for that.
std::string read_standard_input() {
  std::string text;
  std::vector<char> piece(size_t{1} << 16);
  for (size_t got = 0; (got = std::fread(piece.data(), 1, piece.size(), stdin)) > 0;) {
    text.append(piece.data(), got);
  }
  return text;
}

}  // namespace

Status join_ranks(const CLI::App& command) {
  if (count_of_environment() < 2 || command.get_option_no_throw("--devices") == nullptr) return {};
  const CLI::Option* shared = command.get_option_no_throw("--shared");
  if (shared != nullptr && shared->count() > 0) return {};
  for (const char* name : {"--devices", "--resume"}) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr || option->count() == 0) continue;
    return Error{ErrorCode::kUnsupported,
                 std::string("[") + name +
                     "] is for one process, but mpirun started several for this model; leave it "
                     "out, or give --shared so that each process has the whole model and takes "
                     "its part of the inputs."};
  }
  Result<std::shared_ptr<MpiLink>> link = MpiLink::create();
  if (!link) return link.error();
  ranks().link = *link;
  ranks().as_link = *link;
  set_message_origin("process " + std::to_string((*link)->own()));
  uint64_t terminal = isatty(STDOUT_FILENO) != 0 ? 1 : 0;
  if (const Status shared = share_number(terminal); !shared) return shared;
  ranks().terminal = terminal != 0;
  if (!is_first_rank() && std::freopen("/dev/null", "w", stdout) == nullptr) return stdout_error();
  return check_identity(command, **link);
}

const std::shared_ptr<DeviceLink>& rank_link() {
  return ranks().as_link;
}

bool is_first_rank() {
  return !ranks().link || ranks().link->own() == 0;
}

bool terminal_of_ranks(bool own) {
  return ranks().link ? ranks().terminal : own;
}

size_t local_rank() {
  return ranks().link ? ranks().link->local() : 0;
}

Status share_number(uint64_t& number) {
  if (!ranks().link) return {};
  return ranks().link->broadcast(0, 0, std::as_writable_bytes(std::span(&number, 1)));
}

Status share_standard_input() {
  if (!ranks().link || ranks().has_input) return {};
  ranks().has_input = true;
  std::string text;
  if (is_first_rank()) text = read_standard_input();
  if (const Status sent = broadcast(*ranks().link, text); !sent) return sent;
  std::FILE* copy = std::tmpfile();
  if (copy == nullptr || std::fwrite(text.data(), 1, text.size(), copy) != text.size() ||
      std::fflush(copy) != 0 || std::fseek(copy, 0, SEEK_SET) != 0 ||
      dup2(fileno(copy), STDIN_FILENO) < 0) {
    return Error{ErrorCode::kInternal,
                 "[stdin] " + std::to_string(text.size()) +
                     " bytes could not be written to a temporary file; make room in TMPDIR."};
  }
  std::fclose(copy);
  std::clearerr(stdin);
  return {};
}

int leave_ranks(int code) {
  if (code == kExitOk || !ranks().link) return code;
  std::fflush(stdout);
  // The sentence of what fails everywhere alike is the first process's, which ends the others.
  ranks().link->abort(code);
}

}  // namespace vkformer::cli
