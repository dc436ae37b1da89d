#include "generate/option_checks.h"

#include <cmath>

#include "base/message.h"
#include "generate/token_choice.h"
#include "params/decode_state.h"

namespace vkformer {
namespace {

// Why a family cannot evict keys.
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
               facts.max_target, " tokens; use no more than that"}));
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
  if (grouped && o.choice == TokenChoice::kSampled) {
    return unsupported(
        "[beam_groups] groups of beams and sampled tokens exclude each other; use one of "
        "them");
  }
  if (o.diversity >= 0 && o.diversity <= 1e9 && (grouped || o.diversity == 0)) return {};
  return invalid_argument(
      message({"[diversity] is ", o.diversity,
               ", but must lie between 0 and 1e9, and needs beam groups where it is not 0"}));
}

Status check_sequences(const GenerateOptions& o) {
  const bool drawn = o.beams == 1 && o.choice == TokenChoice::kSampled;
  const int most = drawn ? int{VKF_MAX_SLOTS} : o.beams;
  if (o.return_sequences >= 1 && o.return_sequences <= most) return {};
  return invalid_argument(message(
      {"[return_sequences] is ", o.return_sequences, ", but must lie between 1 and ",
       (drawn
            ? std::to_string(most)
            : "the number of beams, " + std::to_string(o.beams) + "; for more, draw the tokens")}));
}

}  // namespace

Status check_generate_options(const ModelFacts& facts, const GenerateOptions& o) {
  const int64_t vocab = facts.target_vocab;
  if (facts.kind == ModelKind::kEncoderDecoder) {
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
  return check_context(facts, o);
}

}  // namespace vkformer
