// The one place where the library meets the engine: the device, its queue, and a share of every
// frame.
//
// Threads: scripts call on the main thread. The function step() runs on the engine's render thread,
// once a frame. Two threads of our own load models and prepare what jobs need. Results come back to
// the main thread, where signals are emitted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gd/engine.h"
#include "handles.h"
#include "queue_window.h"

namespace vkf_godot {

class LoadedModel;

// A signal to emit once the main thread is there.
struct Event {
  uint64_t object;
  const char* signal;
  std::vector<gd::Variant> arguments;
};

// A session of one node, with the model that it needs.
struct Seat {
  std::shared_ptr<LoadedModel> model;
  std::shared_ptr<void> texture;  // that the session has recordings on
  Session session;
};

// What a node asked for: from its call to its result.
class Job {
 public:
  virtual ~Job() = default;
  // On a thread of ours, once the model is there: what may take long. An error, or "".
  virtual std::string prepare() { return ""; }
  // Everything else on the render thread. Whether start() may be called yet.
  virtual bool ready() { return true; }
  // Why it never will be, once ready() was asked; "" as long as it may.
  virtual std::string wrong() const { return ""; }
  virtual vkf_status start(vkf_session* session, vkf_error* error) = 0;
  // The results; called when the GPU has finished.
  virtual vkf_status finish(vkf_session* session, vkf_error* error) = 0;
  // Whether finish() wants the job to start again, such as for the next stretch of a sound.
  virtual bool more() const { return false; }

  uint64_t owner = 0;
  std::shared_ptr<Seat> seat;
  std::atomic<bool> cancelled = false;
  vkf_job_priority priority = VKF_JOB_NORMAL;

 protected:
  void tell(const char* signal, std::vector<gd::Variant> arguments) const;

 private:
  friend class Host;
  enum class State { kNew, kPreparing, kPrepared, kRunning } state_ = State::kNew;
  std::atomic<bool> prepared_ = false;
  std::string error_;
  uint64_t number_ = 0;
};

// A thread that does one thing after the other.
class Worker {
 public:
  void run(std::function<void()> work);
  void stop();

 private:
  void loop();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;
};

class Host {
 public:
  static Host& get();

  // Main thread, once a frame and at the end.
  void frame();
  void stop();
  // Render thread; called by the engine because frame() asked for it.
  void step();

  std::shared_ptr<Seat> make_seat(std::shared_ptr<LoadedModel> model);
  void add(std::shared_ptr<Job> job);
  void load(std::function<void()> work) { loader_.run(std::move(work)); }
  // Frees it on the render thread, in the next step.
  void bury(std::shared_ptr<void> thing);
  void tell(Event event);
  bool stopping() const { return stopping_; }

  // Threads that load: the device, made by the first of them. An error is in `error`.
  vkf_device* device(std::string& error);

  double budget_milliseconds = 2.0;
  bool prefer_own_device = false;
  std::string device_name() const;
  bool on_engine_device() const { return adopted_; }
  uint64_t memory_in_use() const;
  size_t jobs() const { return job_count_; }
  double step_milliseconds() const { return step_milliseconds_; }

 private:
  void find_engine_device();
  std::string make_device();
  void run_jobs();
  // False: the job is over.
  bool run_job(const std::shared_ptr<Job>& job);
  void fail(const Job& job, const std::string& message);
  void end(const std::shared_ptr<Job>& job);
  void give_up(Job& job);
  void advance();
  void finish(const std::shared_ptr<Job>& job);
  void stop_on_render_thread();

  // Of the engine's device; zero where there is none.
  struct EngineDevice {
    uint64_t instance = 0, physical = 0, device = 0, queue = 0, family = 0;
    std::string driver;
  } engine_;
  bool engine_known_ = false;
  std::condition_variable engine_found_;

  mutable std::mutex device_mutex_;
  Device device_;
  std::string device_error_;
  std::atomic<bool> adopted_ = false;
  QueueWindow window_;

  std::mutex inbox_mutex_;
  std::vector<std::shared_ptr<Job>> inbox_;
  std::vector<std::shared_ptr<void>> graves_;
  std::vector<std::weak_ptr<Seat>> seats_;
  std::vector<Event> events_;

  std::deque<std::shared_ptr<Job>> jobs_;  // of the render thread, like all that follows
  Frames frames_;
  std::atomic<size_t> job_count_ = 0;
  std::atomic<double> step_milliseconds_ = 0;

  std::atomic<bool> stopping_ = false;
  bool stopped_ = false;
  Worker loader_;
  Worker preparer_;
};

}  // namespace vkf_godot
