// A progress bar on stderr for work that takes longer than a second, when stderr is a terminal or
// the user wants it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace vkformer::cli {

// Shows itself while it lives, from the first second on. A separate thread keeps the line up to
// date, so that a blocking call shows progress too.
class Progress {
 public:
  // kAlways writes a line per change, at most one a second, where stderr is no terminal.
  enum class Show : uint8_t { kNever, kIfTerminal, kAlways };
  enum class Unit : uint8_t { kPieces, kBytes };

  Progress(std::string label, Show show, Unit unit = Unit::kPieces);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // How many pieces are done; `total` is 0 where it is not known: then there is no bar.
  void set(int64_t done, int64_t total = 0);
  // Goes on with other work: another label, and no pieces so far.
  void start(std::string label, Unit unit);
  // Takes the line off the terminal, for other output; it comes back with the next tick.
  void hide();

 private:
  void tick(const std::stop_token& stop);
  void draw();
  void draw_line();
  // "5 of 20", "3 of 12 MB", "5", or empty.
  std::string count_text() const;

  std::string label_;  // under mutex_
  Unit unit_;          // under mutex_
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> total_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool shown_ = false;    // under mutex_
  bool lines_ = false;    // separate lines instead of one that is rewritten
  int64_t written_ = -1;  // of lines_: the count that was written last
  std::jthread thread_;
};

}  // namespace vkformer::cli
