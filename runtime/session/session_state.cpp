#include "session/session_state.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "generate/continuation_scores.h"
#include "generate/option_checks.h"
#include "ops/op.h"
#include "session/fitting.h"
#include "session/lanes.h"
#include "session/sized_graphs.h"

namespace vkformer {
namespace {

constexpr auto kOff = ForwardTaps::Tap::kOff;

// A layer and head that every attention asked for has.
Status check_taps(const ModelFacts& facts, const RunOptions& options) {
  const int64_t layers = std::max(facts.encoder_layers, facts.decoder_layers);
  const bool both = facts.kind == ModelKind::kEncoderDecoder;
  const int64_t heads = both ? std::min(facts.encoder_heads, facts.decoder_heads)
                             : std::max(facts.encoder_heads, facts.decoder_heads);
  if (options.attention_layer >= -1 && options.attention_layer < layers &&
      options.attention_head >= -1 && options.attention_head < heads) {
    return {};
  }
  return invalid_argument(message({"[attentions] layer ", options.attention_layer, " and head ",
                                   options.attention_head, " were asked for, but there are ",
                                   layers, " layers and ", heads, " heads, counted from 0"}));
}

// Of host time for what is prepared in portions, where nobody does it beside the caller.
constexpr double kPortion = 1000;  // microseconds

double portion_of(double budget) {
  return std::isinf(budget) ? budget : std::min(budget, kPortion);
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
                                       "] overlap in one buffer; give each a separate place"}));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SessionState>> SessionState::create(std::shared_ptr<const LoadedModel> model,
                                                           const SessionOptions& options) {
  if (options.recordings < 1 || options.steps_per_submit < 1) {
    return invalid_argument(
        message({"[session] recordings is ", options.recordings, " and steps_per_submit ",
                 options.steps_per_submit, ", but both must be at least 1"}));
  }
  return std::unique_ptr<SessionState>(new SessionState(std::move(model), options));
}

SessionState::SessionState(std::shared_ptr<const LoadedModel> model, const SessionOptions& options)
    : model_(std::move(model)),
      options_(options),
      forward_(model_->device(), options.recordings,
               {[this](const ForwardKey& key) -> Result<std::shared_ptr<ForwardPass>> {
                  return std::make_shared<ForwardPass>(model_, key);
                },
                [this](const ForwardKey& key) {
                  return give_way(forward_bytes(*model_, key.shape, key.taps));
                },
                [this](const Error& error, const ForwardKey& key) {
                  return forward_error(error, *model_, key.shape, key.taps);
                }}),
      steps_(model_->device(), options.recordings,
             {[this](const GenerationKey& key) -> Result<std::shared_ptr<DecodeStep>> {
                ++counters_.recordings;
                return std::make_shared<DecodeStep>(model_, key, DecodeStep::Prompt::kYes);
              },
              [this](const GenerationKey& key) { return give_way(generation_bytes(*model_, key)); },
              [this](const Error& error, const GenerationKey& key) {
                return generation_error(error, *model_, key);
              }}),
      images_(
          model_->device(), options.recordings,
          {[this](const ImageInputsKey& key) { return ImageInputs::create(model_->device(), key); },
           [](const ImageInputsKey&) { return false; },
           [](const Error& error, const ImageInputsKey&) { return error; }}),
      prefixes_(model_),
      sliced_(model_->device()) {}

// Recordings of other shapes are kept for speed only: they go where a pass may then fit. Says
// whether there were any.
bool SessionState::give_way(const Result<uint64_t>& wanted_bytes) {
  if (!wanted_bytes.ok() || !fits_alone(*model_, *wanted_bytes)) return false;
  const bool any = !forward_.empty() || !steps_.empty() || !images_.empty() || !prefixes_.empty();
  forward_.clear();
  steps_.clear();
  images_.clear();
  prefixes_.clear();
  return any;
}

Result<SessionState::Turn> SessionState::turn() {
  bool free = false;
  if (busy_.compare_exchange_strong(free, true, std::memory_order_acquire)) return Turn(busy_);
  return invalid_argument(
      "[session] another thread is inside this session; use one session for each thread, they can "
      "share a model");
}

Result<SessionState::PassRequest> SessionState::pass_request(
    const TensorMap& inputs, const RunOptions& options,
    const std::map<std::string, TensorPlace>& places, ForwardTaps::Tap last_logits) {
  VKF_CHECK(check_idle());
  const ModelFacts& facts = model_->family().facts();
  VKF_CHECK(check_taps(facts, options));
  PassRequest request;
  ForwardKey& key = request.key;
  ForwardInputs read;
  // What the application placed has the sizes of what it gave.
  if (options_.round_lengths && places.empty()) {
    TensorMap rounded = inputs;
    VKF_ASSIGN(const std::optional<GivenLengths> given, round_lengths(facts, rounded));
    key.cuts = given.has_value();
    request.inputs.given = given.value_or(GivenLengths());
    VKF_ASSIGN(read, read_forward_inputs(model_->family(), rounded, options.long_inputs));
  } else {
    VKF_ASSIGN(read, read_forward_inputs(model_->family(), inputs, options.long_inputs));
  }
  request.inputs.words = std::move(read.words);
  key.shape = read.shape;
  key.places = places;
  VKF_ASSIGN(key.attention, attention_request(options));
  if (options.attentions || options.entropy) {
    key.taps.attentions = ForwardTaps::Tap::kOn;
  }
  if (options.hidden_states) key.taps.hidden_states = ForwardTaps::Tap::kOn;
  key.taps.attention_layer = options.attention_layer;
  key.taps.attention_head = options.attention_head;
  if (options.attention_values == RunOptions::AttentionValues::kScores)
    key.taps.raw_scores = ForwardTaps::Tap::kOn;
  key.taps.decoder_mask = read.decoder_mask;
  key.taps.positions = read.positions;
  key.taps.pooling_mask = read.pooling_mask;
  key.taps.last_logits = last_logits;
  return request;
}

Result<TensorMap> SessionState::run(const PassRequest& request) {
  VKF_ASSIGN(const std::shared_ptr<ForwardPass> pass, forward_.get(request.key));
  return pass->run(request.inputs);
}

Status SessionState::check_whole(const char* what) const {
  if (model_->split() == nullptr) return {};
  return unsupported(
      message({"[", what,
               "] the layers of this model lie on several devices, and slices are those "
               "of one; use run or generate, or load the model onto one device"}));
}

// Passes that fail in parts run as one, whose errors count inputs as the caller does; but not where
// other processes would wait for it.
Result<std::optional<TensorMap>> SessionState::run_beside(const TensorMap& inputs,
                                                          const RunOptions& options) {
  std::optional<TensorMap> outputs;
  const std::vector<LaneRows> rows = lanes_of_inputs(*model_, inputs);
  if (rows.size() < 2) return outputs;
  std::vector<std::shared_ptr<ForwardPass>> passes;
  std::vector<PassInputs> read;
  for (size_t lane = 0; lane < rows.size(); ++lane) {
    Result<PassRequest> request = pass_request(rows_of(inputs, rows[lane]), options, {}, kOff);
    if (!request) return outputs;
    request->key.lane = static_cast<uint32_t>(lane);
    Result<std::shared_ptr<ForwardPass>> pass = forward_.get(request->key);
    if (!pass) return outputs;
    passes.push_back(std::move(*pass));
    read.push_back(std::move(request->inputs));
  }
  std::vector<TensorMap> parts(rows.size());
  const Status status = run_lanes(rows.size(), [&](size_t lane) -> Status {
    VKF_ASSIGN(parts[lane], passes[lane]->run(read[lane]));
    return {};
  });
  if (!status && model_->split()->group->link) return status.error();
  if (!status) return outputs;
  Result<TensorMap> joined = join_rows(std::move(parts), rows);
  if (joined) outputs = std::move(*joined);
  return outputs;
}

Result<std::optional<Generation>> SessionState::generate_beside(const TensorMap& inputs,
                                                                const GenerateOptions& options) {
  std::optional<Generation> generated;
  const std::vector<LaneRows> rows = lanes_of_inputs(*model_, inputs);
  // Who follows the tokens does so on one thread.
  if (rows.size() < 2 || options.on_token || options.grammar) return generated;
  // How many tokens there are at most is the whole batch's.
  VKF_ASSIGN(const std::vector<GenerationJob> together, jobs_of(inputs, options));
  if (together.size() != 1) return generated;
  GenerateOptions own = options;
  own.max_new_tokens = static_cast<int>(together[0].new_tokens);
  std::vector<std::vector<GenerationJob>> jobs;
  std::vector<std::vector<GenerationPass>> passes(rows.size());
  for (size_t lane = 0; lane < rows.size(); ++lane) {
    Result<std::vector<GenerationJob>> planned = jobs_of(rows_of(inputs, rows[lane]), own);
    if (!planned) return generated;
    for (GenerationJob& job : *planned) {
      job.key.lane = static_cast<uint32_t>(lane);
      Result<std::shared_ptr<DecodeStep>> step = steps_.get(job.key);
      if (!step) return generated;
      passes[lane].emplace_back(std::move(*step));
    }
    jobs.push_back(std::move(*planned));
  }
  std::vector<Generation> parts(rows.size());
  std::vector<GenerationCounters> counters(rows.size());
  const Status status = run_lanes(rows.size(), [&](size_t lane) -> Status {
    Generation result;
    for (size_t i = 0; i < jobs[lane].size(); ++i) {
      const GenerationJob& job = jobs[lane][i];
      VKF_ASSIGN(Generation made, passes[lane][i].run(job.inputs, own, job.new_tokens,
                                                      options_.steps_per_submit, counters[lane]));
      scatter(made, job.inputs.items, result);
    }
    parts[lane] = by_input(std::move(result), own);
    return {};
  });
  if (!status && model_->split()->group->link) return status.error();
  if (!status) return generated;
  generated.emplace();
  for (size_t lane = 0; lane < rows.size(); ++lane) {
    std::move(parts[lane].begin(), parts[lane].end(), std::back_inserter(*generated));
    counters_.steps = std::max(counters_.steps, counters[lane].steps);
    counters_.submits += counters[lane].submits;
    counters_.cache_bytes += counters[lane].cache_bytes;
  }
  return generated;
}

Result<TensorMap> SessionState::run(const TensorMap& inputs, const RunOptions& options) {
  VKF_ASSIGN(std::optional<TensorMap> beside, run_beside(inputs, options));
  if (beside) return std::move(*beside);
  VKF_ASSIGN(const PassRequest request, pass_request(inputs, options, {}, kOff));
  VKF_ASSIGN(TensorMap outputs, run(request));
  VKF_CHECK(run_second(inputs, outputs));
  return outputs;
}

Result<SessionState::PassRequest> SessionState::second_request(const TensorMap& inputs,
                                                               TensorMap& outputs) const {
  VKF_ASSIGN(ForwardInputs read, model_->family().second_inputs(inputs, outputs));
  PassRequest request;
  request.key = {.shape = std::move(read.shape), .pass = ForwardKey::Pass::kSecond};
  request.inputs = {std::move(read.words)};
  return request;
}

Status SessionState::run_second(const TensorMap& inputs, TensorMap& outputs) {
  if (model_->family().facts().passes == ModelFacts::Passes::kOne) return {};
  VKF_ASSIGN(const PassRequest request, second_request(inputs, outputs));
  VKF_ASSIGN(TensorMap more, run(request));
  outputs.merge(more);
  return {};
}

Result<TensorMap> SessionState::run_last(const TensorMap& inputs) {
  VKF_ASSIGN(const PassRequest request, pass_request(inputs, {}, {}, ForwardTaps::Tap::kOn));
  return run(request);
}

Result<TensorMap> SessionState::run_cross_scores(const TensorMap& inputs,
                                                 std::vector<int64_t> layers) {
  RunOptions options;
  options.attentions = true;
  options.attention_values = RunOptions::AttentionValues::kScores;
  VKF_ASSIGN(PassRequest request, pass_request(inputs, options, {}, kOff));
  request.key.taps.cross_layers = std::move(layers);
  return run(request);
}

RunPass SessionState::passes() {
  return [this](const TensorMap& inputs) { return run(inputs, {}); };
}

StepForKey SessionState::steps() {
  return [this](const GenerationKey& key) { return steps_.get(key); };
}

Status SessionState::begin_generation(const GenerateOptions& options) {
  VKF_CHECK(check_idle());
  counters_ = {};
  return check_generate_options(model_->family().facts(), options);
}

Result<std::vector<GenerationJob>> SessionState::jobs_of(const TensorMap& inputs,
                                                         const GenerateOptions& options) {
  return plan_jobs(model_->family(), options_.cache, inputs, options);
}

Result<Generation> SessionState::generate(const TensorMap& inputs, const GenerateOptions& options) {
  VKF_CHECK(begin_generation(options));
  if (options.contrastive_tokens != 0) {
    return contrastive_search({model_->family(), options_.cache, passes(), steps()}, inputs,
                              options, counters_);
  }
  const bool typed = model_->family().facts().source_tokens.types > 0;
  const bool text_alone = std::all_of(inputs.begin(), inputs.end(), [&](const auto& item) {
    return item.first == "input_ids" || item.first == "attention_mask" ||
           (item.first == "token_type_ids" && !typed);
  });
  if (options_.prefix_reuse && text_alone &&
      PrefixCache::serves(model_->family().facts(), options, options_.cache)) {
    return prefixes_.generate(inputs, options, counters_);
  }
  VKF_ASSIGN(std::optional<Generation> beside, generate_beside(inputs, options));
  if (beside) return std::move(*beside);
  VKF_ASSIGN(std::vector<GenerationJob> jobs, jobs_of(inputs, options));
  cut_prompts(*model_, jobs);
  Generation result;
  for (GenerationJob& job : jobs) {
    VKF_ASSIGN(std::shared_ptr<DecodeStep> step, steps_.get(job.key));
    GenerationPass pass(std::move(step));
    VKF_ASSIGN(Generation generated,
               pass.run(job.inputs, options, job.new_tokens, options_.steps_per_submit, counters_));
    scatter(generated, job.inputs.items, result);
  }
  return by_input(std::move(result), options);
}

Result<std::vector<std::vector<float>>> SessionState::score(
    const TensorMap& inputs, const std::vector<std::vector<int64_t>>& continuations) {
  VKF_CHECK(check_idle());
  return score_continuations(model_->family(), inputs, continuations, passes());
}

Status SessionState::start(const TensorMap& inputs, const RunOptions& options,
                           const std::map<std::string, TensorPlace>& places) {
  const ModelFacts& facts = model_->family().facts();
  const bool two = facts.passes == ModelFacts::Passes::kTwo;
  if (two && !places.empty()) {
    return unsupported(
        message({"[", places.begin()->first, "] lies in a buffer of the application, but a ",
                 facts.architecture,
                 " runs two passes, between which the host reads the inputs and says how long the "
                 "outputs are; give the tensor's values, and read the outputs by finish."}));
  }
  VKF_CHECK(check_no_overlap(places));
  VKF_ASSIGN(PassRequest read, pass_request(inputs, options, places, kOff));
  VKF_CHECK(start(awaited_pass(std::move(read))));
  if (two) two_.emplace(TwoPasses{.inputs = inputs});
  return {};
}

SessionState::Awaited SessionState::awaited_pass(PassRequest read) {
  auto request = std::make_shared<PassRequest>(std::move(read));
  return {.needs = {.passes = {{request->key}}}, .begin = [this, request](Needs& needs) -> Status {
            return sliced_.start_pass(std::move(needs.passes[0].pass), std::move(request->inputs),
                                      {}, {});
          }};
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
  VKF_ASSIGN(const ImageInputsKey image_key, image_inputs_key(images, settings));
  VKF_ASSIGN(const std::shared_ptr<ImageInputs> made, images_.begin(image_key));
  inputs[kName] = Tensor::zeros(DType::kF32, made->shape());
  places[kName] = made->place();
  VKF_CHECK(check_no_overlap(places));
  VKF_ASSIGN(PassRequest read, pass_request(inputs, options, places, kOff));
  auto request = std::make_shared<PassRequest>(std::move(read));
  return start({.needs = {.passes = {{request->key}}, .images = {{image_key}}},
                .begin = [this, request, made, images](Needs& needs) -> Status {
                  return sliced_.start_pass(std::move(needs.passes[0].pass),
                                            std::move(request->inputs), made, made->copies(images));
                }});
}

Status SessionState::start_generation(const TensorMap& inputs, const GenerateOptions& options) {
  if (options.contrastive_tokens != 0) {
    return unsupported(
        "[start_generation] every token of contrastive search is a separate pass, whose slices "
        "nobody plans; use generate");
  }
  VKF_CHECK(begin_generation(options));
  VKF_ASSIGN(std::vector<GenerationJob> planned, jobs_of(inputs, options));
  Awaited awaited;
  for (const GenerationJob& job : planned) awaited.needs.steps.push_back({job.key});
  auto jobs = std::make_shared<std::vector<GenerationJob>>(std::move(planned));
  awaited.begin = [this, jobs, options](Needs& needs) -> Status {
    std::vector<SlicedRun::ReadyJob> ready;
    for (size_t i = 0; i < jobs->size(); ++i) {
      auto pass = std::make_unique<GenerationPass>(std::move(needs.steps[i].pass));
      ready.push_back({std::move((*jobs)[i]), std::move(pass)});
    }
    return sliced_.start_generation(std::move(ready), options, options_.steps_per_submit,
                                    counters_);
  };
  return start(std::move(awaited));
}

Status SessionState::check_prepared() const {
  if (!awaited_) return {};
  return invalid_argument(
      "[session] what was started is still being prepared; call advance or record until the "
      "progress is not kPreparing, with an infinite budget to wait for it, or cancel");
}

Status SessionState::check_idle() const {
  return awaited_ ? Status(already_started()) : sliced_.check_idle();
}

// What is prepared begins at once, so that its errors are those of the call that starts it.
Status SessionState::start(Awaited awaited) {
  VKF_CHECK(check_idle());
  VKF_CHECK(check_whole("start"));
  awaited_ = std::move(awaited);
  const Result<bool> ready = begun(0);
  return ready ? Status() : Status(ready.error());
}

Result<bool> SessionState::prepared(Needs& needs, double microseconds) {
  if (needs.passes.empty() && needs.steps.empty()) return true;
  VKF_ASSIGN(bool all, sliced_.prepare(microseconds));
  const auto see = [&](auto& cache, auto& list) -> Status {
    for (auto& need : list) {
      if (!need.pass) {
        VKF_ASSIGN(need.pass, cache.prepare(need.key, microseconds));
      }
      all = all && need.pass;
    }
    return {};
  };
  VKF_CHECK(see(images_, needs.images));
  VKF_CHECK(see(forward_, needs.passes));
  VKF_CHECK(see(steps_, needs.steps));
  return all;
}

Result<bool> SessionState::begun(double microseconds) {
  if (!awaited_) return true;
  const Result<bool> ready = prepared(awaited_->needs, microseconds);
  if (ready && !*ready) return false;
  Awaited awaited = std::move(*awaited_);
  awaited_.reset();
  if (!ready) return ready.error();
  VKF_CHECK(awaited.begin(awaited.needs));
  return true;
}

Status SessionState::follow_first(double microseconds) {
  if (!two_ || two_->second || awaited_) return {};
  VKF_ASSIGN(const bool ran, sliced_.pass_ran(microseconds));
  if (!ran) return {};
  VKF_ASSIGN(two_->outputs, sliced_.finish());
  VKF_ASSIGN(PassRequest second, second_request(two_->inputs, two_->outputs));
  two_->second = true;
  awaited_ = awaited_pass(std::move(second));
  return {};
}

Result<bool> SessionState::going_on(double microseconds, double wait) {
  const Status followed = follow_first(wait);
  const Result<bool> ready =
      followed ? begun(portion_of(microseconds)) : Result<bool>(followed.error());
  // What fails between two passes cannot go on.
  if (!ready && two_) (void)cancel();
  return ready;
}

Advance SessionState::of_both(Advance advance) const {
  if (!two_) return advance;
  advance.fraction = (advance.fraction + (two_->second ? 1 : 0)) / 2;
  if (!two_->second) advance.progress = Advance::Progress::kRunning;
  return advance;
}

double SessionState::fraction(const Needs& needs) {
  double sum = 0, count = 0;
  const auto add = [&](auto& cache, const auto& list) {
    for (const auto& need : list) {
      sum += need.pass ? 1 : cache.fraction(need.key);
      ++count;
    }
  };
  add(images_, needs.images);
  add(forward_, needs.passes);
  add(steps_, needs.steps);
  return count > 0 ? sum / count : 1;
}

Advance SessionState::preparing() {
  return {.progress = Advance::Progress::kPreparing, .fraction = fraction(awaited_->needs)};
}

Status SessionState::warm_up(const SessionSizes& sizes) {
  VKF_CHECK(check_whole("warm_up"));
  SessionSizes own = sizes;
  own.cache = options_.cache;
  VKF_ASSIGN(const SizedPasses passes, sized_passes(model_->family(), own, lengths()));
  if (passes.forward) warming_.passes.push_back({*passes.forward});
  if (passes.second) warming_.passes.push_back({*passes.second});
  if (passes.step) warming_.steps.push_back({*passes.step});
  const Result<bool> begun = prepared(warming_, 0);
  return begun ? Status() : Status(begun.error());
}

Result<double> SessionState::warmed_up() {
  VKF_ASSIGN(const bool all, prepared(warming_, kPortion));
  if (!all) return fraction(warming_);
  warming_ = {};
  return 1.0;
}

Status SessionState::finish_warm_up() {
  Needs needs = std::exchange(warming_, {});
  const Result<bool> all = prepared(needs, kUntilDone);
  return all ? Status() : Status(all.error());
}

Result<FrameEstimate> SessionState::estimate(const SessionSizes& sizes, double microseconds) const {
  VKF_CHECK(check_budget(microseconds));
  VKF_CHECK(check_whole("estimate"));
  VulkanDevice& device = *model_->device();
  VKF_ASSIGN(const std::vector<SizedGraph> graphs,
             sized_graphs(model_->family(), model_->weights(), sizes, lengths()));
  FrameEstimate estimate;
  double measured = 0, all = 0;
  for (size_t i = 0; i < graphs.size(); ++i) {
    VKF_ASSIGN(const Plan plan, make_plan(graphs[i].graph, device.caps(), model_->precision()));
    const SliceCosts costs = costs_of(device, plan);
    // A generation is its prompt's pass and then as many steps as tokens.
    const bool generation = model_->family().facts().passes == ModelFacts::Passes::kOne;
    const bool steps = generation && sizes.new_tokens > 0 && i + 1 == graphs.size();
    const double times = steps ? static_cast<double>(sizes.new_tokens) : 1;
    all += costs.total_microseconds() * times;
    measured += costs.measured_microseconds() * times;
    estimate.first_milliseconds += costs.total_microseconds() / 1000;
  }
  estimate.milliseconds = all / 1000;
  estimate.measured = all > 0 ? std::min(1.0, measured / all) : 0;
  const auto frames = [&](double milliseconds) {
    return static_cast<int64_t>(std::ceil(1000 * milliseconds / (kUsualFill * microseconds)));
  };
  estimate.first_frames = frames(estimate.first_milliseconds);
  estimate.frames = frames(estimate.milliseconds);
  return estimate;
}

Result<Advance> SessionState::advance(double microseconds, const SubmitSemaphores& semaphores) {
  VKF_CHECK(check_budget(microseconds));
  VKF_ASSIGN(const bool ready, going_on(microseconds, microseconds));
  if (ready) {
    VKF_ASSIGN(const Advance advance, sliced_.advance(microseconds, semaphores));
    return of_both(advance);
  }
  VKF_CHECK(sliced_.sync(semaphores));
  return preparing();
}

Result<Advance> SessionState::record(VkCommandBuffer_T* commands, double microseconds) {
  VKF_CHECK(check_budget(microseconds));
  // Who submits is the application, for which nobody can wait.
  VKF_ASSIGN(const bool ready, going_on(microseconds, 0));
  if (!ready) return preparing();
  if (two_ && !two_->second && !sliced_.timed()) {
    return unsupported(
        "[record] this device has no timestamps, without which nobody sees when the first of two "
        "passes has run; use advance");
  }
  VKF_ASSIGN(const Advance advance, sliced_.record(commands, microseconds));
  return of_both(advance);
}

Status SessionState::drop_recorded() {
  VKF_CHECK(check_prepared());
  return sliced_.drop_recorded();
}

Result<TensorMap> SessionState::finish() {
  VKF_CHECK(check_prepared());
  if (!two_) return sliced_.finish();
  if (!two_->second) {
    return invalid_argument(
        "[finish] the second of two passes is still to be submitted; call advance or record until "
        "the progress is kSubmitted or kDone, or cancel");
  }
  Result<TensorMap> more = sliced_.finish();
  // What was not submitted yet is still started.
  if (!more && !sliced_.check_idle()) return more;
  TensorMap outputs = std::move(two_->outputs);
  two_.reset();
  if (!more) return more;
  outputs.merge(*more);
  return outputs;
}

Result<Generation> SessionState::finish_generation() {
  VKF_CHECK(check_prepared());
  return sliced_.finish_generation();
}

Status SessionState::cancel() {
  awaited_.reset();
  two_.reset();
  forward_.give_up_some();
  steps_.give_up_some();
  images_.give_up_some();
  return sliced_.cancel();
}

Result<std::map<std::string, PassTensor>> SessionState::tensors() {
  VKF_CHECK(begun(kUntilDone));
  return sliced_.tensors();
}

Status SessionState::forget_buffers() {
  VKF_CHECK(check_idle());
  forward_.remove_if([](const ForwardPass& pass) { return !pass.key().places.empty(); });
  images_.remove_if([](const ImageInputs&) { return true; });
  return {};
}

}  // namespace vkformer
