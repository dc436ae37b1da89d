#include "session/session_state.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/message.h"
#include "generate/token_choice.h"
#include "params/decode_state.h"
#include "session/fitting.h"

namespace vkformer {
namespace {

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

// Why a family cannot forget keys.
Error no_context(const ModelFacts& facts, int context) {
  const std::string start =
      "[context] is " + std::to_string(context) + " keys, but a " + facts.architecture;
  if (facts.kind == ModelKind::kDecoder) {
    return unsupported(start +
                       " carries a state of constant size and keeps no keys that could give way; "
                       "leave context away");
  }
  return unsupported(
      message({start, " is no decoder alone: what its decoder keeps ends with the model's ",
               facts.max_target, " positions; leave context away"}));
}

Status check_context(const ModelFacts& facts, const GenerateOptions& o) {
  // An encoder generates nothing, which is said elsewhere.
  if (!o.context || facts.kind == ModelKind::kEncoder) return {};
  const int context = *o.context;
  if (facts.rolling == ModelFacts::Rolling::kNo) return no_context(facts, context);
  if (context < 1 || o.sinks < 0 || o.sinks >= context) {
    return invalid_argument(message({"[context] is ", context, " keys and sinks ", o.sinks,
                                     ", but the context must be at least 1 and the sinks lie "
                                     "between 0 and one less than the context"}));
  }
  if (context <= facts.max_target) return {};
  return invalid_argument(
      message({"[context] is ", context, " keys, but this model has positions for ",
               facts.max_target, " tokens; use at most so many"}));
}

bool out_of_memory(const Error& error) {
  return error.code == ErrorCode::kOutOfMemory;
}

Status check_token(const char* name, int64_t token, int64_t vocab) {
  if (token >= 0 && token < vocab) return {};
  return invalid_argument(
      message({"[", name, "] is ", token, ", but the vocabulary has ids 0 to ", vocab - 1}));
}

Status check_beams(const GenerateOptions& o) {
  if (o.beams < 1 || o.beams > VKF_MAX_BEAMS) {
    return invalid_argument(
        message({"[beams] is ", o.beams, ", but must lie between 1 and ", VKF_MAX_BEAMS,
                 ". Without a number of your own it is the model's (num_beams in "
                 "generation_config.json); set beams (--beams)."}));
  }
  if (o.beam_groups < 1 || o.beams % o.beam_groups != 0) {
    return invalid_argument(
        message({"[beam_groups] is ", o.beam_groups, ", but ", o.beams,
                 " beams must be divided evenly; use 1 to ", o.beams, " groups"}));
  }
  const bool grouped = o.beam_groups > 1;
  if (grouped && o.choice == TokenChoice::kDrawn) {
    return unsupported(
        "[beam_groups] groups of beams and tokens drawn by chance exclude each other; use one of "
        "them");
  }
  if (o.diversity >= 0 && o.diversity <= 1e9 && (grouped || o.diversity == 0)) return {};
  return invalid_argument(
      message({"[diversity] is ", o.diversity,
               ", but must lie between 0 and 1e9, and needs beam groups where it is not 0"}));
}

Status check_sequences(const GenerateOptions& o) {
  const bool drawn = o.beams == 1 && o.choice == TokenChoice::kDrawn;
  const int most = drawn ? int{VKF_MAX_SLOTS} : o.beams;
  if (o.return_sequences >= 1 && o.return_sequences <= most) return {};
  return invalid_argument(message(
      {"[return_sequences] is ", o.return_sequences, ", but must lie between 1 and ",
       (drawn
            ? std::to_string(most)
            : "the number of beams, " + std::to_string(o.beams) + "; for more, draw the tokens")}));
}

}  // namespace

Result<std::unique_ptr<SessionState>> SessionState::create(std::shared_ptr<const LoadedModel> model,
                                                           const SessionOptions& options) {
  if (options.recordings < 1 || options.steps_per_submit < 1) {
    return invalid_argument(
        message({"[session] recordings is ", options.recordings, " and steps_per_submit ",
                 options.steps_per_submit, ", but both must be at least 1"}));
  }
  VKF_CHECK(cache_format_from(options.cache));
  return std::unique_ptr<SessionState>(new SessionState(std::move(model), options));
}

// Recordings of other shapes are kept for speed only: they go where a pass may then fit. Says
// whether there were any.
bool SessionState::give_way(const Result<uint64_t>& wanted_bytes) {
  if (!wanted_bytes.ok() || !fits_alone(*model_, *wanted_bytes)) return false;
  const bool any =
      !forward_.empty() || !generation_.empty() || !images_.empty() || kept_.batch != nullptr;
  forward_.clear();
  generation_.clear();
  images_.clear();
  kept_ = {};
  return any;
}

Result<std::shared_ptr<ForwardPass>> SessionState::forward_pass(const ForwardKey& key) {
  if (auto known = find_pass(forward_, key)) return known;
  const auto profile = options_.profile == SessionOptions::Profile::kOn
                           ? RecordingInputs::Profile::kOn
                           : RecordingInputs::Profile::kOff;
  auto pass = ForwardPass::create(model_, key, profile);
  if (!pass && out_of_memory(pass.error()) &&
      give_way(forward_bytes(*model_, key.shape, key.taps))) {
    pass = ForwardPass::create(model_, key, profile);
  }
  if (!pass) return forward_error(pass.error(), *model_, key.shape, key.taps);
  return keep_pass(forward_, std::move(pass).value(), options_.recordings);
}

Result<std::shared_ptr<GenerationPass>> SessionState::generation_pass(const GenerationKey& key) {
  if (auto known = find_pass(generation_, key)) return known;
  auto pass = GenerationPass::create(model_, key);
  if (!pass && out_of_memory(pass.error()) && give_way(generation_bytes(*model_, key))) {
    pass = GenerationPass::create(model_, key);
  }
  if (!pass) return generation_error(pass.error(), *model_, key);
  ++counters_.recordings;
  return keep_pass(generation_, std::move(pass).value(), options_.recordings);
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
    const std::map<std::string, TensorPlace>& places, ForwardInputs& read) {
  VKF_CHECK(check_idle());
  const ModelFacts& facts = model_->family().facts();
  VKF_CHECK(check_taps(facts, options));
  VKF_ASSIGN(read, read_forward_inputs(model_->family(), inputs, options.long_inputs));
  ForwardKey key{.shape = read.shape};
  key.places = places;
  VKF_ASSIGN(key.attention, attention_request(options));
  if (options.attentions == RunOptions::Attentions::kOn ||
      options.entropy == RunOptions::Entropy::kOn) {
    key.taps.attentions = ForwardTaps::Tap::kOn;
  }
  if (options.hidden_states == RunOptions::HiddenStates::kOn)
    key.taps.hidden_states = ForwardTaps::Tap::kOn;
  key.taps.attention_layer = options.attention_layer;
  key.taps.attention_head = options.attention_head;
  if (options.attention_values == RunOptions::AttentionValues::kScores)
    key.taps.raw_scores = ForwardTaps::Tap::kOn;
  key.taps.decoder_mask = read.decoder_mask;
  key.taps.positions = read.positions;
  return forward_pass(key);
}

Result<TensorMap> SessionState::run(const TensorMap& inputs, const RunOptions& options) {
  ForwardInputs read;
  VKF_ASSIGN(const std::shared_ptr<ForwardPass> pass, pass_for(inputs, options, {}, read));
  return pass->run(read.words);
}

Status SessionState::check_generate(const GenerateOptions& o) const {
  const int64_t vocab = model_->family().facts().target_vocab;
  if (model_->family().facts().kind == ModelKind::kEncoderDecoder) {
    VKF_CHECK(check_token("decoder_start", o.decoder_start, vocab));
  }
  for (int64_t token : o.decoder_prompt) VKF_CHECK(check_token("decoder_prompt", token, vocab));
  if (o.forced_bos >= 0) VKF_CHECK(check_token("forced_bos", o.forced_bos, vocab));
  if (o.forced_eos >= 0) VKF_CHECK(check_token("forced_eos", o.forced_eos, vocab));
  for (int64_t eos : o.eos) VKF_CHECK(check_token("eos", eos, vocab));
  VKF_CHECK(check_beams(o));
  if (o.eos.size() > VKF_MAX_EOS) {
    return invalid_argument(message(
        {"[eos] has ", o.eos.size(), " tokens, but at most ", VKF_MAX_EOS, " are supported"}));
  }
  VKF_CHECK(check_sequences(o));
  VKF_CHECK(check_choice(o, vocab));
  if (o.max_new_tokens < 0 || o.min_new_tokens < 0 || !std::isfinite(o.length_penalty)) {
    return invalid_argument(
        "[generate] max_new_tokens and min_new_tokens must not be negative and length_penalty must "
        "be finite");
  }
  return check_context(model_->family().facts(), o);
}

Result<std::vector<SessionState::GenerationJob>> SessionState::plan_generation(
    const TensorMap& inputs, const GenerateOptions& options) {
  VKF_CHECK(check_idle());
  counters_ = {};
  VKF_CHECK(check_generate(options));
  GenerationKey key;
  key.shape.beams = options.beams / options.beam_groups;
  VKF_ASSIGN(key.shape.cache, cache_format_from(options_.cache));
  VKF_ASSIGN(GenerationInputs read,
             read_generation_inputs(model_->family(), inputs, options, key.shape));
  if (key.shape.batch * key.shape.beams > VKF_MAX_SLOTS) {
    return invalid_argument(message({"[generate] ", key.shape.batch, " inputs with ",
                                     key.shape.beams, " beams are more than the ", VKF_MAX_SLOTS,
                                     " rows that can run together; use smaller batches"}));
  }
  const bool exact = model_->family().facts().prompts == ModelFacts::Prompts::kExact;
  std::map<size_t, std::vector<size_t>> groups;  // by the length of their prompts; 0: any
  for (size_t i = 0; i < read.prompts.size(); ++i) {
    const size_t length = read.prompts[i].size();
    const bool apart = exact || (options.context && length > static_cast<size_t>(*options.context));
    groups[apart ? length : 0].push_back(i);
  }
  std::vector<GenerationJob> jobs;
  for (auto& [length, items] : groups) {
    GenerationInputs part;
    for (size_t i : items) part.prompts.push_back(read.prompts[i]);
    part.items = items;
    // Those of a decoder behind an encoder are all as long, and its words stay together.
    if (groups.size() == 1) part.words = std::move(read.words);
    key.shape.batch = static_cast<int64_t>(items.size());
    VKF_ASSIGN(GenerationJob job, plan_job(std::move(part), key, options));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<SessionState::GenerationJob> SessionState::plan_job(GenerationInputs read, GenerationKey key,
                                                           const GenerateOptions& options) {
  VKF_ASSIGN(const GenerationSizes sizes,
             generation_sizes(model_->family().facts(), read.longest(), key, options));
  GenerationJob job{.inputs = std::move(read), .new_tokens = sizes.new_tokens};
  VKF_ASSIGN(job.pass, generation_pass(sizes.key));
  return job;
}

Result<Generation> SessionState::generate(const TensorMap& inputs, const GenerateOptions& options) {
  if (options.contrastive_tokens != 0) {
    VKF_CHECK(check_idle());
    counters_ = {};
    VKF_CHECK(check_generate(options));
    return generate_contrastive(inputs, options);
  }
  if (keeps_texts(options)) {
    VKF_CHECK(check_idle());
    counters_ = {};
    VKF_CHECK(check_generate(options));
    return generate_kept(inputs, options);
  }
  VKF_ASSIGN(std::vector<GenerationJob> jobs, plan_generation(inputs, options));
  Generation result;
  for (GenerationJob& job : jobs) {
    VKF_ASSIGN(Generation generated, job.pass->run(job.inputs, options, job.new_tokens,
                                                   options_.steps_per_submit, counters_));
    scatter(generated, job.inputs.items, result);
  }
  return by_input(std::move(result), options);
}

std::vector<DispatchTime> SessionState::last_profile() const {
  return forward_.empty() ? std::vector<DispatchTime>() : forward_.front()->profile();
}

}  // namespace vkformer
