// A job over the lines of a file that any number of processes share. Whatever starts processes
// starts it: mpirun, srun, a Slurm array, Kubernetes, or shells. They need only a common file
// system.
//
// The folder OUTPUT.job holds:
//   job.json       what the processes must have in common, and the windows of the input's lines
//   locks          a file of no content: byte 0 is locked by the process that begins the job, byte
//                  1 by the writer, byte 2 + w by the process that answers window w
//   N.jsonl        the answers to window N, whole, until the writer has them in the output
//   *.part         files while they are written
//   written.json   the windows that the output has, and its bytes
//
// Every file reaches its name by a rename, and the writer records what the output has before it
// removes a result. So a process may be killed at any moment. Its locks end with it, and others
// take its window or become the writer. The output is cut to what was recorded. Locks only save
// work. If a window is answered twice, the writer still takes it once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "line_windows.h"
#include "output.h"
#include "system_file.h"
#include "vkformer/result.h"

namespace vkformer::cli {

struct SharedJobOptions {
  std::string input;   // a regular file
  std::string output;  // a file that the job makes
  LineWindowOptions lines;
  Json identity;  // job_identity()
};

class SharedJob {
 public:
  // Begins the job, or joins one of the same identity; of another one it is an error that names the
  // difference. Waits while another process begins the job. Not thread-safe.
  static Result<SharedJob> open(const SharedJobOptions& options);
  // The folder of the job with that output, and whether there is such a job.
  static std::string folder_of(const std::string& output) { return output + ".job"; }
  static bool exists(const std::string& output);

  // A window that this process is to answer. None once the output is whole. Waits while others
  // answer the last windows, and takes those of processes that end.
  Result<std::optional<size_t>> next();
  // The inputs of the window, which must be those that the job began with.
  Result<std::string> read(size_t window) const;
  // Hands in the answers to the window that next() gave, a line for every input.
  Status finish(const std::string& lines);

  const LineWindows& windows() const { return windows_; }
  bool is_finished() const { return written_ && *written_ == windows_.list.size(); }
  // Inputs whose answers the output has.
  int64_t written_inputs() const;

 private:
  SharedJob(SharedJobOptions options, SystemFile locks)
      : options_(std::move(options)), locks_(std::move(locks)) {}

  Status begin_or_join();
  Status begin() const;
  Result<bool> join();
  Status read_written();
  Status record_written(size_t windows, int64_t bytes);
  Status become_writer();
  Status write_ready();
  Status append(size_t window, int64_t& bytes) const;
  Result<bool> take(size_t window);
  bool is_answered(size_t window);
  void clean() const;

  std::string path(const std::string& name) const;
  std::string result_path(size_t window) const;
  std::string part_path() const;

  SharedJobOptions options_;
  SystemFile locks_;
  LineWindows windows_;
  std::optional<size_t> written_;     // windows that the output has; none: nothing is recorded
  int64_t written_bytes_ = 0;         // of the output
  std::optional<SystemFile> output_;  // the writer's
  std::vector<bool> answered_;        // by window, as far as this process has seen
  std::optional<size_t> taken_;       // the window that this process answers
};

}  // namespace vkformer::cli
