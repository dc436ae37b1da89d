#include "text_job.h"

#include <algorithm>

namespace vkf_godot {
namespace {

// New tokens of a decoder where neither the node nor the model says how many.
constexpr int kUsualTokens = 256;

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> found;
  for (const std::string& text : texts) found.push_back(text.c_str());
  return found;
}

}  // namespace

std::string encode(const LoadedModel& model, const std::string& text, uint32_t flags,
                   std::vector<int64_t>& ids) {
  if (model.tokenizer() == nullptr) {
    return "[" + model.name() +
           "] has no tokenizer.json; the plugin reads texts with that file only.";
  }
  Error error;
  auto options = sized<vkf_encode_options>();
  options.flags = flags;
  const char* const texts[] = {text.c_str()};
  Encodings encodings;
  auto encoding = sized<vkf_encoding>();
  if (vkf_tokenizer_encode(model.tokenizer(), texts, 1, &options, made(encodings), error) !=
      VKF_OK) {
    return error.message();
  }
  if (vkf_encodings_get(encodings.get(), 0, &encoding, error) != VKF_OK) return error.message();
  ids.assign(encoding.ids, encoding.ids + encoding.count);
  return "";
}

TextJob::TextJob(std::string prompt, TextSettings settings, bool has_special_tokens)
    : prompt_(std::move(prompt)),
      settings_(std::move(settings)),
      has_special_tokens_(has_special_tokens) {}

std::string TextJob::set_ids(Tensors& inputs, const char* name, const std::vector<int64_t>& ids) {
  Error error;
  if (!inputs && vkf_tensors_create(made(inputs), error) != VKF_OK) return error.message();
  const int64_t shape[] = {1, static_cast<int64_t>(ids.size())};
  auto tensor = sized<vkf_tensor>();
  tensor.dtype = VKF_I64;
  tensor.shape = shape;
  tensor.rank = 2;
  tensor.data = ids.data();
  tensor.bytes = ids.size() * sizeof(int64_t);
  if (vkf_tensors_set(inputs.get(), name, &tensor, error) != VKF_OK) return error.message();
  return "";
}

std::string TextJob::make_inputs() {
  if (prompt_.empty()) return "[prompt] is empty; give a text that the model can continue.";
  const uint32_t flags = has_special_tokens_ ? VKF_ENCODE_NO_SPECIAL_TOKENS : 0;
  if (std::string error = encode(model(), prompt_, flags, prompt_ids_); !error.empty())
    return error;
  return set_ids(inputs_, "input_ids", prompt_ids_);
}

std::string TextJob::prepare() {
  if (std::string error = make_inputs(); !error.empty()) return error;
  if (std::string error = make_grammar(); !error.empty()) return error;
  return begin_stream();
}

std::string TextJob::make_grammar() {
  if (settings_.grammar.empty() && settings_.schema.empty()) return "";
  if (!settings_.grammar.empty() && !settings_.schema.empty()) {
    return "[grammar] and [schema] are both set; leave one of them empty.";
  }
  Error error;
  const bool schema = settings_.grammar.empty();
  const vkf_status read =
      schema ? vkf_grammar_from_json_schema(settings_.schema.c_str(), made(grammar_), error)
             : vkf_grammar_from_gbnf(settings_.grammar.c_str(), nullptr, made(grammar_), error);
  if (read != VKF_OK) return error.message();
  auto defaults = sized<vkf_generate_options>();
  if (vkf_session_generation_defaults(seat->session.get(), &defaults, error) != VKF_OK ||
      vkf_constraint_create(grammar_.get(), model().tokenizer(), model().info().target_vocab,
                            defaults.eos, made(constraint_), error) != VKF_OK) {
    return error.message();
  }
  return "";
}

// A continuation is decoded after its prompt, whose own text is then omitted.
std::string TextJob::begin_stream() {
  Error error;
  const std::vector<const char*> stops = pointers(settings_.stop);
  if (vkf_stop_strings_create(stops.data(), stops.size(), made(stops_), error) != VKF_OK ||
      vkf_decode_stream_create(model().tokenizer(), 0, made(stream_), error) != VKF_OK) {
    return error.message();
  }
  if (!model().is_decoder()) return "";
  Bytes before;
  if (vkf_tokenizer_decode(model().tokenizer(), {prompt_ids_.data(), prompt_ids_.size()}, 0,
                           made(before), error) != VKF_OK) {
    return error.message();
  }
  skip_ = vkf_bytes_size(before.get());
  for (const int64_t id : prompt_ids_) {
    Bytes text;
    if (vkf_decode_stream_push(stream_.get(), id, made(text), error) != VKF_OK) {
      return error.message();
    }
    behind_prompt(vkf_bytes_text(text.get()));
  }
  return "";
}

std::string TextJob::behind_prompt(const char* text) {
  std::string piece = text;
  const size_t skipped = std::min(skip_, piece.size());
  skip_ -= skipped;
  return piece.substr(skipped);
}

vkf_status TextJob::start(vkf_session* session, vkf_error* error) {
  auto options = sized<vkf_generate_options>();
  if (const vkf_status status = vkf_session_generation_defaults(session, &options, error);
      status != VKF_OK) {
    return status;
  }
  vkf_choice_options choice =
      options.choice != nullptr ? *options.choice : sized<vkf_choice_options>();
  change(options);
  const bool decoder = model().is_decoder();
  start_tokens_ = decoder ? prompt_ids_.size() : std::max<size_t>(1, options.decoder_prompt.count);
  if (settings_.max_new_tokens > 0) {
    options.max_new_tokens = settings_.max_new_tokens;
  } else {
    if (decoder && options.max_new_tokens == 0) options.max_new_tokens = kUsualTokens;
    const int64_t room = model().info().max_target - static_cast<int64_t>(start_tokens_);
    options.max_new_tokens =
        static_cast<int32_t>(std::clamp<int64_t>(room, 0, options.max_new_tokens));
  }
  if (settings_.min_new_tokens > 0) options.min_new_tokens = settings_.min_new_tokens;
  if (settings_.beams > 0) options.beams = settings_.beams;
  const auto choose = [&](uint32_t bit, bool given, auto& field, auto value) {
    if (!given) return;
    field = value;
    choice.set |= bit;
  };
  choose(VKF_CHOICE_SAMPLE, settings_.sampling > 0, choice.sample, settings_.sampling - 1);
  choose(VKF_CHOICE_TEMPERATURE, settings_.temperature >= 0, choice.temperature,
         settings_.temperature);
  choose(VKF_CHOICE_TOP_K, settings_.top_k >= 0, choice.top_k, settings_.top_k);
  choose(VKF_CHOICE_TOP_P, settings_.top_p >= 0, choice.top_p, settings_.top_p);
  choose(VKF_CHOICE_MIN_P, settings_.min_p >= 0, choice.min_p, settings_.min_p);
  choose(VKF_CHOICE_REPETITION, settings_.repetition_penalty >= 0, choice.repetition_penalty,
         settings_.repetition_penalty);
  choose(VKF_CHOICE_SEED, true, choice.seed, static_cast<uint64_t>(settings_.seed));
  options.choice = &choice;
  streams_ = options.beams <= 1;
  options.return_sequences = 1;
  if (streams_) {
    options.on_token = on_token;
    options.on_token_user = this;
  }
  options.constraint = constraint_.get();
  return vkf_session_start_generation(session, inputs_.get(), &options, error);
}

vkf_verdict TextJob::on_token(void* self, size_t, size_t, int64_t id, double) {
  return static_cast<TextJob*>(self)->take(id);
}

vkf_verdict TextJob::take(int64_t id) {
  if (cancelled) return VKF_CANCEL_GENERATION;
  Error error;
  Bytes text;
  if (vkf_decode_stream_push(stream_.get(), id, made(text), error) != VKF_OK) {
    return VKF_CANCEL_GENERATION;
  }
  Bytes certain;
  const std::string piece = behind_prompt(vkf_bytes_text(text.get()));
  if (vkf_stop_strings_push(stops_.get(), piece.c_str(), made(certain), error) != VKF_OK) {
    return VKF_CANCEL_GENERATION;
  }
  say(vkf_bytes_text(certain.get()));
  stopped_ = vkf_stop_strings_stopped(stops_.get()) != 0;
  return stopped_ ? VKF_END_TEXT : VKF_GO_ON;
}

void TextJob::say(const std::string& piece) {
  text_ += piece;
  if (!piece.empty()) tell("token", {piece});
}

// The same as vkformer's own text generation makes of a sequence.
std::string TextJob::text_of(const vkf_sequence& sequence) const {
  const auto decoded = [&](const int64_t* ids, size_t count) {
    Bytes text;
    vkf_tokenizer_decode(model().tokenizer(), {ids, count}, 0, made(text), nullptr);
    return text ? std::string(vkf_bytes_text(text.get())) : std::string();
  };
  const size_t before = std::min(start_tokens_, sequence.ids.count);
  const std::string alone = decoded(sequence.ids.ids + before, sequence.ids.count - before);
  if (!model().is_decoder()) return alone;
  const std::string prompt = decoded(sequence.ids.ids, before);
  const std::string whole = decoded(sequence.ids.ids, sequence.ids.count);
  return whole.starts_with(prompt) ? whole.substr(prompt.size()) : alone;
}

vkf_status TextJob::finish(vkf_session* session, vkf_error* error) {
  Generation generation;
  auto sequence = sized<vkf_sequence>();
  if (const vkf_status status = vkf_session_finish_generation(session, made(generation), error);
      status != VKF_OK) {
    return status;
  }
  if (const vkf_status status = vkf_generation_get(generation.get(), 0, 0, &sequence, error);
      status != VKF_OK) {
    return status;
  }
  const vkf_status status = streams_ ? end_stream(error) : cut(text_of(sequence), error);
  if (status != VKF_OK) return status;
  done(text_, sequence.score);
  return VKF_OK;
}

vkf_status TextJob::end_stream(vkf_error* error) {
  if (stopped_) return VKF_OK;
  Bytes rest;
  if (const vkf_status status = vkf_decode_stream_finish(stream_.get(), made(rest), error);
      status != VKF_OK) {
    return status;
  }
  Bytes certain;
  const std::string piece = behind_prompt(vkf_bytes_text(rest.get()));
  if (const vkf_status status =
          vkf_stop_strings_push(stops_.get(), piece.c_str(), made(certain), error);
      status != VKF_OK) {
    return status;
  }
  say(vkf_bytes_text(certain.get()));
  if (vkf_stop_strings_stopped(stops_.get()) != 0) return VKF_OK;
  Bytes held;
  if (const vkf_status status = vkf_stop_strings_finish(stops_.get(), made(held), error);
      status != VKF_OK) {
    return status;
  }
  say(vkf_bytes_text(held.get()));
  return VKF_OK;
}

// Beams change until their end, so that their texts are cut afterwards.
vkf_status TextJob::cut(const std::string& text, vkf_error* error) {
  text_ = text;
  Bytes certain;
  if (const vkf_status status =
          vkf_stop_strings_push(stops_.get(), text.c_str(), made(certain), error);
      status != VKF_OK) {
    return status;
  }
  if (vkf_stop_strings_stopped(stops_.get()) != 0) text_ = vkf_bytes_text(certain.get());
  return VKF_OK;
}

void TextJob::done(const std::string& text, double score) {
  tell("finished", {text, score});
}

}  // namespace vkf_godot
