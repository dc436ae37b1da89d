// What a program has that is built without MPI (VKFORMER_MPI=OFF): processes know nothing of each
// other.
#include <cstdlib>
#include <cstring>

#include "output.h"
#include "ranks.h"

namespace vkformer::cli {

Status join_ranks(const CLI::App& command) {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const CLI::Option* shared = command.get_option_no_throw("--shared");
  const bool alone = size == nullptr || std::atoi(size) < 2;
  if (alone || command.get_option_no_throw("--devices") == nullptr) return {};
  if (shared != nullptr && shared->count() > 0) return {};
  if (rank != nullptr && std::strcmp(rank, "0") == 0) {
    print_message(
        std::string("mpirun started ") + size +
        " processes, but this program is built without MPI, so each runs the whole "
        "command; build it with -DVKFORMER_MPI=ON, or give --shared for a job over data.");
  }
  return {};
}

const std::shared_ptr<DeviceLink>& rank_link() {
  static const std::shared_ptr<DeviceLink> kNone;
  return kNone;
}

bool is_first_rank() {
  return true;
}

bool terminal_of_ranks(bool own) {
  return own;
}

size_t local_rank() {
  return 0;
}

Status share_number(uint64_t&) {
  return {};
}

Status share_standard_input() {
  return {};
}

int leave_ranks(int code) {
  return code;
}

}  // namespace vkformer::cli
