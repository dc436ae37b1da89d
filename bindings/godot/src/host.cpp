#include "host.h"

#include <algorithm>
#include <chrono>

#include "model.h"
#include "system_vulkan.h"

namespace vkf_godot {
namespace {

using Clock = std::chrono::steady_clock;

// Of a frame, how long the render thread waits for threads that want to submit weights.
constexpr std::chrono::microseconds kPatience(300);

// RenderingDevice.DriverResource
enum { kLogicalDevice = 0, kPhysicalDevice = 1, kInstance = 2, kQueue = 3, kQueueFamily = 4 };

void log_message(void*, vkf_log_level level, const char* message) {
  if (level == VKF_LOG_ERROR) gd::print_error(message);
  if (level == VKF_LOG_WARNING) gd::print_warning(message);
}

}  // namespace

void Job::tell(const char* signal, std::vector<gd::Variant> arguments) const {
  Host::get().tell({owner, signal, std::move(arguments)});
}

void Worker::run(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  work_.push_back(std::move(work));
  changed_.notify_all();
}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.clear();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Worker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !work_.empty(); });
    if (stopping_) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

Host& Host::get() {
  static Host* host = new Host;  // until the process ends: threads of the driver may outlive us
  return *host;
}

void Host::tell(Event event) {
  const std::lock_guard lock(inbox_mutex_);
  if (!stopping_) events_.push_back(std::move(event));
}

std::shared_ptr<Seat> Host::make_seat(std::shared_ptr<LoadedModel> model) {
  auto seat = std::make_shared<Seat>();
  seat->model = std::move(model);
  const std::lock_guard lock(inbox_mutex_);
  std::erase_if(seats_, [](const std::weak_ptr<Seat>& other) { return other.expired(); });
  seats_.push_back(seat);
  return seat;
}

void Host::add(std::shared_ptr<Job> job) {
  const std::lock_guard lock(inbox_mutex_);
  if (stopping_) return;
  inbox_.push_back(std::move(job));
  ++job_count_;
}

void Host::bury(std::shared_ptr<void> thing) {
  if (!thing) return;
  const std::lock_guard lock(inbox_mutex_);
  graves_.push_back(std::move(thing));
}

void Host::frame() {
  if (stopping_) return;
  const gd::Variant server = gd::singleton("VkfServer");
  const gd::Variant step = gd::Variant::make(GDEXTENSION_VARIANT_TYPE_CALLABLE,
                                             {server, gd::Variant::string_name("_step")});
  gd::singleton("RenderingServer").call("call_on_render_thread", {step});
  std::vector<Event> events;
  {
    const std::lock_guard lock(inbox_mutex_);
    events.swap(events_);
  }
  for (const Event& event : events) {
    const gd::Object object = gd::object_from_id(event.object);
    if (object == nullptr) continue;  // the scene was left
    std::vector<gd::Variant> all = {gd::Variant::string_name(event.signal)};
    all.insert(all.end(), event.arguments.begin(), event.arguments.end());
    gd::Variant(object).call("emit_signal", all);
  }
}

void Host::find_engine_device() {
  const std::lock_guard lock(device_mutex_);
  if (engine_known_) return;
  engine_known_ = true;
  const gd::Variant server = gd::singleton("RenderingServer");
  const gd::Variant device = server.call("get_rendering_device");
  engine_.driver = server.call("get_current_rendering_driver_name").as_string();
  if (device.is_null() && engine_.driver == "vulkan") engine_.driver = "headless";
  if (!device.is_null() && engine_.driver == "vulkan") {
    const gd::Variant none = gd::Variant::make(GDEXTENSION_VARIANT_TYPE_RID);
    const auto resource = [&](int which) {
      return static_cast<uint64_t>(device.call("get_driver_resource", {which, none, 0}).as_int());
    };
    engine_.instance = resource(kInstance);
    engine_.physical = resource(kPhysicalDevice);
    engine_.device = resource(kLogicalDevice);
    engine_.queue = resource(kQueue);
    engine_.family = resource(kQueueFamily);
  }
  engine_found_.notify_all();
}

vkf_device* Host::device(std::string& error) {
  std::unique_lock lock(device_mutex_);
  engine_found_.wait(lock, [&] { return engine_known_ || stopping_; });
  if (stopping_) {
    error = "[device] the engine is shutting down.";
    return nullptr;
  }
  if (!device_ && device_error_.empty()) device_error_ = make_device();
  error = device_error_;
  return device_.get();
}

std::string Host::make_device() {
  Error error;
  auto options = sized<vkf_device_options>();
  options.log = log_message;
  std::string why = "the project setting vkformer/device asks for it";
  if (!prefer_own_device) {
    why = "the renderer is [" + engine_.driver + "], not Vulkan";
    vkf_any_function find = system_vulkan();
    if (find == nullptr) why = "the Vulkan loader of the system was not found";
    if (engine_.device != 0 && find != nullptr) {
      auto host = sized<vkf_adopted_device>();
      host.get_instance_proc_addr = find;
      host.instance = reinterpret_cast<void*>(engine_.instance);
      host.physical_device = reinterpret_cast<void*>(engine_.physical);
      host.device = reinterpret_cast<void*>(engine_.device);
      host.queue = reinterpret_cast<void*>(engine_.queue);
      host.queue_family = static_cast<uint32_t>(engine_.family);
      host.queue_lock = [](void* window) { static_cast<QueueWindow*>(window)->lock(); };
      host.queue_unlock = [](void* window) { static_cast<QueueWindow*>(window)->unlock(); };
      host.queue_lock_data = &window_;
      if (vkf_device_adopt(&host, &options, made(device_), error) == VKF_OK) {
        adopted_ = true;
        return "";
      }
      why = error.message();
    }
  }
  if (vkf_device_create(&options, made(device_), error) != VKF_OK) return error.message();
  if (!prefer_own_device) {
    auto info = sized<vkf_device_info>();
    vkf_device_get_info(device_.get(), &info, error);
    gd::print_warning("[vkformer] models run on a Vulkan device of their own, " +
                      std::string(info.name) + ", and not inside the engine's frames: " + why +
                      ". Use the renderer Forward+ or Mobile with the Vulkan driver.");
  }
  return "";
}

std::string Host::device_name() const {
  const std::lock_guard lock(device_mutex_);
  Error error;
  auto info = sized<vkf_device_info>();
  if (!device_ || vkf_device_get_info(device_.get(), &info, error) != VKF_OK) return "";
  return info.name;
}

uint64_t Host::memory_in_use() const {
  const std::lock_guard lock(device_mutex_);
  return device_ ? vkf_device_memory_in_use(device_.get()) : 0;
}

void Host::step() {
  if (stopped_) return;
  if (stopping_) {
    stop_on_render_thread();
    return;
  }
  const Clock::time_point begin = Clock::now();
  find_engine_device();
  std::vector<std::shared_ptr<void>> graves;
  {
    const std::lock_guard lock(inbox_mutex_);
    jobs_.insert(jobs_.end(), inbox_.begin(), inbox_.end());
    inbox_.clear();
    graves.swap(graves_);
  }
  window_.open();
  run_jobs();
  graves.clear();
  window_.close(kPatience);
  step_milliseconds_ = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void Host::run_jobs() {
  // Of each seat the first job runs; the others wait for it.
  std::vector<const Seat*> taken;
  for (size_t i = 0; i < jobs_.size();) {
    const std::shared_ptr<Job> job = jobs_[i];
    const bool first = std::find(taken.begin(), taken.end(), job->seat.get()) == taken.end();
    taken.push_back(job->seat.get());
    if (first || job->cancelled ? run_job(job) : true) {
      ++i;
    } else {
      end(job);
    }
  }
  advance();
}

bool Host::run_job(const std::shared_ptr<Job>& job) {
  if (job->cancelled) {
    if (job->state_ == Job::State::kPreparing && !job->prepared_) return true;
    give_up(*job);
    job->tell("canceled", {});
    return false;
  }
  const std::shared_ptr<LoadedModel>& model = job->seat->model;
  switch (job->state_) {
    case Job::State::kNew:
      if (model->state() == LoadedModel::State::kLoading) return true;
      if (model->state() == LoadedModel::State::kFailed) {
        fail(*job, model->error());
        return false;
      }
      job->state_ = Job::State::kPreparing;
      preparer_.run([job] {
        Error error;
        if (!job->seat->session) {
          vkf_session_create(job->seat->model->model(), nullptr, made(job->seat->session), error);
          if (!job->seat->session) job->error_ = error.message();
        }
        if (job->error_.empty()) job->error_ = job->prepare();
        job->prepared_ = true;
      });
      return true;
    case Job::State::kPreparing:
      if (!job->prepared_) return true;
      if (!job->error_.empty()) {
        fail(*job, job->error_);
        return false;
      }
      job->state_ = Job::State::kPrepared;
      [[fallthrough]];
    case Job::State::kPrepared: {
      if (!job->ready()) return true;
      if (const std::string wrong = job->wrong(); !wrong.empty()) {
        fail(*job, wrong);
        return false;
      }
      Error error;
      auto settings = sized<vkf_frame_job>();
      settings.priority = job->priority;
      if (!frames_ && vkf_frames_create(made(frames_), error) != VKF_OK) {
        fail(*job, error.message());
        return false;
      }
      if (job->start(job->seat->session.get(), error) != VKF_OK ||
          vkf_frames_add(frames_.get(), job->seat->session.get(), &settings, &job->number_,
                         error) != VKF_OK) {
        fail(*job, error.message());
        give_up(*job);
        return false;
      }
      job->state_ = Job::State::kRunning;
      return true;
    }
    case Job::State::kRunning:
      return true;
  }
  return true;
}

void Host::advance() {
  if (!frames_ || vkf_frames_count(frames_.get()) == 0) return;
  Error error;
  FrameUpdates updates;
  if (vkf_frames_advance(frames_.get(), budget_milliseconds * 1000, made(updates), error) !=
      VKF_OK) {
    gd::print_error(error.message());
    return;
  }
  for (size_t i = 0; i < vkf_frame_updates_count(updates.get()); ++i) {
    auto progress = sized<vkf_frame_progress>();
    vkf_frame_updates_get(updates.get(), i, &progress, error);
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& job) {
      return job->state_ == Job::State::kRunning && job->number_ == progress.job;
    });
    if (found == jobs_.end()) continue;
    const std::shared_ptr<Job> job = *found;
    if (progress.error != nullptr) {
      job->number_ = 0;
      fail(*job, progress.error);
      give_up(*job);
      end(job);
    } else if (progress.progress == VKF_DONE) {
      job->number_ = 0;
      finish(job);
    }
  }
}

void Host::finish(const std::shared_ptr<Job>& job) {
  Error error;
  if (job->finish(job->seat->session.get(), error) != VKF_OK) {
    fail(*job, error.message());
  } else if (job->more()) {
    job->state_ = Job::State::kPrepared;
    return;
  }
  end(job);
}

void Host::fail(const Job& job, const std::string& message) {
  job.tell("failed", {message});
}

void Host::give_up(Job& job) {
  if (job.state_ != Job::State::kRunning && job.state_ != Job::State::kPrepared) return;
  if (job.number_ != 0) vkf_frames_remove(frames_.get(), job.number_, nullptr);
  job.number_ = 0;
  if (job.seat->session) vkf_session_cancel(job.seat->session.get(), nullptr);
}

void Host::end(const std::shared_ptr<Job>& job) {
  std::erase(jobs_, job);
  --job_count_;
}

void Host::stop() {
  if (stopped_) return;
  {
    const std::lock_guard lock(device_mutex_);
    stopping_ = true;
    engine_found_.notify_all();
  }
  const gd::Variant server = gd::singleton("VkfServer");
  const gd::Variant renderer = gd::singleton("RenderingServer");
  renderer.call("call_on_render_thread",
                {gd::Variant::make(GDEXTENSION_VARIANT_TYPE_CALLABLE,
                                   {server, gd::Variant::string_name("_step")})});
  renderer.call("force_sync");
  const std::lock_guard lock(inbox_mutex_);
  events_.clear();
}

void Host::stop_on_render_thread() {
  window_.open();
  loader_.stop();
  preparer_.stop();
  for (const std::shared_ptr<Job>& job : jobs_) give_up(*job);
  std::vector<std::shared_ptr<void>> graves;
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.clear();
    graves.swap(graves_);
  }
  std::vector<std::shared_ptr<Job>> jobs(jobs_.begin(), jobs_.end());
  jobs_.clear();
  frames_.reset();
  // Nodes outlive the engine's device; what they hold of it does not.
  for (const std::weak_ptr<Seat>& other : seats_) {
    if (const std::shared_ptr<Seat> seat = other.lock()) seat->session.reset();
  }
  LoadedModel::release_all();
  jobs.clear();
  graves.clear();
  window_.open_for_good();
  {
    const std::lock_guard lock(device_mutex_);
    device_.reset();
    adopted_ = false;
  }
  stopped_ = true;
}

}  // namespace vkf_godot
