#include "session/session_state.h"

#include <algorithm>
#include <cmath>

#include "params/decode_state.h"

namespace vkformer {
namespace {

// Encoder lengths and cache capacities are rounded up, so that near sizes share a recording;
// masked keys add exact zeros, so results do not change.
constexpr int64_t kSourceBucket = 16;  // tokens
constexpr int64_t kTargetBucket = 32;  // tokens

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// The pass with that key moved to the front, or null.
template <class Pass, class Key>
Pass* find_pass(std::list<std::unique_ptr<Pass>>& passes, const Key& key) {
  for (auto it = passes.begin(); it != passes.end(); ++it) {
    if (!((*it)->key() == key)) continue;
    passes.splice(passes.begin(), passes, it);
    return passes.front().get();
  }
  return nullptr;
}

template <class Pass>
Pass* keep_pass(std::list<std::unique_ptr<Pass>>& passes, std::unique_ptr<Pass> pass, int most) {
  passes.push_front(std::move(pass));
  while (passes.size() > static_cast<size_t>(most)) passes.pop_back();
  return passes.front().get();
}

// A layer and head that every attention asked for has.
Status check_taps(const ModelFacts& facts, const RunOptions& options) {
  const int64_t layers = std::max(facts.encoder_layers, facts.decoder_layers);
  const int64_t heads = std::min(facts.encoder_heads, facts.decoder_heads);
  if (options.attention_layer >= -1 && options.attention_layer < layers &&
      options.attention_head >= -1 && options.attention_head < heads) {
    return {};
  }
  return invalid_argument("[attentions] layer " + std::to_string(options.attention_layer) +
                          " and head " + std::to_string(options.attention_head) +
                          " were asked for, but there are " + std::to_string(layers) +
                          " layers and " + std::to_string(heads) + " heads, counted from 0");
}

Status check_token(const char* name, int64_t token, int64_t vocab) {
  if (token >= 0 && token < vocab) return {};
  return invalid_argument("[" + std::string(name) + "] is " + std::to_string(token) +
                          ", but the vocabulary has ids 0 to " + std::to_string(vocab - 1));
}

}  // namespace

Result<std::unique_ptr<SessionState>> SessionState::create(std::shared_ptr<const LoadedModel> model,
                                                           const SessionOptions& options) {
  if (options.recordings < 1 || options.steps_per_submit < 1) {
    return invalid_argument("[session] recordings is " + std::to_string(options.recordings) +
                            " and steps_per_submit " + std::to_string(options.steps_per_submit) +
                            ", but both must be at least 1");
  }
  return std::unique_ptr<SessionState>(new SessionState(std::move(model), options));
}

Result<ForwardPass*> SessionState::forward_pass(const ForwardKey& key) {
  if (ForwardPass* known = find_pass(forward_, key)) return known;
  const auto profile = options_.profile == SessionOptions::Profile::kOn
                           ? RecordingInputs::Profile::kOn
                           : RecordingInputs::Profile::kOff;
  VKF_ASSIGN(std::unique_ptr<ForwardPass> pass, ForwardPass::create(model_, key, profile));
  return keep_pass(forward_, std::move(pass), options_.recordings);
}

Result<GenerationPass*> SessionState::generation_pass(const GenerationKey& key) {
  if (GenerationPass* known = find_pass(generation_, key)) return known;
  VKF_ASSIGN(std::unique_ptr<GenerationPass> pass, GenerationPass::create(model_, key));
  ++counters_.recordings;
  return keep_pass(generation_, std::move(pass), options_.recordings);
}

Result<TensorMap> SessionState::run(const TensorMap& inputs, const RunOptions& options) {
  const ModelFacts& facts = model_->family().facts();
  VKF_ASSIGN(TokenRows source, token_rows(inputs, "input_ids", "attention_mask",
                                          {facts.source_vocab, facts.max_source}));
  ForwardKey key{.shape = {.batch = source.batch, .source = source.tokens}};
  if (options.attentions == RunOptions::Attentions::kOn)
    key.taps.attentions = ForwardTaps::Tap::kOn;
  if (options.hidden_states == RunOptions::HiddenStates::kOn)
    key.taps.hidden_states = ForwardTaps::Tap::kOn;
  VKF_CHECK(check_taps(facts, options));
  key.taps.attention_layer = options.attention_layer;
  key.taps.attention_head = options.attention_head;
  if (options.attention_values == RunOptions::AttentionValues::kScores)
    key.taps.raw_scores = ForwardTaps::Tap::kOn;
  const bool has_target = inputs.count("decoder_input_ids") != 0;
  TokenRows target;
  if (has_target) {
    VKF_ASSIGN(target, token_rows(inputs, "decoder_input_ids", "decoder_attention_mask",
                                  {facts.target_vocab, facts.max_target}));
    if (target.batch != source.batch) {
      return invalid_argument("[decoder_input_ids] has " + std::to_string(target.batch) +
                              " rows, but input_ids has " + std::to_string(source.batch));
    }
    key.shape.target = target.tokens;
    if (target.masked) key.taps.decoder_mask = ForwardTaps::Tap::kOn;
  }
  VKF_ASSIGN(ForwardPass * pass, forward_pass(key));
  return pass->run(source, has_target ? &target : nullptr);
}

GenerateOptions SessionState::generation_defaults() const {
  const GenerationFacts& g = model_->family().generation();
  GenerateOptions o;
  o.beams = static_cast<int>(std::clamp<int64_t>(g.beams, 1, VKF_MAX_BEAMS));
  o.max_new_tokens = static_cast<int>(std::clamp<int64_t>(g.max_new_tokens, 0, 1 << 20));
  o.min_new_tokens = static_cast<int>(std::clamp<int64_t>(g.min_new_tokens, 0, 1 << 20));
  o.length_penalty = g.length_penalty;
  o.early_stopping = g.early_stopping;
  o.eos = g.eos;
  o.pad = g.pad;
  o.decoder_start = g.decoder_start;
  o.forced_bos = g.forced_bos.value_or(-1);
  o.forced_eos = g.forced_eos.value_or(-1);
  o.suppress = g.suppress;
  o.begin_suppress = g.begin_suppress;
  return o;
}

Status SessionState::check_generate(const GenerateOptions& o, int64_t batch) const {
  const int64_t vocab = model_->family().facts().target_vocab;
  VKF_CHECK(check_token("decoder_start", o.decoder_start, vocab));
  if (o.forced_bos >= 0) VKF_CHECK(check_token("forced_bos", o.forced_bos, vocab));
  if (o.forced_eos >= 0) VKF_CHECK(check_token("forced_eos", o.forced_eos, vocab));
  for (int64_t eos : o.eos) VKF_CHECK(check_token("eos", eos, vocab));
  if (o.beams < 1 || o.beams > VKF_MAX_BEAMS) {
    return invalid_argument("[beams] is " + std::to_string(o.beams) +
                            ", but must lie between 1 and " + std::to_string(VKF_MAX_BEAMS));
  }
  if (o.eos.size() > VKF_MAX_EOS) {
    return invalid_argument("[eos] has " + std::to_string(o.eos.size()) + " tokens, but at most " +
                            std::to_string(VKF_MAX_EOS) + " are supported");
  }
  if (o.return_sequences < 1 || o.return_sequences > o.beams) {
    return invalid_argument("[return_sequences] is " + std::to_string(o.return_sequences) +
                            ", but must lie between 1 and the number of beams, " +
                            std::to_string(o.beams));
  }
  if (o.max_new_tokens < 0 || o.min_new_tokens < 0 || !std::isfinite(o.length_penalty)) {
    return invalid_argument(
        "[generate] max_new_tokens and min_new_tokens must not be negative and length_penalty must "
        "be finite");
  }
  if (batch * o.beams > VKF_MAX_SLOTS) {
    return invalid_argument("[generate] " + std::to_string(batch) + " inputs with " +
                            std::to_string(o.beams) + " beams are more than the " +
                            std::to_string(VKF_MAX_SLOTS) +
                            " rows that can run together; use smaller batches");
  }
  return {};
}

Result<Generation> SessionState::generate(const TensorMap& inputs, const GenerateOptions& options) {
  const ModelFacts& facts = model_->family().facts();
  counters_ = {};
  VKF_ASSIGN(TokenRows source, token_rows(inputs, "input_ids", "attention_mask",
                                          {facts.source_vocab, facts.max_source}));
  VKF_CHECK(check_generate(options, source.batch));
  const int64_t room = facts.max_target - 1;
  if (options.max_new_tokens > room) {
    return invalid_argument("[max_new_tokens] is " + std::to_string(options.max_new_tokens) +
                            ", but this model has positions for at most " + std::to_string(room));
  }
  const int64_t new_tokens = options.max_new_tokens == 0 ? room : options.max_new_tokens;
  GenerationKey key;
  key.shape = {.batch = source.batch,
               .beams = options.beams,
               .source = std::min(round_up(source.tokens, kSourceBucket), facts.max_source),
               .capacity = std::min(round_up(1 + new_tokens, kTargetBucket), facts.max_target)};
  if (options.beams > 1) {
    const auto eos = static_cast<uint32_t>(options.eos.size());
    key.candidates = std::max(2u, 1 + eos) * static_cast<uint32_t>(options.beams);
  }
  VKF_ASSIGN(GenerationPass * pass, generation_pass(key));
  return pass->run(source.padded(key.shape.source), options, 1 + new_tokens,
                   options_.steps_per_submit, counters_);
}

std::vector<DispatchTime> SessionState::last_profile() const {
  return forward_.empty() ? std::vector<DispatchTime>() : forward_.front()->profile();
}

}  // namespace vkformer
