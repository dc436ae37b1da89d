// The part of SessionState that carries work out in slices.
#include <algorithm>

#include "base/message.h"
#include "session/session_state.h"

namespace vkformer {
namespace {

// What one slice writes into the application's command buffer at the most.
constexpr size_t kMostWritten = size_t{16} << 20;  // bytes

Status nothing_started() {
  return invalid_argument("[session] nothing was started; call start first");
}

// Barriers go by tensor, so no two may share bytes.
Status check_no_overlap(const std::map<std::string, TensorPlace>& places) {
  for (auto a = places.begin(); a != places.end(); ++a) {
    for (auto b = std::next(a); b != places.end(); ++b) {
      const TensorPlace& x = a->second;
      const TensorPlace& y = b->second;
      if (x.handle != y.handle || x.offset + x.bytes <= y.offset ||
          y.offset + y.bytes <= x.offset) {
        continue;
      }
      return invalid_argument(message({"[", a->first, "] and [", b->first,
                                       "] overlap in one buffer; give each a place of its own"}));
    }
  }
  return {};
}

}  // namespace

void scatter(Generation& from, const std::vector<size_t>& items, Generation& to) {
  for (size_t i = 0; i < items.size(); ++i) {
    to.resize(std::max(to.size(), items[i] + 1));
    to[items[i]] = std::move(from[i]);
  }
}

Generation by_input(Generation items, const GenerateOptions& options) {
  const auto sequences = static_cast<size_t>(options.return_sequences);
  const size_t parts = items_per_input(options);
  Generation result(items.size() / parts);
  for (size_t i = 0; i < items.size(); ++i) {
    auto& found = result[i / parts];
    std::move(items[i].begin(), items[i].end(), std::back_inserter(found));
  }
  if (options.beams == 1) return result;
  for (auto& found : result) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (found.size() > sequences) found.resize(sequences);
  }
  return result;
}

Status SessionState::make_sliced() {
  if (sliced_) return {};
  VKF_ASSIGN(sliced_, SlicedWork::create(model_->device()));
  return {};
}

Status SessionState::check_idle() const {
  if (!started_) return {};
  return invalid_argument(
      "[session] what was started is not finished; call finish or cancel first, or use another "
      "session of the same model");
}

Status SessionState::check_advance(double microseconds) const {
  if (!started_) return nothing_started();
  if (microseconds > 0) return {};
  return invalid_argument(
      message({"[advance] the budget is ", microseconds,
               " microseconds, but must be above 0; skip the call in frames without "
               "time to spare"}));
}

Status SessionState::start(const TensorMap& inputs, const RunOptions& options,
                           const std::map<std::string, TensorPlace>& places) {
  return start_pass(inputs, options, places, {}, {});
}

Status SessionState::start_pass(const TensorMap& inputs, const RunOptions& options,
                                const std::map<std::string, TensorPlace>& places,
                                std::shared_ptr<ImageInputs> images,
                                std::vector<SliceImage> copies) {
  VKF_CHECK(check_no_overlap(places));
  ForwardInputs read;
  Started work{.images = std::move(images)};
  VKF_ASSIGN(work.pass, pass_for(inputs, options, places, read));
  VKF_CHECK(make_sliced());
  work.words = std::move(read.words);
  started_ = std::move(work);
  const Status begun = begin_pass(std::move(copies));
  if (!begun) started_.reset();
  return begun;
}

Status SessionState::begin_pass(std::vector<SliceImage> copies) {
  VKF_ASSIGN(std::vector<SliceWrite> writes, started_->pass->writes(started_->words));
  size_t bytes = 0;
  for (const SliceWrite& write : writes) bytes += write.bytes.size();
  if (bytes > kMostWritten) {
    return invalid_argument(
        message({"[start] the inputs are ", bytes, " bytes, but at most ", kMostWritten,
                 " are written by command buffers; give them as buffers"}));
  }
  std::vector<SlicedUnit> units;
  if (started_->images) units.push_back(started_->images->unit());
  units.push_back(started_->pass->unit());
  sliced_->start(std::move(units), std::move(writes), std::move(copies));
  return {};
}

Status SessionState::start_on_images(TensorMap inputs, const RunOptions& options,
                                     std::map<std::string, TensorPlace> places,
                                     const std::vector<SourceImage>& images,
                                     const PictureSettings& settings) {
  VKF_CHECK(check_idle());
  constexpr const char* kName = "pixel_values";
  if (inputs.count(kName) != 0 || places.count(kName) != 0) {
    return invalid_argument(
        "[pixel_values] are given beside the images that they are made of; leave one of them out");
  }
  VKF_ASSIGN(const ImageInputsKey key, image_inputs_key(images, settings));
  VKF_ASSIGN(const std::shared_ptr<ImageInputs> made, image_inputs(key));
  inputs[kName] = Tensor::zeros(DType::kF32, made->shape());
  places[kName] = made->place();
  return start_pass(inputs, options, places, made, made->copies(images));
}

Status SessionState::start_generation(const TensorMap& inputs, const GenerateOptions& options) {
  if (options.contrastive_tokens != 0) {
    return unsupported(
        "[start_generation] every token of contrastive search is a pass of its own, whose slices "
        "nobody plans; use generate");
  }
  Started work{.options = options};
  VKF_ASSIGN(work.jobs, plan_generation(inputs, options));
  VKF_CHECK(make_sliced());
  started_ = std::move(work);
  const Status begun = begin_job();
  if (!begun) started_.reset();
  return begun;
}

Status SessionState::begin_job() {
  const GenerationJob& job = started_->jobs[started_->job];
  VKF_CHECK(job.pass->begin(job.inputs, started_->options, job.new_tokens, counters_));
  started_->share = started_->before = 0;
  VKF_CHECK(begin_steps());
  return {};
}

Result<bool> SessionState::begin_steps() {
  Started& work = *started_;
  GenerationPass& pass = *work.jobs[work.job].pass;
  VKF_ASSIGN(std::vector<SlicedUnit> units, pass.next_units(options_.steps_per_submit));
  if (units.empty()) return false;
  work.before += work.share;
  work.share = static_cast<double>(units.back().times) / static_cast<double>(pass.steps());
  sliced_->start(std::move(units), {});
  return true;
}

Status SessionState::follow_jobs() {
  const Status followed = follow_job();
  if (followed) return {};
  // What failed between two jobs cannot go on.
  started_.reset();
  (void)sliced_->clear();
  return followed;
}

Status SessionState::follow_job() {
  Started& work = *started_;
  if (work.job >= work.jobs.size() || !sliced_->begun()) return {};
  // The state of the rows is whole between steps, once these have run.
  if (!sliced_->idle() || !sliced_->between_rounds()) return {};
  GenerationJob& job = work.jobs[work.job];
  // Who follows tokens looks where the steps end that may run without the host.
  if (job.pass->followed() && !sliced_->check_submitted()) return {};
  VKF_ASSIGN(const uint32_t live, job.pass->live_slots());
  if (live > 0 && !sliced_->check_submitted()) return {};
  if (live > 0 && job.pass->followed()) {
    VKF_ASSIGN(const bool more, begin_steps());
    if (more) return {};
  }
  VKF_ASSIGN(Generation generated, job.pass->collect(job.inputs));
  scatter(generated, job.inputs.items, work.generation);
  sliced_->skip_rest();
  return ++work.job < work.jobs.size() ? begin_job() : Status{};
}

// A generation is done when its last job is.
Advance SessionState::with_jobs(Advance advance) const {
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

Result<Advance> SessionState::advance(double microseconds, const SubmitSemaphores& semaphores) {
  VKF_CHECK(check_advance(microseconds));
  VKF_CHECK(sliced_->collect());
  VKF_CHECK(follow_jobs());
  VKF_ASSIGN(const Advance advance, sliced_->advance(microseconds, semaphores));
  return with_jobs(advance);
}

Result<Advance> SessionState::record(VkCommandBuffer_T* commands, double microseconds) {
  VKF_CHECK(check_advance(microseconds));
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

// For what finish hands out; an error ends what was started.
Status SessionState::wait_for_slices() {
  Status waited = sliced_->wait();
  if (waited) waited = sliced_->collect();
  if (!waited) (void)cancel();
  return waited;
}

Result<TensorMap> SessionState::finish() {
  if (!started_) return nothing_started().error();
  if (!started_->pass) {
    return invalid_argument("[finish] what was started is a generation; call finish_generation");
  }
  VKF_CHECK(sliced_->check_submitted());
  VKF_CHECK(wait_for_slices());
  const Started work = std::move(*started_);
  started_.reset();
  return work.pass->read_outputs(work.words);
}

Result<Generation> SessionState::finish_generation() {
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

Status SessionState::forget_buffers() {
  VKF_CHECK(check_idle());
  forward_.remove_if([](const auto& pass) { return !pass->key().places.empty(); });
  images_.clear();
  return {};
}

Status SessionState::cancel() {
  if (!started_) return {};
  started_.reset();
  return sliced_->clear();
}

Result<std::map<std::string, PassTensor>> SessionState::started_tensors() const {
  if (!started_) return nothing_started().error();
  if (!started_->pass) {
    return invalid_argument("[session] a generation hands out no buffers; read finish_generation");
  }
  return started_->pass->tensors();
}

}  // namespace vkformer
