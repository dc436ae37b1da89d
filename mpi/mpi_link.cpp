#include "vkformer/mpi_link.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <string>
#include <thread>

namespace vkformer {
namespace {

// Tags of messages: lanes count from here, so that a broadcast and a message of one lane differ.
constexpr int kDirect = 0;
constexpr int kBroadcast = 1000;

Error mpi_error(const std::string& what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {ErrorCode::kDeviceLost,
          "[mpi] " + what + " failed: " + text +
              "; a process of the job may have ended, or the network is gone. Start the job anew."};
}

// Begins MPI where the application has not, and then ends it with the process: MPI cannot begin
// again.
Status begin_mpi() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (ended != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "[mpi] MPI_Finalize was called; make the link before that."};
  }
  int level = MPI_THREAD_SINGLE;
  if (begun != 0) {
    MPI_Query_thread(&level);
  } else {
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    if (code != MPI_SUCCESS) return mpi_error("MPI_Init_thread", code);
    std::atexit([] {
      int done = 0;
      MPI_Finalized(&done);
      if (done == 0) MPI_Finalize();
    });
  }
  if (level == MPI_THREAD_MULTIPLE) return {};
  return Error{ErrorCode::kUnsupported,
               "[mpi] MPI allows no calls from several threads (its level is " +
                   std::to_string(level) + ", MPI_THREAD_MULTIPLE is " +
                   std::to_string(MPI_THREAD_MULTIPLE) +
                   "); call MPI_Init_thread with MPI_THREAD_MULTIPLE, or use an MPI that has it."};
}

class OwnMpiLink : public MpiLink {
 public:
  explicit OwnMpiLink(MPI_Comm communicator) : communicator_(communicator) {
    MPI_Comm_rank(communicator_, &own_);
    MPI_Comm_size(communicator_, &members_);
    // Errors come back, so that they can be told with a sentence.
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    if (machine == MPI_COMM_NULL) return;
    MPI_Comm_rank(machine, &local_);
    MPI_Comm_free(&machine);
  }
  OwnMpiLink(const OwnMpiLink&) = delete;
  OwnMpiLink& operator=(const OwnMpiLink&) = delete;
  // The communicator stays: freeing it waits for processes that may be gone.
  ~OwnMpiLink() override = default;

  size_t members() const override { return static_cast<size_t>(members_); }
  size_t own() const override { return static_cast<size_t>(own_); }
  size_t local() const override { return static_cast<size_t>(local_); }

  Status send(size_t to, uint32_t lane, std::span<const std::byte> bytes) override {
    return send_parts(to, kDirect + static_cast<int>(lane), bytes);
  }
  Status receive(size_t from, uint32_t lane, std::span<std::byte> bytes) override {
    return receive_parts(from, kDirect + static_cast<int>(lane), bytes);
  }
  // By messages instead of MPI_Bcast, of which two lanes could not be under way at once.
  Status broadcast(size_t from, uint32_t lane, std::span<std::byte> bytes) override {
    const int tag = kBroadcast + static_cast<int>(lane);
    if (from != own()) return receive_parts(from, tag, bytes);
    for (size_t to = 0; to < members(); ++to) {
      if (to == from) continue;
      const Status sent = send_parts(to, tag, bytes);
      if (!sent) return sent;
    }
    return {};
  }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(communicator_, code);
    std::_Exit(code);
  }

 private:
  // MPI counts with an int.
  static constexpr size_t kMostBytes = size_t{1} << 30;

  Status send_parts(size_t to, int tag, std::span<const std::byte> bytes) {
    for (size_t at = 0; at < bytes.size(); at += kMostBytes) {
      const size_t part = std::min(kMostBytes, bytes.size() - at);
      MPI_Request request = MPI_REQUEST_NULL;
      const int code = MPI_Isend(bytes.data() + at, static_cast<int>(part), MPI_BYTE,
                                 static_cast<int>(to), tag, communicator_, &request);
      if (code != MPI_SUCCESS) return mpi_error("sending to process " + std::to_string(to), code);
      const int done = finish(request);
      if (done != MPI_SUCCESS) return mpi_error("sending to process " + std::to_string(to), done);
    }
    return {};
  }

  Status receive_parts(size_t from, int tag, std::span<std::byte> bytes) {
    for (size_t at = 0; at < bytes.size(); at += kMostBytes) {
      const size_t part = std::min(kMostBytes, bytes.size() - at);
      MPI_Request request = MPI_REQUEST_NULL;
      const int code = MPI_Irecv(bytes.data() + at, static_cast<int>(part), MPI_BYTE,
                                 static_cast<int>(from), tag, communicator_, &request);
      const std::string what = "receiving from process " + std::to_string(from);
      if (code != MPI_SUCCESS) return mpi_error(what, code);
      MPI_Status status;
      const int done = finish(request, &status);
      if (done != MPI_SUCCESS) return mpi_error(what, done);
      int came = 0;
      MPI_Get_count(&status, MPI_BYTE, &came);
      if (static_cast<size_t>(came) != part) {
        return Error{
            ErrorCode::kInvalidArgument,
            "[mpi] process " + std::to_string(from) + " sent " + std::to_string(came) +
                " bytes where " + std::to_string(part) +
                " are due: the processes do not make the same calls with the same inputs."};
      }
    }
    return {};
  }

  // MPI_Wait keeps a core busy, which a software driver or the caller's game may want: after a
  // short time this asks less often.
  static int finish(MPI_Request& request, MPI_Status* status = MPI_STATUS_IGNORE) {
    constexpr auto kBusy = std::chrono::microseconds(100);
    constexpr auto kPause = std::chrono::microseconds(20);
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      int done = 0;
      const int code = MPI_Test(&request, &done, status);
      if (code != MPI_SUCCESS || done != 0) return code;
      if (std::chrono::steady_clock::now() - begin > kBusy) std::this_thread::sleep_for(kPause);
    }
  }

  MPI_Comm communicator_;
  int own_ = 0, members_ = 1, local_ = 0;
};

Result<std::shared_ptr<MpiLink>> link_of(MPI_Comm processes) {
  // A separate one, so that no message is taken for one of the application.
  MPI_Comm communicator = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(processes, &communicator);
  if (code != MPI_SUCCESS) return mpi_error("MPI_Comm_dup", code);
  return std::shared_ptr<MpiLink>(std::make_shared<OwnMpiLink>(communicator));
}

}  // namespace

Result<std::shared_ptr<MpiLink>> MpiLink::create() {
  if (const Status begun = begin_mpi(); !begun) return begun.error();
  return link_of(MPI_COMM_WORLD);
}

Result<std::shared_ptr<MpiLink>> MpiLink::create_of(int fortran_communicator) {
  if (const Status begun = begin_mpi(); !begun) return begun.error();
  return link_of(MPI_Comm_f2c(fortran_communicator));
}

}  // namespace vkformer
