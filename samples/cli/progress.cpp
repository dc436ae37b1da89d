#include "progress.h"

#include <chrono>
#include <cstdio>

#include "terminal.h"

namespace vkformer::cli {

Progress::Progress(std::string label, Show show, Unit unit)
    : label_(std::move(label)), unit_(unit) {
  lines_ = !is_terminal(stderr);
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

void Progress::start(std::string label, Unit unit) {
  const std::lock_guard lock(mutex_);
  label_ = std::move(label);
  unit_ = unit;
  done_ = 0;
  total_ = 0;
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

std::string Progress::count_text() const {
  const int64_t done = done_;
  const int64_t total = total_;
  const auto amount = [this](int64_t count) {
    constexpr int64_t kMegabyte = 1'000'000;
    return std::to_string(unit_ == Unit::kBytes ? count / kMegabyte : count);
  };
  const std::string unit = unit_ == Unit::kBytes ? " MB" : "";
  if (total > 0) return amount(done) + " of " + amount(total) + unit;
  return done > 0 ? amount(done) + unit : "";
}

void Progress::draw_line() {
  const int64_t done = done_;
  if (done == written_) return;
  written_ = done;
  std::fprintf(stderr, "%s: %s\n", label_.c_str(), done > 0 ? count_text().c_str() : "0");
}

void Progress::draw() {
  constexpr int kColumns = 24;
  const int64_t total = total_;
  const std::string count = count_text();
  std::string line = label_;
  if (total > 0) {
    const std::string bar =
        bar_text(static_cast<double>(done_) / static_cast<double>(total), kColumns);
    line += " [" + colored(filled(bar, kColumns), Color::kCyan, stderr) + "] " + count;
  } else {
    line += count.empty() ? " ..." : ": " + count;
  }
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace vkformer::cli
