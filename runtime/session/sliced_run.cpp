#include "session/sliced_run.h"

#include <algorithm>
#include <cmath>

#include "base/guarded.h"
#include "base/message.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

// What one slice writes into the application's command buffer at the most.
constexpr size_t kMostWritten = size_t{16} << 20;  // bytes

Status nothing_started() {
  return invalid_argument("[session] nothing was started; call start first");
}

}  // namespace

Status check_budget(double microseconds) {
  if (microseconds > 0) return {};
  return invalid_argument(
      message({"[advance] the budget is ", microseconds,
               " microseconds, but must be above 0; skip the call in frames without "
               "time to spare"}));
}

Error already_started() {
  return invalid_argument(
      "[session] what was started is not finished; call finish or cancel first, or use another "
      "session of the same model");
}

Status SlicedRun::check_idle() const {
  return started_ ? Status(already_started()) : Status();
}

Status SlicedRun::check_started() const {
  return started_ ? Status() : nothing_started();
}

Result<bool> SlicedRun::prepare(double microseconds) {
  if (sliced_) return true;
  const Context& context = device_->impl().context;
  const bool waits = std::isinf(microseconds);
  if (!making_ && !waits && context.jobs) {
    making_ = std::make_unique<BackgroundTask>(
        context.jobs, [this] { made_ = guarded([this] { return SlicedWork::create(device_); }); });
    if (making_->refused()) making_.reset();
  }
  if (making_ ? !waits && !making_->done() : !(microseconds > 0)) return false;
  VKF_CHECK(make_stream());
  return true;
}

Status SlicedRun::make_stream() {
  if (sliced_) return {};
  if (making_) {
    making_->wait();
    making_.reset();
    VKF_ASSIGN(sliced_, std::move(made_));
    return {};
  }
  VKF_ASSIGN(sliced_, SlicedWork::create(device_));
  return {};
}

Status SlicedRun::sync(const SubmitSemaphores& semaphores) {
  if (semaphores.wait_handles.empty() && semaphores.signal_handles.empty()) return {};
  VKF_CHECK(make_stream());
  // Nothing is started, so that the slice is empty.
  VKF_CHECK(sliced_->advance(1, semaphores));
  return {};
}

Status SlicedRun::start(Started work, const std::function<Status()>& begin) {
  VKF_CHECK(check_idle());
  VKF_CHECK(make_stream());
  started_ = std::move(work);
  const Status begun = begin();
  if (!begun) started_.reset();
  return begun;
}

Status SlicedRun::start_pass(std::shared_ptr<ForwardPass> pass, PassInputs inputs,
                             std::shared_ptr<ImageInputs> images, std::vector<SliceImage> copies) {
  Started work{.pass = std::move(pass), .inputs = std::move(inputs), .images = std::move(images)};
  return start(std::move(work), [&] { return begin_pass(std::move(copies)); });
}

Status SlicedRun::start_generation(std::vector<ReadyJob> jobs, const GenerateOptions& options,
                                   int steps_per_submit, GenerationCounters& counters) {
  Started work{.options = options,
               .steps_per_submit = steps_per_submit,
               .counters = &counters,
               .jobs = std::move(jobs)};
  return start(std::move(work), [&] { return begin_job(); });
}

Status SlicedRun::begin_pass(std::vector<SliceImage> copies) {
  ForwardPass& pass = *started_->pass;
  const FeedWords& words = started_->inputs.words;
  std::vector<SliceWrite> writes;
  if (pass.key().pass == ForwardKey::Pass::kSecond) {
    // What the first pass gave may be long.
    VKF_CHECK(pass.feed(words));
  } else {
    VKF_ASSIGN(writes, pass.writes(words));
  }
  size_t bytes = 0;
  for (const SliceWrite& write : writes) bytes += write.bytes.size();
  if (bytes > kMostWritten) {
    return invalid_argument(
        message({"[start] the inputs are ", bytes, " bytes, but at most ", kMostWritten,
                 " are written by command buffers; give them as buffers"}));
  }
  VKF_ASSIGN(SlicedPlan plan, pass.sliced(std::move(writes)));
  plan.images = std::move(copies);
  if (started_->images) {
    plan.units.insert(plan.units.begin(), started_->images->unit());
  }
  sliced_->start(std::move(plan));
  return {};
}

Status SlicedRun::begin_job() {
  const auto& [job, pass] = started_->jobs[started_->job];
  VKF_CHECK(pass->begin(job.inputs, started_->options, job.new_tokens, *started_->counters));
  started_->share = started_->before = 0;
  VKF_CHECK(begin_steps());
  return {};
}

Result<bool> SlicedRun::begin_steps() {
  Started& work = *started_;
  GenerationPass& pass = *work.jobs[work.job].pass;
  VKF_ASSIGN(SlicedPlan plan, pass.next_slices(work.steps_per_submit));
  if (plan.units.empty()) return false;
  work.before += work.share;
  work.share = static_cast<double>(plan.units.back().times) / static_cast<double>(pass.steps());
  sliced_->start(std::move(plan));
  return true;
}

Status SlicedRun::follow_jobs() {
  const Status followed = follow_job();
  if (followed) return {};
  // What failed between two jobs cannot go on.
  started_.reset();
  (void)sliced_->clear();
  return followed;
}

Status SlicedRun::follow_job() {
  Started& work = *started_;
  if (work.job >= work.jobs.size() || !sliced_->ended_round()) return {};
  // A step that is only begun changes nothing that is read here: rows that are finished stay so.
  if (!sliced_->idle()) return {};
  const auto& [job, pass] = work.jobs[work.job];
  // Who follows tokens looks where the steps end that may run without the host.
  if (pass->followed() && !sliced_->check_submitted()) return {};
  VKF_ASSIGN(const uint32_t live, pass->live_slots());
  if (live > 0 && !sliced_->check_submitted()) return {};
  if (live > 0 && pass->followed()) {
    VKF_ASSIGN(const bool more, begin_steps());
    if (more) return {};
  }
  VKF_ASSIGN(Generation generated, pass->collect(job.inputs));
  scatter(generated, job.inputs.items, work.generation);
  sliced_->skip_rest();
  return ++work.job < work.jobs.size() ? begin_job() : Status{};
}

// A generation is done when its last job is.
Advance SlicedRun::with_jobs(Advance advance) const {
  const size_t jobs = started_->jobs.size();
  if (jobs == 0) return advance;
  if (started_->job == jobs) {
    advance.progress = Advance::Progress::kDone;
    advance.fraction = 1.0;
    return advance;
  }
  const bool last = started_->job + 1 == jobs;
  advance.fraction = std::min(1.0, started_->before + started_->share * advance.fraction);
  if (!last || started_->jobs[started_->job].pass->followed())
    advance.progress = Advance::Progress::kRunning;
  // The last job is done when follow_jobs has seen it.
  if (advance.progress == Advance::Progress::kDone) {
    advance.progress = Advance::Progress::kSubmitted;
  }
  advance.fraction =
      (static_cast<double>(started_->job) + advance.fraction) / static_cast<double>(jobs);
  return advance;
}

Result<Advance> SlicedRun::advance(double microseconds, const SubmitSemaphores& semaphores) {
  VKF_CHECK(check_started());
  VKF_CHECK(sliced_->collect());
  VKF_CHECK(follow_jobs());
  VKF_ASSIGN(const Advance advance, sliced_->advance(microseconds, semaphores));
  return with_jobs(advance);
}

Result<Advance> SlicedRun::record(VkCommandBuffer_T* commands, double microseconds) {
  VKF_CHECK(check_started());
  if (commands == nullptr) {
    return invalid_argument("[record] the command buffer is null; begin one first");
  }
  if (!started_->pass && !sliced_->timed()) {
    return unsupported(
        "[record] this device has no timestamps, without which nobody sees when the steps of a "
        "generation have run; use advance");
  }
  VKF_CHECK(sliced_->collect());
  VKF_CHECK(follow_jobs());
  VKF_ASSIGN(const Advance advance, sliced_->append(commands, microseconds));
  return with_jobs(advance);
}

Status SlicedRun::drop_recorded() {
  VKF_CHECK(check_started());
  // What has run cannot be dropped.
  VKF_CHECK(sliced_->collect());
  return sliced_->drop_last();
}

// For what finish hands out; an error ends what was started.
Status SlicedRun::wait_for_slices() {
  Status waited = sliced_->wait();
  if (waited) waited = sliced_->collect();
  if (!waited) (void)cancel();
  return waited;
}

Result<TensorMap> SlicedRun::finish() {
  if (!started_) return nothing_started().error();
  if (!started_->pass) {
    return invalid_argument("[finish] what was started is a generation; call finish_generation");
  }
  VKF_CHECK(sliced_->check_submitted());
  VKF_CHECK(wait_for_slices());
  const Started work = std::move(*started_);
  started_.reset();
  return work.pass->read_outputs(work.inputs);
}

Result<Generation> SlicedRun::finish_generation() {
  if (!started_) return nothing_started().error();
  if (started_->pass) {
    return invalid_argument("[finish_generation] what was started is a pass; call finish");
  }
  VKF_CHECK(wait_for_slices());
  VKF_CHECK(follow_jobs());
  if (started_->job < started_->jobs.size()) {
    VKF_CHECK(sliced_->check_submitted());
    return invalid_argument(
        message({"[finish_generation] ", started_->jobs.size() - started_->job,
                 " groups of rows are not finished; call advance or record until the "
                 "progress is kDone"}));
  }
  Generation result = by_input(std::move(started_->generation), started_->options);
  started_.reset();
  return result;
}

Status SlicedRun::cancel() {
  if (!started_) return {};
  started_.reset();
  return sliced_->clear();
}

Result<bool> SlicedRun::pass_ran(double microseconds) {
  VKF_CHECK(check_started());
  if (!sliced_->check_submitted()) return false;
  if (std::isinf(microseconds)) VKF_CHECK(sliced_->wait());
  VKF_CHECK(sliced_->collect());
  return sliced_->idle();
}

Result<std::map<std::string, PassTensor>> SlicedRun::tensors() const {
  if (!started_) return nothing_started().error();
  if (!started_->pass) {
    return invalid_argument("[session] a generation hands out no buffers; read finish_generation");
  }
  return started_->pass->tensors();
}

}  // namespace vkformer
