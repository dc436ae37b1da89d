// Texts and pictures to generated texts.
#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
#include "tasks/choice_settings.h"
#include "tasks/image_prompts.h"
#include "tasks/text_writer.h"

namespace vkformer {
namespace {

// New tokens of a decoder where neither the caller nor the model says how many.
constexpr int kUsualTokens = 256;

struct Language {
  TokenId id = -1;
  std::string token;
};

// The token of a language: named by it, or as M2M-100, Whisper or Marian spell theirs.
Result<Language> find_language(const TaskModel& task, const std::string& name) {
  for (const std::string& token :
       {name, "__" + name + "__", "<|" + name + "|>", ">>" + name + "<<"}) {
    const auto id = task.tokenizer->token_to_id(token);
    if (id) return Language{*id, token};
  }
  return invalid_argument(
      message({"[language] '", name,
               "' is not a language of this model's tokenizer; name one of its language "
               "tokens, such as de, __de__, de_DE or deu_Latn"}));
}

// "__de__" (M2M-100), "de_DE" (mBART), "deu_Latn" (NLLB).
bool is_language_token(const std::string& token) {
  if (token.size() > 4 && token.starts_with("__") && token.ends_with("__")) return true;
  const size_t gap = token.find('_');
  if (gap != 2 && gap != 3) return false;
  for (size_t i = 0; i < token.size(); ++i) {
    const char c = static_cast<char>(token[i] | 0x20);
    if (i != gap && (c < 'a' || c > 'z')) return false;
  }
  return token.size() > gap + 1;
}

Status replace_language(Encoding& encoding, const Language& language) {
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const TextRange range = encoding.offsets[i];
    if (range.begin != range.end || !is_language_token(encoding.tokens[i])) continue;
    encoding.ids[i] = language.id;
    return {};
  }
  return unsupported(
      "[source_language] this model's tokenizer adds no language token to texts, so "
      "none can be replaced; leave source_language away");
}

Status take_int(const JsonConfig& from, const char* key, int less, int& setting) {
  if (!from.has(key)) return {};
  VKF_ASSIGN(const int64_t value, from.get_int(key));
  setting = static_cast<int>(std::clamp<int64_t>(value - less, 0, 1 << 20));
  return {};
}

// task_specific_params of config.json, as T5 and BART have them.
Result<JsonConfig> task_params(const TaskModel& task, const std::string& name) {
  const JsonConfig all = task.config.object("task_specific_params");
  VKF_CHECK(all.status());
  if (all.has(name)) return all.object(name);
  const std::string known = name_list(all.keys());
  return invalid_argument(
      message({"[task] '", name, "' is not among task_specific_params of ", task.config.where(),
               "; ", (known.empty() ? "it has none" : "it has " + known)}));
}

Status take_params(const JsonConfig& params, GenerateOptions& o) {
  VKF_CHECK(params.status());
  VKF_CHECK(take_int(params, "num_beams", 0, o.beams));
  // Lengths count the decoder's start token.
  VKF_CHECK(take_int(params, "max_length", 1, o.max_new_tokens));
  VKF_CHECK(take_int(params, "min_length", 1, o.min_new_tokens));
  VKF_CHECK(take_int(params, "max_new_tokens", 0, o.max_new_tokens));
  VKF_CHECK(take_int(params, "min_new_tokens", 0, o.min_new_tokens));
  VKF_ASSIGN(o.length_penalty, params.get_double_or("length_penalty", o.length_penalty));
  if (!params.has("early_stopping")) return {};
  const auto flag = params.get_bool("early_stopping");
  if (flag) {
    o.early_stopping = *flag ? EarlyStopping::kTrue : EarlyStopping::kFalse;
    return {};
  }
  VKF_ASSIGN(const std::string text, params.get_string("early_stopping"));
  const auto when = choice_from_name<EarlyStopping>(text);
  if (!when) return invalid_file(message({params.where(), ": ", when.error().message}));
  o.early_stopping = *when;
  return {};
}

// Text before every input: of the caller, of the model's task, or Marian's target language.
Result<std::string> text_prefix(const TaskModel& task, const TextOptions& options) {
  std::string prefix = options.prefix;
  if (prefix.empty() && !options.task.empty()) {
    VKF_ASSIGN(const JsonConfig params, task_params(task, options.task));
    VKF_ASSIGN(prefix, params.get_string_or("prefix", ""));
  }
  if (options.target_language.empty()) return prefix;
  VKF_ASSIGN(const Language target, find_language(task, options.target_language));
  return target.token.starts_with(">>") ? target.token + " " + prefix : prefix;
}

Result<std::vector<Encoding>> encode_sources(const TaskModel& task,
                                             std::span<const std::string> texts,
                                             const TextOptions& options, int64_t most) {
  VKF_ASSIGN(const std::string prefix, text_prefix(task, options));
  Language source;
  if (!options.source_language.empty()) {
    VKF_ASSIGN(source, find_language(task, options.source_language));
  }
  std::vector<Encoding> encodings(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() && task.facts().kind == ModelKind::kDecoder) {
      return invalid_argument(
          message({"[text ", i + 1, "] is empty; give a prompt that the model can continue"}));
    }
    if (texts[i].empty()) continue;
    const std::string whole = prefix + texts[i];
    const std::string_view text = whole;
    VKF_ASSIGN(encodings[i], encode_task_text(task, {&text, 1}, i, most, options.special_tokens));
    if (source.id >= 0) VKF_CHECK(replace_language(encodings[i], source));
  }
  return encodings;
}

Status check_room(const TaskModel& task, const std::vector<Encoding>& encodings, int tokens) {
  for (size_t i = 0; i < encodings.size(); ++i) {
    const auto prompt = static_cast<int64_t>(encodings[i].ids.size());
    if (prompt + tokens <= task.facts().max_target) continue;
    return invalid_argument(message(
        {"[text ", i + 1, "] is a prompt of ", prompt, " tokens, and max_new_tokens is ", tokens,
         ", but this model has positions for ", task.facts().max_target, " tokens in all"}));
  }
  return {};
}

// Whether keys give way, so that no position is the last.
bool rolls_on(const TaskModel& task, const TextOptions& options) {
  return options.context && task.facts().rolling == ModelFacts::Rolling::kFree;
}

}  // namespace

namespace {

// Texts that run together: their tokens, their places in the call, their settings.
struct TextBatch {
  const std::vector<std::vector<int64_t>>& rows;
  std::span<const size_t> places;
  GenerateOptions settings;
  const TensorMap* images;  // of one text; null: none
};

// Beams change until their end, so that nobody follows them; their texts are cut afterwards.
void cut_at_stops(const std::vector<std::string>& stops, GeneratedText& text) {
  StopStrings found(stops);
  std::string kept = found.push(text.text);
  if (!found.stopped()) return;
  text.text = std::move(kept);
}

Status write_batch(TaskModel& task, const TextOptions& options, TextBatch batch,
                   std::vector<std::vector<GeneratedText>>& results) {
  const bool decoder = task.facts().kind == ModelKind::kDecoder;
  GenerateOptions& own = batch.settings;
  std::optional<TextWriter> writer;
  if (own.beams == 1 && (options.on_text || !options.stop.empty())) {
    const std::vector<std::vector<int64_t>> none;
    VKF_ASSIGN(writer, TextWriter::create(task, options, batch.places, decoder ? batch.rows : none,
                                          static_cast<size_t>(own.return_sequences)));
    own.on_token = [&](const NewToken& token) { return writer->take(token); };
  } else if (options.on_text) {
    own.on_token = [](const NewToken&) { return TokenVerdict::kGoOn; };
  }
  VKF_ASSIGN(TensorMap inputs, pad_rows(batch.rows));
  if (batch.images != nullptr) inputs.insert(batch.images->begin(), batch.images->end());
  const Result<Generation> found = task.session->generate(inputs, own);
  if (writer && (found || writer->failed())) VKF_CHECK(writer->finish());
  if (!found) return found.error();
  for (size_t row = 0; row < batch.places.size(); ++row) {
    const size_t prompt =
        decoder ? batch.rows[row].size() : std::max<size_t>(1, own.decoder_prompt.size());
    for (size_t sequence = 0; sequence < (*found)[row].size(); ++sequence) {
      VKF_ASSIGN(GeneratedText text, generated_text(task, (*found)[row][sequence], prompt));
      if (writer) {
        text.text = writer->text(row, sequence);
      } else {
        cut_at_stops(options.stop, text);
      }
      results[batch.places[row]].push_back(std::move(text));
    }
  }
  return {};
}

}  // namespace

int fitting_tokens(const TaskModel& task, int tokens, size_t prompt) {
  const int64_t room = task.facts().max_target - static_cast<int64_t>(prompt);
  return static_cast<int>(std::clamp<int64_t>(room, 0, tokens));
}

Result<GenerateOptions> generation_settings(const TaskModel& task, const TextOptions& options) {
  GenerateOptions settings = task.session->generation_defaults();
  if (!options.task.empty()) {
    VKF_ASSIGN(const JsonConfig params, task_params(task, options.task));
    VKF_CHECK(take_params(params, settings));
  }
  const bool decoder = task.facts().kind == ModelKind::kDecoder;
  if (!options.max_new_tokens) {
    if (decoder && settings.max_new_tokens == 0) settings.max_new_tokens = kUsualTokens;
    const size_t prompt = decoder ? 0 : std::max<size_t>(1, settings.decoder_prompt.size());
    if (!rolls_on(task, options)) {
      settings.max_new_tokens = fitting_tokens(task, settings.max_new_tokens, prompt);
    }
  }
  take(settings.beams, options.beams);
  take(settings.max_new_tokens, options.max_new_tokens);
  take(settings.min_new_tokens, options.min_new_tokens);
  take(settings.return_sequences, options.return_sequences);
  take(settings.length_penalty, options.length_penalty);
  take(settings.early_stopping, options.early_stopping);
  VKF_CHECK(take_choice(task, options, settings));
  settings.context = options.context;
  take(settings.sinks, options.sinks);
  if (options.sinks && !options.context) {
    return invalid_argument(message({"[sinks] is ", *options.sinks,
                                     ", but without a context all keys stay; give a context too"}));
  }
  if (options.target_language.empty()) return settings;
  if (decoder) {
    return invalid_argument(
        message({"[target_language] was given, but a ", task.facts().architecture,
                 " does not translate; say it in the prompt"}));
  }
  VKF_ASSIGN(const Language target, find_language(task, options.target_language));
  if (!target.token.starts_with(">>")) settings.forced_bos = target.id;
  return settings;
}

Result<GeneratedText> generated_text(const TaskModel& task, const Hypothesis& found,
                                     size_t prompt) {
  const std::span<const TokenId> ids(found.ids);
  prompt = std::min(prompt, ids.size());
  GeneratedText result{"",
                       {found.ids.begin() + static_cast<std::ptrdiff_t>(prompt), found.ids.end()},
                       found.score,
                       found.log_probabilities};
  VKF_ASSIGN(result.text, task.tokenizer->decode(ids.subspan(prompt), SpecialTokens::kExclude));
  if (task.facts().kind != ModelKind::kDecoder) return result;
  // After a prompt, a text begins with the space that it would lose at the start of a line.
  VKF_ASSIGN(const std::string before,
             task.tokenizer->decode(ids.first(prompt), SpecialTokens::kExclude));
  VKF_ASSIGN(const std::string whole, task.tokenizer->decode(ids, SpecialTokens::kExclude));
  if (whole.starts_with(before)) result.text = whole.substr(before.size());
  return result;
}

namespace {

// Texts as tokens, and the images of each, where they have such.
struct EncodedTexts {
  std::vector<Encoding> encodings;
  std::vector<TensorMap> images;
};

Result<std::vector<std::vector<GeneratedText>>> generate_encoded(TaskModel& task,
                                                                 const EncodedTexts& texts,
                                                                 const GenerateOptions& settings,
                                                                 const TextOptions& options) {
  const std::vector<Encoding>& encodings = texts.encodings;
  const bool decoder = task.facts().kind == ModelKind::kDecoder;
  const bool rolls = decoder && rolls_on(task, options);
  if (decoder && !rolls) {
    VKF_CHECK(check_room(task, encodings, options.max_new_tokens.value_or(1)));
  }
  std::vector<std::vector<GeneratedText>> results(encodings.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    std::vector<std::vector<int64_t>> rows;
    for (size_t place : places) {
      rows.emplace_back(encodings[place].ids.begin(), encodings[place].ids.end());
    }
    GenerateOptions own = settings;
    if (decoder && !rolls) {
      own.max_new_tokens = fitting_tokens(task, own.max_new_tokens, rows[0].size());
    }
    VKF_ASSIGN(own.grammar, grammar_constraint(task, options, own));
    const TensorMap* images = texts.images.empty() ? nullptr : &texts.images[places[0]];
    return write_batch(task, options, {rows, places, own, images}, results);
  };
  // A prompt that leaves less room than the others goes alone: what its batch generates shall not
  // depend on it. So does one with images, whose tensors differ in size.
  std::vector<size_t> lengths = token_counts(encodings);
  std::vector<size_t> alone(lengths.size(), 0);
  for (size_t i = 0; decoder && i < lengths.size(); ++i) {
    const bool fits = rolls || fitting_tokens(task, settings.max_new_tokens, lengths[i]) ==
                                   settings.max_new_tokens;
    if (fits && texts.images.empty()) continue;
    std::swap(alone[i], lengths[i]);
  }
  VKF_CHECK(run_batches(lengths, task.batch, run));
  VKF_CHECK(run_batches(alone, 1, run));
  return results;
}

}  // namespace

Result<std::vector<std::vector<GeneratedText>>> generate_texts(TaskModel& task,
                                                               std::span<const std::string> texts,
                                                               const TextOptions& options) {
  VKF_ASSIGN(const GenerateOptions settings, generation_settings(task, options));
  // With a context there is always room.
  const bool rolls = task.facts().kind == ModelKind::kDecoder && rolls_on(task, options);
  const int64_t most = rolls ? generation_limit(task.facts(), settings) : task.token_limit();
  EncodedTexts encoded;
  VKF_ASSIGN(encoded.encodings, encode_sources(task, texts, options, most));
  return generate_encoded(task, encoded, settings, options);
}

Result<std::vector<std::vector<GeneratedText>>> generate_from_pictures(
    TaskModel& task, std::span<const PromptWithPictures> prompts, const TextOptions& options) {
  VKF_CHECK(image_placeholder(task));
  VKF_ASSIGN(const GenerateOptions settings, generation_settings(task, options));
  VKF_ASSIGN(const std::string prefix, text_prefix(task, options));
  EncodedTexts encoded;
  for (PromptWithPictures prompt : prompts) {
    prompt.text.insert(0, prefix);
    VKF_ASSIGN(ImagePrompt made,
               make_image_prompt(task, prompt, encoded.encodings.size(), options.special_tokens));
    encoded.encodings.push_back(std::move(made.encoding));
    encoded.images.push_back(std::move(made.images));
  }
  return generate_encoded(task, encoded, settings, options);
}

Result<std::vector<std::vector<float>>> score_texts(TaskModel& task,
                                                    std::span<const std::string> texts,
                                                    std::span<const std::string> continuations) {
  if (texts.size() != continuations.size()) {
    return invalid_argument(
        message({"[score] there are ", texts.size(), " texts and ", continuations.size(),
                 " continuations; give one for each text"}));
  }
  const bool decoder = task.facts().kind == ModelKind::kDecoder;
  std::vector<std::vector<float>> scores;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    VKF_ASSIGN(const Encoding source, encode_task_text(task, {&text, 1}, i, task.token_limit()));
    // After a prompt, a continuation's tokens are those that the whole text has more.
    const std::string all = decoder ? texts[i] + continuations[i] : continuations[i];
    const std::string_view whole = all;
    VKF_ASSIGN(const Encoding target, encode_task_text(task, {&whole, 1}, i, task.token_limit()));
    const auto begin = target.ids.begin();
    const auto shared =
        decoder ? std::mismatch(begin, target.ids.end(), source.ids.begin(), source.ids.end()).first
                : begin;
    const size_t prompt = std::max<size_t>(1, static_cast<size_t>(shared - begin));
    std::vector<std::vector<int64_t>> row(1);
    row[0].assign(source.ids.begin(), source.ids.end());
    if (decoder) row[0].assign(begin, begin + static_cast<ptrdiff_t>(prompt));
    const auto first = decoder ? begin + static_cast<ptrdiff_t>(prompt) : begin;
    VKF_ASSIGN(const TensorMap inputs, pad_rows(row));
    VKF_ASSIGN(auto found, task.session->score(inputs, {{first, target.ids.end()}}));
    scores.push_back(std::move(found[0]));
  }
  return scores;
}

namespace {

// Lets every caption begin with the caller's prefix, which is then part of it.
Status begin_captions(const TaskModel& task, const TextOptions& options,
                      GenerateOptions& settings) {
  std::vector<TokenId>& start = settings.decoder_prompt;
  if (start.empty()) start = {settings.decoder_start};
  const auto room = task.facts().max_target - static_cast<int64_t>(start.size()) - 1;
  VKF_ASSIGN(const std::vector<TokenId> ids, description_beginning(task, options.prefix, room));
  start.insert(start.end(), ids.begin(), ids.end());
  if (options.max_new_tokens) return {};
  settings.max_new_tokens = fitting_tokens(task, settings.max_new_tokens, start.size());
  return {};
}

}  // namespace

Result<std::vector<std::string>> caption_pictures(TaskModel& task,
                                                  std::span<const Picture> pictures,
                                                  const TextOptions& options) {
  VKF_ASSIGN(GenerateOptions settings, generation_settings(task, options));
  const size_t prompt = std::max<size_t>(1, settings.decoder_prompt.size());
  if (!options.prefix.empty()) VKF_CHECK(begin_captions(task, options, settings));
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < pictures.size(); begin += task.batch) {
    const size_t count = std::min(task.batch, pictures.size() - begin);
    TensorMap inputs;
    VKF_ASSIGN(inputs["pixel_values"], described_pixels(task, pictures.subspan(begin, count)));
    VKF_ASSIGN(const Generation found, task.session->generate(inputs, settings));
    for (const auto& hypotheses : found) {
      VKF_ASSIGN(GeneratedText text, generated_text(task, hypotheses[0], prompt));
      texts.push_back(std::move(text.text));
    }
  }
  return texts;
}

}  // namespace vkformer
