#include "session/session_state.h"

#include <algorithm>

#include "base/message.h"
#include "generate/continuation_scores.h"
#include "generate/contrastive_search.h"
#include "generate/option_checks.h"
#include "session/fitting.h"

namespace vkformer {
namespace {

constexpr auto kOff = ForwardTaps::Tap::kOff;

// The pass with that key moved to the front, or null.
template <class Pass, class Key>
std::shared_ptr<Pass> find_pass(std::list<std::shared_ptr<Pass>>& passes, const Key& key) {
  for (auto it = passes.begin(); it != passes.end(); ++it) {
    if (!((*it)->key() == key)) continue;
    passes.splice(passes.begin(), passes, it);
    return passes.front();
  }
  return nullptr;
}

template <class Pass>
std::shared_ptr<Pass> keep_pass(std::list<std::shared_ptr<Pass>>& passes,
                                std::unique_ptr<Pass> pass, int most) {
  passes.push_front(std::move(pass));
  while (passes.size() > static_cast<size_t>(most)) passes.pop_back();
  return passes.front();
}

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

bool out_of_memory(const Error& error) {
  return error.code == ErrorCode::kOutOfMemory;
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

Result<std::unique_ptr<SessionState>> SessionState::create(std::shared_ptr<const LoadedModel> model,
                                                           const SessionOptions& options) {
  if (options.recordings < 1 || options.steps_per_submit < 1) {
    return invalid_argument(
        message({"[session] recordings is ", options.recordings, " and steps_per_submit ",
                 options.steps_per_submit, ", but both must be at least 1"}));
  }
  return std::unique_ptr<SessionState>(new SessionState(std::move(model), options));
}

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

Result<std::shared_ptr<ForwardPass>> SessionState::forward_pass(const ForwardKey& key) {
  if (auto known = find_pass(forward_, key)) return known;
  auto pass = ForwardPass::create(model_, key);
  if (!pass && out_of_memory(pass.error()) &&
      give_way(forward_bytes(*model_, key.shape, key.taps))) {
    pass = ForwardPass::create(model_, key);
  }
  if (!pass) return forward_error(pass.error(), *model_, key.shape, key.taps);
  return keep_pass(forward_, std::move(pass).value(), options_.recordings);
}

Result<std::shared_ptr<DecodeStep>> SessionState::decode_step(const GenerationKey& key) {
  if (auto known = find_pass(steps_, key)) return known;
  constexpr auto kPrompt = DecodeStep::Prompt::kYes;
  auto step = DecodeStep::create(model_, key, kPrompt);
  if (!step && out_of_memory(step.error()) && give_way(generation_bytes(*model_, key))) {
    step = DecodeStep::create(model_, key, kPrompt);
  }
  if (!step) return generation_error(step.error(), *model_, key);
  ++counters_.recordings;
  return keep_pass(steps_, std::move(step).value(), options_.recordings);
}

Result<std::shared_ptr<ImageInputs>> SessionState::image_inputs(const ImageInputsKey& key) {
  if (auto known = find_pass(images_, key)) return known;
  VKF_ASSIGN(std::unique_ptr<ImageInputs> made, ImageInputs::create(model_->device(), key));
  return keep_pass(images_, std::move(made), options_.recordings);
}

Result<SessionState::Turn> SessionState::turn() {
  bool free = false;
  if (busy_.compare_exchange_strong(free, true, std::memory_order_acquire)) return Turn(busy_);
  return invalid_argument(
      "[session] another thread is inside this session; use one session for each thread, they can "
      "share a model");
}

Result<std::shared_ptr<ForwardPass>> SessionState::pass_for(
    const TensorMap& inputs, const RunOptions& options,
    const std::map<std::string, TensorPlace>& places, ForwardInputs& read,
    ForwardTaps::Tap last_logits) {
  VKF_CHECK(sliced_.check_idle());
  const ModelFacts& facts = model_->family().facts();
  VKF_CHECK(check_taps(facts, options));
  VKF_ASSIGN(read, read_forward_inputs(model_->family(), inputs, options.long_inputs));
  ForwardKey key{.shape = read.shape};
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
  return forward_pass(key);
}

Result<TensorMap> SessionState::run(const TensorMap& inputs, const RunOptions& options) {
  ForwardInputs read;
  VKF_ASSIGN(const std::shared_ptr<ForwardPass> pass, pass_for(inputs, options, {}, read, kOff));
  VKF_ASSIGN(TensorMap outputs, pass->run(read.words));
  VKF_CHECK(run_second(inputs, outputs));
  return outputs;
}

Status SessionState::run_second(const TensorMap& inputs, TensorMap& outputs) {
  const ModelFamily& family = model_->family();
  if (family.facts().passes == ModelFacts::Passes::kOne) return {};
  VKF_ASSIGN(const ForwardInputs read, family.second_inputs(inputs, outputs));
  const ForwardKey key{.shape = read.shape, .pass = ForwardKey::Pass::kSecond};
  VKF_ASSIGN(const std::shared_ptr<ForwardPass> pass, forward_pass(key));
  VKF_ASSIGN(TensorMap more, pass->run(read.words));
  outputs.merge(more);
  return {};
}

Result<TensorMap> SessionState::run_last(const TensorMap& inputs) {
  ForwardInputs read;
  VKF_ASSIGN(const std::shared_ptr<ForwardPass> pass,
             pass_for(inputs, {}, {}, read, ForwardTaps::Tap::kOn));
  return pass->run(read.words);
}

RunPass SessionState::passes() {
  return [this](const TensorMap& inputs) { return run(inputs, {}); };
}

StepForKey SessionState::steps() {
  return [this](const GenerationKey& key) { return decode_step(key); };
}

Status SessionState::begin_generation(const GenerateOptions& options) {
  VKF_CHECK(sliced_.check_idle());
  counters_ = {};
  return check_generate_options(model_->family().facts(), options);
}

Result<std::vector<GenerationJob>> SessionState::jobs_of(const TensorMap& inputs,
                                                         const GenerateOptions& options) {
  return plan_jobs(model_->family(), options_.cache, inputs, options, steps());
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
  VKF_ASSIGN(std::vector<GenerationJob> jobs, jobs_of(inputs, options));
  Generation result;
  for (GenerationJob& job : jobs) {
    VKF_ASSIGN(Generation generated, job.pass->run(job.inputs, options, job.new_tokens,
                                                   options_.steps_per_submit, counters_));
    scatter(generated, job.inputs.items, result);
  }
  return by_input(std::move(result), options);
}

Result<std::vector<std::vector<float>>> SessionState::score(
    const TensorMap& inputs, const std::vector<std::vector<int64_t>>& continuations) {
  VKF_CHECK(sliced_.check_idle());
  return score_continuations(model_->family(), inputs, continuations, passes());
}

Status SessionState::start(const TensorMap& inputs, const RunOptions& options,
                           const std::map<std::string, TensorPlace>& places) {
  const ModelFacts& facts = model_->family().facts();
  if (facts.passes == ModelFacts::Passes::kTwo) {
    return unsupported(message({"[start] a ", facts.architecture,
                                " runs two passes, of which the first says how large the second "
                                "one is; their slices are not planned, so use run."}));
  }
  VKF_CHECK(check_no_overlap(places));
  ForwardInputs read;
  VKF_ASSIGN(std::shared_ptr<ForwardPass> pass, pass_for(inputs, options, places, read, kOff));
  return sliced_.start_pass(std::move(pass), std::move(read.words), {}, {});
}

Status SessionState::start_on_images(TensorMap inputs, const RunOptions& options,
                                     std::map<std::string, TensorPlace> places,
                                     const std::vector<SourceImage>& images,
                                     const PictureSettings& settings) {
  VKF_CHECK(sliced_.check_idle());
  constexpr const char* kName = "pixel_values";
  if (inputs.count(kName) != 0 || places.count(kName) != 0) {
    return invalid_argument(
        "[pixel_values] are given beside the images that they are made of; leave one of them out");
  }
  VKF_ASSIGN(const ImageInputsKey key, image_inputs_key(images, settings));
  VKF_ASSIGN(const std::shared_ptr<ImageInputs> made, image_inputs(key));
  inputs[kName] = Tensor::zeros(DType::kF32, made->shape());
  places[kName] = made->place();
  VKF_CHECK(check_no_overlap(places));
  ForwardInputs read;
  VKF_ASSIGN(std::shared_ptr<ForwardPass> pass, pass_for(inputs, options, places, read, kOff));
  return sliced_.start_pass(std::move(pass), std::move(read.words), made, made->copies(images));
}

Status SessionState::start_generation(const TensorMap& inputs, const GenerateOptions& options) {
  if (options.contrastive_tokens != 0) {
    return unsupported(
        "[start_generation] every token of contrastive search is a pass of its own, whose slices "
        "nobody plans; use generate");
  }
  VKF_CHECK(begin_generation(options));
  VKF_ASSIGN(std::vector<GenerationJob> jobs, jobs_of(inputs, options));
  return sliced_.start_generation(std::move(jobs), options, options_.steps_per_submit, counters_);
}

Status SessionState::forget_buffers() {
  VKF_CHECK(sliced_.check_idle());
  forward_.remove_if([](const auto& pass) { return !pass->key().places.empty(); });
  images_.clear();
  return {};
}

}  // namespace vkformer
