#include "shared_job.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include "files.h"
#include "job_identity.h"

namespace vkformer::cli {

namespace {

namespace fs = std::filesystem;

// Bytes of the file of locks.
constexpr int64_t kBeginByte = 0;
constexpr int64_t kWriterByte = 1;
constexpr int64_t kFirstWindowByte = 2;

// Waits longer each time, so that many processes that wait do not keep a file server busy.
class Patience {
 public:
  void wait() {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_));
    milliseconds_ = std::min(milliseconds_ * 3 / 2, 1000);
  }

 private:
  int milliseconds_ = 20;
};

int64_t line_count(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

Error damaged_job(const std::string& path, const std::string& what) {
  return {ErrorCode::kInvalidFile, "[" + path + "] " + what +
                                       "; it was changed by something else. Remove the output and "
                                       "its folder to begin again."};
}

}  // namespace

std::string SharedJob::path(const std::string& name) const {
  return folder_of(options_.output) + "/" + name;
}

std::string SharedJob::result_path(size_t window) const {
  return path(std::to_string(window) + ".jsonl");
}

// Of this process alone, whatever machine it is on.
std::string SharedJob::part_path() const {
  std::array<char, 256> host{};
  (void)gethostname(host.data(), host.size() - 1);
  return path(std::string(host.data()) + "-" + std::to_string(getpid()) + ".part");
}

bool SharedJob::exists(const std::string& output) {
  return !output.empty() && file_exists(folder_of(output) + "/job.json");
}

Result<SharedJob> SharedJob::open(const SharedJobOptions& options) {
  const std::string folder = folder_of(options.output);
  std::error_code code;
  if (!fs::is_regular_file(options.input, code)) {
    return Error{ErrorCode::kInvalidArgument,
                 "[--input] " + options.input +
                     " is no regular file, which --shared needs: every process reads its lines."};
  }
  const bool made = fs::exists(options.output, code) && !exists(options.output);
  if (made) {
    return Error{ErrorCode::kInvalidArgument,
                 "[" + options.output +
                     "] is there, but no shared job made it; remove it, or give another --output."};
  }
  fs::create_directory(folder, code);
  if (code) {
    return Error{ErrorCode::kInvalidFile,
                 "[" + folder + "] could not be made: " + code.message() + "."};
  }
  Result<SystemFile> locks = SystemFile::open(folder + "/locks", SystemFile::Content::kUpdate);
  if (!locks) return locks.error();
  SharedJob job(options, std::move(*locks));
  const Status joined = job.begin_or_join();
  if (!joined) return joined.error();
  // The last writer may have been killed before it did.
  if (job.is_finished()) job.clean();
  return job;
}

Status SharedJob::begin_or_join() {
  Patience patience;
  while (true) {
    const Result<bool> joined = join();
    if (!joined) return joined.error();
    if (*joined) return read_written();
    const Result<LockState> lock = locks_.lock(kBeginByte, 1);
    if (!lock) return lock.error();
    if (*lock == LockState::kHeldElsewhere) {
      patience.wait();
      continue;
    }
    // Whoever had the lock before may just have begun the job.
    const Status begun = exists(options_.output) ? Status() : begin();
    locks_.unlock(kBeginByte, 1);
    if (!begun) return begun;
  }
}

Status SharedJob::begin() const {
  const Result<LineWindows> windows = find_windows(options_.input, options_.lines);
  if (!windows) return windows.error();
  const Json job = {{"identity", options_.identity}, {"windows", windows_json(*windows)}};
  return replace_file(path("job.json"), part_path(), json_text(job));
}

// False: there is no job yet.
Result<bool> SharedJob::join() {
  const std::string file = path("job.json");
  if (!file_exists(file)) return false;
  const Result<Json> job = read_json_file(file);
  if (!job) return job.error();
  const Json begun = job->value("identity", Json());
  if (!begun.is_object()) return damaged_job(file, "says nothing of its options");
  const std::string difference = identity_difference(
      begun, options_.identity, "in the shared job [" + folder_of(options_.output) + "]",
      "Give the same, or another --output.");
  if (!difference.empty()) return Error{ErrorCode::kInvalidArgument, difference};
  Result<LineWindows> windows = windows_from_json(job->value("windows", Json()), file);
  if (!windows) return windows.error();
  windows_ = std::move(*windows);
  answered_.assign(windows_.list.size(), false);
  return true;
}

Status SharedJob::read_written() {
  const std::string file = path("written.json");
  if (!file_exists(file)) return {};
  const Result<Json> written = read_json_file(file);
  if (!written) return written.error();
  const Result<int64_t> windows = json_integer(*written, "windows", -1, file);
  if (!windows) return windows.error();
  const Result<int64_t> bytes = json_integer(*written, "bytes", -1, file);
  if (!bytes) return bytes.error();
  const auto all = static_cast<int64_t>(windows_.list.size());
  if (*windows < 0 || *windows > all || *bytes < 0)
    return damaged_job(file, "speaks of windows that there are not");
  written_ = static_cast<size_t>(*windows);
  written_bytes_ = *bytes;
  return {};
}

Status SharedJob::record_written(size_t windows, int64_t bytes) {
  const Json record = {{"windows", windows}, {"bytes", bytes}};
  const Status recorded = replace_file(path("written.json"), part_path(), json_text(record));
  if (!recorded) return recorded;
  written_ = windows;
  written_bytes_ = bytes;
  return {};
}

int64_t SharedJob::written_inputs() const {
  const auto end = windows_.list.begin() + static_cast<ptrdiff_t>(written_.value_or(0));
  int64_t inputs = 0;
  for (auto window = windows_.list.begin(); window != end; ++window) inputs += window->inputs;
  return inputs;
}

// Opens the output where no other process is its writer, and cuts off what a killed writer wrote
// but did not record.
Status SharedJob::become_writer() {
  const Result<LockState> lock = locks_.lock(kWriterByte, 1);
  if (!lock) return lock.error();
  if (*lock == LockState::kHeldElsewhere) return read_written();
  if (const Status read = read_written(); !read) return read;
  Result<SystemFile> output = SystemFile::open(options_.output, SystemFile::Content::kUpdate);
  if (!output) return output.error();
  const Result<LockState> alone = output->lock(0, 0);
  if (!alone) return alone.error();
  if (*alone == LockState::kHeldElsewhere) {
    return Error{ErrorCode::kInvalidFile,
                 "[" + options_.output + "] is written by a process without --shared; end it."};
  }
  const Result<int64_t> size = output->size();
  if (!size) return size.error();
  if (*size < written_bytes_) {
    return damaged_job(options_.output, "has " + std::to_string(*size) + " bytes, but " +
                                            std::to_string(written_bytes_) + " were written");
  }
  if (const Status cut = output->resize(written_bytes_); !cut) return cut;
  output_ = std::move(*output);
  return {};
}

Status SharedJob::append(size_t window, int64_t& bytes) const {
  const std::string file = result_path(window);
  const Result<std::string> lines = read_text_file(file);
  if (!lines) return lines.error();
  const int64_t inputs = windows_.list[window].inputs;
  if (line_count(*lines) != inputs) {
    return Error{ErrorCode::kInvalidFile,
                 "[" + file + "] has " + std::to_string(line_count(*lines)) + " lines for " +
                     std::to_string(inputs) + " inputs; remove it to answer them again."};
  }
  const Status written = output_->write_at(bytes, *lines);
  bytes += static_cast<int64_t>(lines->size());
  return written;
}

// The writer's part: what is whole and next goes into the output.
Status SharedJob::write_ready() {
  if (!output_) {
    if (const Status became = become_writer(); !became || !output_) return became;
  }
  const size_t first = written_.value_or(0);
  size_t next = first;
  int64_t bytes = written_bytes_;
  for (; next < windows_.list.size() && is_answered(next); ++next) {
    if (const Status appended = append(next, bytes); !appended) return appended;
  }
  if (next == first && written_) return {};
  if (const Status there = output_->sync(); !there) return there;
  if (const Status recorded = record_written(next, bytes); !recorded) return recorded;
  std::error_code ignored;
  for (size_t window = first; window < next; ++window) fs::remove(result_path(window), ignored);
  if (is_finished()) clean();
  return {};
}

// Takes away what killed processes left.
void SharedJob::clean() const {
  std::error_code ignored;
  for (fs::directory_iterator entry(folder_of(options_.output), ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    const std::string ending = entry->path().extension().string();
    if (ending == ".part" || ending == ".jsonl") fs::remove(entry->path(), ignored);
  }
}

bool SharedJob::is_answered(size_t window) {
  if (!answered_[window]) answered_[window] = file_exists(result_path(window));
  return answered_[window];
}

// Whether this process now has the window.
Result<bool> SharedJob::take(size_t window) {
  if (is_answered(window)) return false;
  const int64_t byte = kFirstWindowByte + static_cast<int64_t>(window);
  const Result<LockState> lock = locks_.lock(byte, 1);
  if (!lock) return lock.error();
  if (*lock == LockState::kHeldElsewhere) return false;
  // Whoever had it before may have answered it, and the writer may have taken the answers since.
  const bool answered = is_answered(window);
  if (const Status read = read_written(); !read) return read.error();
  if (!answered && window >= written_.value_or(0)) return true;
  answered_[window] = true;
  locks_.unlock(byte, 1);
  return false;
}

Result<std::optional<size_t>> SharedJob::next() {
  Patience patience;
  while (true) {
    if (const Status wrote = write_ready(); !wrote) return wrote.error();
    if (is_finished()) return std::optional<size_t>();
    for (size_t window = written_.value_or(0); window < windows_.list.size(); ++window) {
      const Result<bool> took = take(window);
      if (!took) return took.error();
      if (*took) return taken_ = window;
    }
    patience.wait();
  }
}

Result<std::string> SharedJob::read(size_t window) const {
  return read_window(options_.input, windows_.list[window]);
}

Status SharedJob::finish(const std::string& lines) {
  const size_t window = *taken_;
  if (const Status handed = replace_file(result_path(window), part_path(), lines); !handed)
    return handed;
  answered_[window] = true;
  taken_.reset();
  locks_.unlock(kFirstWindowByte + static_cast<int64_t>(window), 1);
  return {};
}

}  // namespace vkformer::cli
