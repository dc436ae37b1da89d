// A progress line on stderr for work that takes longer than a second, when stderr is a terminal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace vkformer::cli {

// Shows itself while it lives, from the first second on; a thread of its own keeps the line up to
// date, so that a blocking call shows progress too.
class Progress {
 public:
  enum class Show : uint8_t { kNever, kIfTerminal };

  Progress(std::string label, Show show);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // How many pieces are done; `total` is 0 where it is not known.
  void set(int64_t done, int64_t total = 0);
  // Takes the line off the terminal, for other output; it comes back with the next tick.
  void hide();

 private:
  void tick(const std::stop_token& stop);
  void draw();

  std::string label_;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> total_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool shown_ = false;  // under mutex_
  std::jthread thread_;
};

}  // namespace vkformer::cli
