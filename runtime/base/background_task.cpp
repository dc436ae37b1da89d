#include "base/background_task.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/guarded.h"

namespace vkformer {

// Shared with the host's job, which may come to run after its task has gone.
struct BackgroundTask::State {
  enum class Stage : uint8_t { kWaiting, kRunning, kOver };

  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable ended;
  Stage stage = Stage::kWaiting;  // under the mutex

  // Does the work, unless somebody has begun it or given it up.
  void run() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (stage != Stage::kWaiting) return;
      stage = Stage::kRunning;
    }
    std::exchange(work, nullptr)();
    const std::lock_guard<std::mutex> lock(mutex);
    stage = Stage::kOver;
    ended.notify_all();
  }
  void wait_running() {
    std::unique_lock<std::mutex> lock(mutex);
    ended.wait(lock, [this] { return stage != Stage::kRunning; });
  }
};

BackgroundTask::BackgroundTask(const Jobs& jobs, std::function<void()> work)
    : state_(std::make_shared<State>()) {
  state_->work = std::move(work);
  try {
    if (jobs) {
      jobs([state = state_] { state->run(); });
    } else {
      thread_ = std::thread([state = state_] { state->run(); });
    }
  } catch (...) {
    refused_ = caught_error();
  }
}

BackgroundTask::~BackgroundTask() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->stage == State::Stage::kWaiting) state_->stage = State::Stage::kOver;
  }
  state_->wait_running();
  state_->work = nullptr;
  if (thread_.joinable()) thread_.join();
}

bool BackgroundTask::done() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->stage == State::Stage::kOver;
}

bool BackgroundTask::wait_for(std::chrono::milliseconds longest) {
  {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->ended.wait_for(lock, longest, [this] { return state_->stage == State::Stage::kOver; });
    if (state_->stage == State::Stage::kRunning) return false;
  }
  state_->run();
  return done();
}

void BackgroundTask::wait() {
  state_->run();
  state_->wait_running();
}

}  // namespace vkformer
