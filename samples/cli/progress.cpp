#include "progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace vkformer::cli {

Progress::Progress(std::string label, Show show) : label_(std::move(label)) {
  lines_ = isatty(STDERR_FILENO) == 0;
  if (show == Show::kNever || (lines_ && show != Show::kAlways)) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { tick(stop); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  hide();
  if (lines_ && done_ > 0) draw_line();
}

void Progress::set(int64_t done, int64_t total) {
  done_ = done;
  total_ = total;
}

void Progress::hide() {
  const std::lock_guard lock(mutex_);
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto never = [] { return false; };
  wake_.wait_for(lock, stop, std::chrono::seconds(1), never);
  while (!stop.stop_requested()) {
    if (lines_) {
      draw_line();
    } else {
      draw();
    }
    wake_.wait_for(lock, stop, std::chrono::milliseconds(lines_ ? 1000 : 200), never);
  }
}

void Progress::draw_line() {
  const int64_t done = done_;
  const int64_t total = total_;
  if (done == written_) return;
  written_ = done;
  std::fprintf(stderr, "%s: %lld", label_.c_str(), static_cast<long long>(done));
  if (total > 0) std::fprintf(stderr, " of %lld", static_cast<long long>(total));
  std::fputc('\n', stderr);
}

void Progress::draw() {
  const int64_t done = done_;
  const int64_t total = total_;
  std::fprintf(stderr, "\r\033[K%s", label_.c_str());
  if (total > 0) {
    std::fprintf(stderr, ": %lld of %lld", static_cast<long long>(done),
                 static_cast<long long>(total));
  } else if (done > 0) {
    std::fprintf(stderr, ": %lld", static_cast<long long>(done));
  } else {
    std::fputs(" ...", stderr);
  }
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace vkformer::cli
