#include "vkformer/session.h"
#include "c_api/support.h"

struct vkf_generation {
  vkformer::Generation rows;
};

namespace vkformer {

SessionOptions session_options(const vkf_session_options* options) {
  const vkf_session_options given = read_struct(options, "session options");
  SessionOptions made;
  if (given.recordings != 0) made.recordings = given.recordings;
  if (given.steps_per_submit != 0) made.steps_per_submit = given.steps_per_submit;
  made.cache = choice_or(given.cache, CacheFormat::kF32);
  made.prefix_reuse = given.prefix_reuse != 0;
  made.round_lengths = given.round_lengths != 0;
  return made;
}

namespace {

constexpr uint32_t kRunBits = VKF_RUN_ATTENTIONS | VKF_RUN_SCORES | VKF_RUN_ENTROPY |
                              VKF_RUN_HIDDEN_STATES | VKF_RUN_ATTENTION_LAYER |
                              VKF_RUN_ATTENTION_HEAD | VKF_RUN_CLAMP_POSITIONS;
constexpr uint32_t kGenerateBits = 2 * VKF_SET_BAD_WORDS - 1;
constexpr uint32_t kChoiceBits = 2 * VKF_CHOICE_CONTRAST - 1;

}  // namespace

RunOptions run_options(const vkf_run_options* options) {
  const vkf_run_options given = read_struct(options, "run options");
  check_bits(given.flags, kRunBits, "flags");
  const auto has = [&](uint32_t bit) { return (given.flags & bit) != 0; };
  RunOptions made;
  made.attentions = has(VKF_RUN_ATTENTIONS);
  if (has(VKF_RUN_SCORES)) made.attention_values = RunOptions::AttentionValues::kScores;
  made.entropy = has(VKF_RUN_ENTROPY);
  made.hidden_states = has(VKF_RUN_HIDDEN_STATES);
  if (has(VKF_RUN_ATTENTION_LAYER)) made.attention_layer = given.attention_layer;
  if (has(VKF_RUN_ATTENTION_HEAD)) made.attention_head = given.attention_head;
  if (has(VKF_RUN_CLAMP_POSITIONS)) made.long_inputs = RunOptions::LongInputs::kClamp;
  if (given.temperature != 0) made.temperature = given.temperature;
  return made;
}

std::vector<TokenId> read_ids(const vkf_ids& given, const char* name) {
  if (given.count == 0) return std::vector<TokenId>();
  need(given.ids, name);
  return std::vector<TokenId>(given.ids, given.ids + given.count);
}

vkf_ids view_ids(const std::vector<int64_t>& ids) {
  return {ids.data(), ids.size()};
}

TokenVerdict read_verdict(vkf_verdict verdict) {
  if (verdict == VKF_GO_ON) return TokenVerdict::kGoOn;
  return verdict == VKF_END_TEXT ? TokenVerdict::kEnd : TokenVerdict::kCancel;
}

vkf_choice_options choice_options(const vkf_choice_options* options) {
  const vkf_choice_options given = read_struct(options, "choice options");
  check_bits(given.set, kChoiceBits, "set");
  return given;
}

namespace {

void set_choice(const vkf_choice_options& c, GenerateOptions& made) {
  const auto set = [&](uint32_t bit, auto& to, auto value) {
    if ((c.set & bit) != 0) to = value;
  };
  SamplingOptions& s = made.sampling;
  PenaltyOptions& p = made.penalties;
  set(VKF_CHOICE_SAMPLE, made.choice, c.sample != 0 ? TokenChoice::kSampled : TokenChoice::kBest);
  set(VKF_CHOICE_TEMPERATURE, s.temperature, c.temperature);
  set(VKF_CHOICE_TOP_K, s.top_k, c.top_k);
  set(VKF_CHOICE_TOP_P, s.top_p, c.top_p);
  set(VKF_CHOICE_MIN_P, s.min_p, c.min_p);
  set(VKF_CHOICE_TYPICAL_P, s.typical_p, c.typical_p);
  set(VKF_CHOICE_SEED, s.seed, c.seed);
  set(VKF_CHOICE_REPETITION, p.repetition, c.repetition_penalty);
  set(VKF_CHOICE_PRESENCE, p.presence, c.presence_penalty);
  set(VKF_CHOICE_FREQUENCY, p.frequency, c.frequency_penalty);
  set(VKF_CHOICE_NO_REPEAT, p.no_repeat_ngram, c.no_repeat_ngram);
  set(VKF_CHOICE_BEAM_GROUPS, made.beam_groups, c.beam_groups);
  set(VKF_CHOICE_DIVERSITY, made.diversity, c.diversity);
  set(VKF_CHOICE_CONTRASTIVE, made.contrastive_tokens, c.contrastive_tokens);
  set(VKF_CHOICE_CONTRAST, made.contrast, c.contrast);
}

// Words, and what follows the tokens.
void set_rules(const vkf_generate_options& given, GenerateOptions& made) {
  if ((given.set & VKF_SET_BIASES) != 0) {
    if (given.bias_count != 0) need(given.biases, "biases");
    made.penalties.biases.clear();
    for (size_t i = 0; i < given.bias_count; ++i) {
      made.penalties.biases.push_back(
          {read_ids(given.biases[i].tokens, "tokens of a bias"), given.biases[i].bias});
    }
  }
  if ((given.set & VKF_SET_BAD_WORDS) != 0) {
    if (given.bad_word_count != 0) need(given.bad_words, "bad_words");
    made.penalties.bad_words.clear();
    for (size_t i = 0; i < given.bad_word_count; ++i)
      made.penalties.bad_words.push_back(read_ids(given.bad_words[i], "tokens of a bad word"));
  }
  for (size_t i = 0; i < given.adapter_count; ++i) {
    need(given.adapters, "adapters");
    need(given.adapters[i], "adapters");
    made.adapters.push_back({given.adapters[i]});
    if (given.adapter_scales != nullptr) made.adapters.back().scale = given.adapter_scales[i];
  }
  if (given.constraint != nullptr) made.grammar = given.constraint->constraint;
  if (given.on_token == nullptr) return;
  made.on_token = [on_token = given.on_token, user = given.on_token_user](const NewToken& t) {
    return read_verdict(on_token(user, t.input, t.sequence, t.id, t.log_probability));
  };
}

// Sets the tokens among the settings.
void set_tokens(const vkf_generate_options& given, GenerateOptions& made) {
  const auto has = [&](uint32_t bit) { return (given.set & bit) != 0; };
  if (has(VKF_SET_EOS)) {
    made.eos = read_ids(given.eos, "eos");
  }
  if (has(VKF_SET_PAD)) made.pad = given.pad;
  if (has(VKF_SET_DECODER_START)) made.decoder_start = given.decoder_start;
  if (has(VKF_SET_DECODER_PROMPT)) {
    made.decoder_prompt = read_ids(given.decoder_prompt, "decoder_prompt");
  }
  if (has(VKF_SET_FORCED_BOS)) made.forced_bos = given.forced_bos;
  if (has(VKF_SET_FORCED_EOS)) made.forced_eos = given.forced_eos;
  if (has(VKF_SET_SUPPRESS)) {
    made.suppress = read_ids(given.suppress, "suppress");
  }
  if (has(VKF_SET_BEGIN_SUPPRESS)) {
    made.begin_suppress = read_ids(given.begin_suppress, "begin_suppress");
  }
}

}  // namespace

GenerateOptions generate_options(GenerateOptions made, const vkf_generate_options* options) {
  const vkf_generate_options given = read_struct(options, "generate options");
  check_bits(given.set, kGenerateBits, "set");
  const auto has = [&](uint32_t bit) { return (given.set & bit) != 0; };
  if (has(VKF_SET_BEAMS)) made.beams = given.beams;
  if (has(VKF_SET_MAX_NEW_TOKENS)) made.max_new_tokens = given.max_new_tokens;
  if (has(VKF_SET_MIN_NEW_TOKENS)) made.min_new_tokens = given.min_new_tokens;
  if (has(VKF_SET_RETURN_SEQUENCES)) made.return_sequences = given.return_sequences;
  if (has(VKF_SET_LENGTH_PENALTY)) made.length_penalty = given.length_penalty;
  if (has(VKF_SET_EARLY_STOPPING)) {
    made.early_stopping = take(choice_from_name<EarlyStopping>(text_or(given.early_stopping, "")));
  }
  if (has(VKF_SET_CONTEXT)) made.context = given.context;
  if (has(VKF_SET_SINKS)) made.sinks = given.sinks;
  set_tokens(given, made);
  set_choice(choice_options(given.choice), made);
  set_rules(given, made);
  return made;
}

namespace {

vkf_choice_options view_choice(const GenerateOptions& from) {
  vkf_choice_options c{};
  c.struct_size = sizeof c;
  c.set = kChoiceBits;
  c.sample = from.choice == TokenChoice::kSampled ? 1 : 0;
  c.top_k = from.sampling.top_k;
  c.temperature = from.sampling.temperature;
  c.top_p = from.sampling.top_p;
  c.min_p = from.sampling.min_p;
  c.typical_p = from.sampling.typical_p;
  c.seed = from.sampling.seed;
  c.repetition_penalty = from.penalties.repetition;
  c.presence_penalty = from.penalties.presence;
  c.frequency_penalty = from.penalties.frequency;
  c.no_repeat_ngram = from.penalties.no_repeat_ngram;
  c.beam_groups = from.beam_groups;
  c.diversity = from.diversity;
  c.contrastive_tokens = from.contrastive_tokens;
  c.contrast = from.contrast;
  return c;
}

// Into session.defaults, and what C needs of it.
vkf_generate_options view_options(vkf_session& session) {
  const GenerateOptions& from = session.defaults;
  session.choice = view_choice(from);
  session.biases.clear();
  for (const TokenBias& bias : from.penalties.biases)
    session.biases.push_back({view_ids(bias.tokens), bias.bias});
  session.bad_words.clear();
  for (const auto& word : from.penalties.bad_words) session.bad_words.push_back(view_ids(word));
  vkf_generate_options c{};
  c.choice = &session.choice;
  c.biases = session.biases.data();
  c.bias_count = session.biases.size();
  c.bad_words = session.bad_words.data();
  c.bad_word_count = session.bad_words.size();
  c.set = kGenerateBits;
  if (!from.context) c.set &= ~uint32_t{VKF_SET_CONTEXT};
  c.beams = from.beams;
  c.max_new_tokens = from.max_new_tokens;
  c.min_new_tokens = from.min_new_tokens;
  c.return_sequences = from.return_sequences;
  c.length_penalty = from.length_penalty;
  c.early_stopping = choice_name(from.early_stopping);
  c.eos = view_ids(from.eos);
  c.pad = from.pad;
  c.decoder_start = from.decoder_start;
  c.decoder_prompt = view_ids(from.decoder_prompt);
  c.forced_bos = from.forced_bos;
  c.forced_eos = from.forced_eos;
  c.suppress = view_ids(from.suppress);
  c.begin_suppress = view_ids(from.begin_suppress);
  c.context = from.context.value_or(0);
  c.sinks = from.sinks;
  return c;
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_session_create(const vkf_model* model, const vkf_session_options* options,
                              vkf_session** session, vkf_error* error) {
  return make_handle(session, error, [&] {
    need(model, "model");
    const SessionOptions read = session_options(options);
    Session made = take(Session::create(model->model, read));
    return handle(vkf_session{std::move(made)});
  });
}

void vkf_session_free(vkf_session* session) {
  delete session;
}

vkf_status vkf_session_run(vkf_session* session, const vkf_tensors* inputs,
                           const vkf_run_options* options, vkf_tensors** outputs,
                           vkf_error* error) {
  return make_handle(outputs, error, [&] {
    need_all({{session, "session"}, {inputs, "inputs"}});
    const RunOptions read = run_options(options);
    TensorMap made = take(session->session.run(inputs->map, read));
    return tensors_of(std::move(made));
  });
}

vkf_status vkf_session_generation_defaults(vkf_session* session, vkf_generate_options* options,
                                           vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    session->defaults = session->session.generation_defaults();
    return write_struct(options, view_options(*session), "generate options");
  });
}

vkf_status vkf_session_generate(vkf_session* session, const vkf_ids* rows, size_t count,
                                const vkf_generate_options* options, vkf_generation** generation,
                                vkf_error* error) {
  return make_handle(generation, error, [&] {
    need(session, "session");
    if (count != 0) need(rows, "rows");
    std::vector<std::vector<TokenId>> inputs(count);
    for (size_t i = 0; i < count; ++i) {
      inputs[i] = read_ids(rows[i], "ids of a row");
    }
    const GenerateOptions read = generate_options(session->session.generation_defaults(), options);
    Generation made = take(session->session.generate(inputs, read));
    return handle(vkf_generation{std::move(made)});
  });
}

vkf_status vkf_session_generate_from(vkf_session* session, const vkf_tensors* inputs,
                                     const vkf_generate_options* options,
                                     vkf_generation** generation, vkf_error* error) {
  return make_handle(generation, error, [&] {
    need_all({{session, "session"}, {inputs, "inputs"}});
    const GenerateOptions read = generate_options(session->session.generation_defaults(), options);
    Generation made = take(session->session.generate_masked(inputs->map, read));
    return handle(vkf_generation{std::move(made)});
  });
}

vkf_status vkf_session_start_generation(vkf_session* session, const vkf_tensors* inputs,
                                        const vkf_generate_options* options, vkf_error* error) {
  return guard(error, [&] {
    need_all({{session, "session"}, {inputs, "inputs"}});
    const GenerateOptions read = generate_options(session->session.generation_defaults(), options);
    take(session->session.start_generation(inputs->map, read));
  });
}

vkf_status vkf_session_finish_generation(vkf_session* session, vkf_generation** generation,
                                         vkf_error* error) {
  return make_handle(generation, error, [&] {
    need(session, "session");
    return handle(vkf_generation{take(session->session.finish_generation())});
  });
}

vkf_status vkf_session_score(vkf_session* session, const vkf_ids* input,
                             const vkf_ids* continuation, vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [&] {
    need_all({{session, "session"}, {input, "input"}, {continuation, "continuation"}});
    const auto scores = take(session->session.score({read_ids(*input, "ids of the input")},
                                                    {read_ids(*continuation, "a continuation")}));
    const auto tokens = static_cast<int64_t>(scores[0].size());
    return one_tensor("log_probabilities", Tensor::from_floats({tokens}, scores[0]));
  });
}

vkf_status vkf_session_counters(vkf_session* session, vkf_generation_counters* counters,
                                vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    const GenerationCounters& from = session->session.counters();
    vkf_generation_counters c{};
    c.steps = from.steps;
    c.submits = from.submits;
    c.recordings = from.recordings;
    c.cache_bytes = from.cache_bytes;
    c.reused_tokens = from.reused_tokens;
    c.step_workgroups = view_ids(from.step_workgroups);
    return write_struct(counters, c, "counters");
  });
}

size_t vkf_generation_inputs(const vkf_generation* generation) {
  return generation != nullptr ? generation->rows.size() : 0;
}

size_t vkf_generation_count(const vkf_generation* generation, size_t input) {
  if (generation == nullptr || input >= generation->rows.size()) return 0;
  return generation->rows[input].size();
}

vkf_status vkf_generation_get(const vkf_generation* generation, size_t input, size_t index,
                              vkf_sequence* sequence, vkf_error* error) {
  return guard(error, [&] {
    need(generation, "generation");
    check_index(input, generation->rows.size(), "input");
    check_index(index, generation->rows[input].size(), "sequence");
    const Hypothesis& from = generation->rows[input][index];
    vkf_sequence c{};
    c.ids = view_ids(from.ids);
    c.score = from.score;
    c.log_probabilities = from.log_probabilities.data();
    c.log_probability_count = from.log_probabilities.size();
    return write_struct(sequence, c, "sequence");
  });
}

void vkf_generation_free(vkf_generation* generation) {
  delete generation;
}
