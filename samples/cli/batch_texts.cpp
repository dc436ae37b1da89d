#include "batch_texts.h"

#include <algorithm>
#include <utility>

#include "files.h"
#include "text_inputs.h"

namespace vkformer::cli {

namespace {

constexpr int kUsualTokens = 256;
constexpr int64_t kUsualCapacity = 1024;  // as BatchOptions has it
constexpr const char* kBatch = "Batch";
constexpr const char* kGuesses = "Guesses (they change the number of steps, never the text)";

Error bad_request(const std::string& key, const std::string& what) {
  return {ErrorCode::kInvalidArgument, "[" + key + "] " + what};
}

// Settings of a request: where they go, and what they may be.
struct WholeField {
  const char* key;
  int* setting;
};
struct NumberField {
  const char* key;
  double* setting;
  bool draws;  // whether it says that tokens are drawn
};

constexpr const char* kFields[] = {"id",
                                   "text",
                                   "ids",
                                   "client",
                                   "max_new_tokens",
                                   "min_new_tokens",
                                   "temperature",
                                   "top_k",
                                   "top_p",
                                   "min_p",
                                   "typical_p",
                                   "seed",
                                   "repetition_penalty",
                                   "presence_penalty",
                                   "frequency_penalty",
                                   "no_repeat_ngram",
                                   "return_sequences",
                                   "stop",
                                   "grammar",
                                   "json_schema"};

Status check_keys(const Json& fields) {
  for (const auto& [key, value] : fields.items()) {
    const auto same = [&key = key](const char* known) { return key == known; };
    if (std::any_of(std::begin(kFields), std::end(kFields), same)) continue;
    std::string names;
    for (const char* name : kFields) names += (names.empty() ? "" : ", ") + std::string(name);
    return bad_request(key, "is no field of a request; there are " + names);
  }
  return {};
}

// As `generate` has its options: whatever shapes the draw says that there is one.
Status read_settings(const Json& fields, GenerateOptions& o) {
  SamplingOptions& s = o.sampling;
  PenaltyOptions& p = o.penalties;
  for (const WholeField& f : {WholeField{"max_new_tokens", &o.max_new_tokens},
                              {"min_new_tokens", &o.min_new_tokens},
                              {"top_k", &s.top_k},
                              {"no_repeat_ngram", &p.no_repeat_ngram},
                              {"return_sequences", &o.return_sequences}}) {
    if (!fields.contains(f.key)) continue;
    const Json& value = fields[f.key];
    const bool whole = value.is_number_integer() && value >= 0 && value <= 1 << 20;
    if (!whole) {
      return bad_request(f.key,
                         "must be a whole number from 0 to 1,048,576; got " + json_text(value));
    }
    *f.setting = value.get<int>();
  }
  bool draws = fields.contains("top_k");
  for (const NumberField& f : {NumberField{"temperature", &s.temperature, true},
                               {"top_p", &s.top_p, true},
                               {"min_p", &s.min_p, true},
                               {"typical_p", &s.typical_p, true},
                               {"repetition_penalty", &p.repetition, false},
                               {"presence_penalty", &p.presence, false},
                               {"frequency_penalty", &p.frequency, false}}) {
    if (!fields.contains(f.key)) continue;
    const Json& value = fields[f.key];
    if (!value.is_number()) return bad_request(f.key, "must be a number; got " + json_text(value));
    *f.setting = value.get<double>();
    draws = draws || f.draws;
  }
  if (draws) o.choice = s.temperature == 0 ? TokenChoice::kBest : TokenChoice::kDrawn;
  if (!fields.contains("seed")) return {};
  if (!fields["seed"].is_number_unsigned()) return bad_request("seed", "must be a whole number");
  s.seed = fields["seed"].get<uint64_t>();
  return {};
}

void add_work(const BatchWork& work, Json& event) {
  event["steps"] = work.steps;
  event["prompt_tokens"] = work.prompt_tokens;
  event["reused_tokens"] = work.reused_tokens;
  event["new_tokens"] = work.new_tokens;
  event["guessed_tokens"] = work.guessed_tokens;
  event["accepted_tokens"] = work.accepted_tokens;
}

const char* reason_of(BatchUpdate::State state) {
  switch (state) {
    case BatchUpdate::State::kRunning:
      return "running";
    case BatchUpdate::State::kFinished:
      return "finished";
    case BatchUpdate::State::kCancelled:
      return "cancelled";
    case BatchUpdate::State::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace

void add_guess_options(CLI::App& command, BatchFlags& flags) {
  command
      .add_option("--draft", flags.draft,
                  "directory of a smaller model with the same vocabulary that guesses tokens")
      ->group(kGuesses);
  command
      .add_option("--lookup", flags.batch.lookup,
                  "guess what stood behind the last tokens before: at most so many are compared")
      ->check(CLI::Range(1, 64))
      ->group(kGuesses);
  command
      .add_option("--capacity", flags.batch.capacity,
                  "tokens of a row, prompt included; 0: up to 1,024")
      ->check(CLI::Range(0, 1 << 20))
      ->group(kBatch);
  command
      .add_option("--guesses", flags.batch.guesses, "tokens guessed of a text at most in a step")
      ->check(CLI::Range(1, 64))
      ->group(kGuesses);
}

void add_batch_options(CLI::App& command, BatchFlags& flags) {
  BatchOptions& b = flags.batch;
  const auto add = [&](const char* name, int& value, const char* what) {
    command.add_option(name, value, what)->check(CLI::Range(0, 1 << 20))->group(kBatch);
  };
  add("--rows", b.rows, "requests that run together");
  add("--step-tokens", b.step_tokens, "tokens of a step, at least --rows");
  add("--source", b.source, "tokens of an encoder's input; 0: the model's, at most 512");
  add("--waiting", b.waiting, "requests that wait at most");
  add("--waiting-of-client", b.waiting_of_client, "of one client; 0: all of them");
  add("--running-of-client", b.running_of_client, "rows of one client; 0: all of them");
  command.add_flag("--forget", flags.forget, "read every prompt whole, whatever a row holds")
      ->group(kBatch);
  CLI::Option* context =
      command
          .add_option("--context", b.context,
                      "keys that a row keeps, its sinks included; the oldest others give way")
          ->group(kBatch);
  command.add_option("--sinks", b.sinks, "first keys of --context that stay for ever (default 4)")
      ->needs(context)
      ->group(kBatch);
}

Result<BatchTexts> BatchTexts::open(const CommonOptions& common, const Device& device,
                                    const BatchFlags& flags) {
  const Result<Model> model = load_model(common, device, flags.model, flags.load);
  if (!model) return model.error();
  BatchOptions options = flags.batch;
  if (flags.forget) options.prefix_reuse = BatchOptions::PrefixReuse::kOff;
  if (!flags.draft.empty()) {
    const Result<Model> draft = load_model(common, device, flags.draft, flags.load);
    if (!draft) return draft.error();
    options.draft = *draft;
  }
  Result<GenerationBatch> batch = GenerationBatch::create(*model, options);
  if (!batch) return batch.error();
  std::shared_ptr<const Tokenizer> tokenizer;
  if (file_exists(flags.model + "/tokenizer.json")) {
    Result<Tokenizer> loaded = Tokenizer::load(flags.model);
    if (!loaded) return loaded.error();
    tokenizer = std::make_shared<const Tokenizer>(std::move(*loaded));
  }
  const int64_t capacity = options.capacity > 0
                               ? options.capacity
                               : std::min<int64_t>(model->info().max_target, kUsualCapacity);
  BatchTexts texts(std::move(*batch), std::move(tokenizer), capacity);
  texts.encoder_ = model->info().kind == "encoder-decoder";
  texts.vocab_ = model->info().target_vocab;
  return texts;
}

Result<std::vector<int64_t>> BatchTexts::prompt_of(const Json& fields) const {
  if (fields.contains("ids") == fields.contains("text")) {
    return bad_request("text", "or [ids] must be given, one of the two");
  }
  if (fields.contains("ids")) {
    const Json& ids = fields["ids"];
    const bool whole = ids.is_array() && std::all_of(ids.begin(), ids.end(), [](const Json& id) {
                         return id.is_number_integer();
                       });
    if (!whole) return bad_request("ids", "must be a list of token ids");
    return ids.get<std::vector<int64_t>>();
  }
  if (!fields["text"].is_string()) return bad_request("text", "must be a text");
  if (tokenizer_ == nullptr) {
    return bad_request("text",
                       "needs a tokenizer.json beside the model; there is none, so give "
                       "[ids] instead");
  }
  const Result<Encoding> encoding = tokenizer_->encode(fields["text"].get<std::string>());
  if (!encoding) return encoding.error();
  return wide_ids(encoding->ids);
}

Result<std::optional<DecodeStream>> BatchTexts::stream_behind(
    const std::vector<int64_t>& prompt) const {
  if (tokenizer_ == nullptr) return std::optional<DecodeStream>();
  std::optional<DecodeStream> stream = tokenizer_->decode_stream();
  // Behind a prompt a text begins with the space that it would lose at the start of a line.
  for (const int64_t id : prompt) {
    const Result<std::string> before = stream->push(static_cast<int32_t>(id));
    if (!before) return before.error();
  }
  return stream;
}

Result<std::vector<std::string>> BatchTexts::stops_of(const Json& fields) const {
  std::vector<std::string> stops;
  if (!fields.contains("stop")) return stops;
  const Json& given = fields["stop"];
  const Json list = given.is_string() ? Json::array({given}) : given;
  const bool texts = list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& one) {
                       return one.is_string();
                     });
  if (!texts || tokenizer_ == nullptr) {
    return bad_request("stop", "must be a text or a list of texts, and needs a tokenizer.json");
  }
  return list.get<std::vector<std::string>>();
}

Status BatchTexts::read_grammar(const Json& fields, GenerateOptions& o) {
  const bool schema = fields.contains("json_schema");
  if (!schema && !fields.contains("grammar")) return {};
  const char* key = schema ? "json_schema" : "grammar";
  const Json& given = fields[key];
  if (tokenizer_ == nullptr || (schema && fields.contains("grammar")) ||
      (!schema && !given.is_string())) {
    return bad_request(key,
                       "must be the only one of grammar, a text, and json_schema, and needs a "
                       "tokenizer.json");
  }
  const std::string text = given.is_string() ? given.get<std::string>() : json_text(given);
  if (constraint_ == nullptr || constraint_text_ != key + text) {
    const Result<Grammar> grammar =
        schema ? Grammar::from_json_schema(text) : Grammar::from_gbnf(text);
    if (!grammar) return grammar.error().with_context(key);
    if (!vocabulary_) {
      const std::vector<int32_t> ends(o.eos.begin(), o.eos.end());
      Result<GrammarVocabulary> made = GrammarVocabulary::create(*tokenizer_, vocab_, ends);
      if (!made) return made.error();
      vocabulary_ = std::move(*made);
    }
    Result<GrammarConstraint> made = GrammarConstraint::create(*grammar, *vocabulary_);
    if (!made) return made.error();
    constraint_ = std::make_shared<GrammarConstraint>(std::move(*made));
    constraint_text_ = key + text;
  }
  o.grammar = constraint_;
  return {};
}

Status BatchTexts::check_id(const Json& fields) const {
  if (!fields.contains("id") || !(fields["id"].is_string() || fields["id"].is_number())) {
    return bad_request("id", "must name the request by a text or a number");
  }
  for (const auto& [number, story] : stories_) {
    if (story->id == fields["id"]) {
      return bad_request("id", json_text(story->id) + " is a request that has not ended yet");
    }
  }
  return {};
}

Result<std::shared_ptr<BatchTexts::Story>> BatchTexts::read(const Json& fields,
                                                            BatchRequest& request) {
  if (const Status good = check_id(fields); !good) return good.error();
  if (const Status known = check_keys(fields); !known) return known.error();
  Result<std::vector<int64_t>> prompt = prompt_of(fields);
  if (!prompt) return prompt.error();
  request.prompt = std::move(*prompt);
  GenerateOptions& o = request.options;
  o.max_new_tokens = usual_tokens(encoder_ ? 1 : request.prompt.size());
  if (const Status read = read_settings(fields, o); !read) return read.error();
  if (const Status read = read_grammar(fields, o); !read) return read.error();
  if (fields.contains("client")) {
    if (!fields["client"].is_string()) return bad_request("client", "must be a text");
    request.client = fields["client"].get<std::string>();
  }
  const Result<std::vector<std::string>> stops = stops_of(fields);
  if (!stops) return stops.error();
  auto story = std::make_shared<Story>(Story{.id = fields["id"], .lines = {}, .error = {}});
  for (int sequence = 0; sequence < o.return_sequences; ++sequence) {
    Result<std::optional<DecodeStream>> stream =
        stream_behind(encoder_ ? std::vector<int64_t>() : request.prompt);
    if (!stream) return stream.error();
    story->lines.push_back({.stream = std::move(*stream), .stops = StopStrings(*stops)});
  }
  return story;
}

Status BatchTexts::submit(const Json& fields) {
  BatchRequest request{.options = batch_.generation_defaults()};
  const Result<std::shared_ptr<Story>> story = read(fields, request);
  if (!story) return story.error();
  request.options.on_token = [story = *story](const NewToken& token) { return story->take(token); };
  const Result<uint64_t> number = batch_.submit(request);
  if (!number) return number.error();
  stories_.emplace(*number, *story);
  return {};
}

Status BatchTexts::cancel(const Json& id) {
  for (const auto& [number, story] : stories_) {
    if (story->id == id) return batch_.cancel(number);
  }
  return Error{ErrorCode::kNotFound,
               "[cancel] there is no request " + json_text(id) + " that waits or runs"};
}

TokenVerdict BatchTexts::Story::take(const NewToken& token) {
  Line& line = lines[token.sequence];
  line.ids.push_back(token.id);
  if (!line.stream) return TokenVerdict::kGoOn;
  const Result<std::string> piece = line.stream->push(static_cast<int32_t>(token.id));
  if (!piece) {
    error = piece.error();
    return TokenVerdict::kCancel;
  }
  line.piece += line.stops.push(*piece);
  return line.stops.stopped() ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
}

// What is left of a text whose last token came.
Status BatchTexts::finish(Line& line) {
  if (!line.stream || line.stops.stopped()) return {};
  const Result<std::string> rest = line.stream->finish();
  if (!rest) return rest.error();
  line.piece += line.stops.push(*rest);
  if (!line.stops.stopped()) line.piece += line.stops.finish();
  return {};
}

Result<std::vector<Json>> BatchTexts::step() {
  const Result<std::vector<BatchUpdate>> updates = batch_.step();
  if (!updates) return updates.error();
  std::vector<Json> events;
  for (const BatchUpdate& update : *updates) {
    const std::shared_ptr<Story> story = stories_.at(update.request);
    if (story->error) return *story->error;
    Line& line = story->lines[update.sequence];
    const bool runs = update.state == BatchUpdate::State::kRunning;
    if (!runs) {
      if (const Status finished = finish(line); !finished) return finished.error();
    }
    const std::string piece = std::exchange(line.piece, {});
    line.text += piece;
    Json event;
    event["id"] = story->id;
    if (story->lines.size() > 1) event["sequence"] = update.sequence;
    event["event"] = runs ? "text" : "end";
    if (!runs) event["reason"] = reason_of(update.state);
    if (line.stream) event["text"] = runs ? piece : line.text;
    event["ids"] = runs ? update.tokens : line.ids;
    if (!runs) {
      event["score"] = update.score;
      add_work(update.work, event);
      if (update.state == BatchUpdate::State::kFailed) event["error"] = update.error.message;
      if (++story->ended == story->lines.size()) stories_.erase(update.request);
    }
    events.push_back(std::move(event));
  }
  return events;
}

int BatchTexts::usual_tokens(size_t prompt) const {
  const int own = batch_.generation_defaults().max_new_tokens;
  const int64_t room = capacity_ - static_cast<int64_t>(prompt);
  return static_cast<int>(std::clamp<int64_t>(room, 0, own > 0 ? own : kUsualTokens));
}

Result<std::vector<Json>> BatchTexts::answer(const std::vector<Json>& requests) {
  std::vector<Json> answers(requests.size());
  size_t submitted = 0;
  while (submitted < requests.size() || !idle()) {
    while (submitted < requests.size()) {
      Json fields = requests[submitted];
      fields["id"] = submitted;
      const Status taken = submit(fields);
      if (!taken && taken.error().code == ErrorCode::kOutOfMemory) break;
      if (!taken) return taken.error();
      ++submitted;
    }
    const Result<std::vector<Json>> events = step();
    if (!events) return events.error();
    for (const Json& event : *events) {
      if (event["event"] == "end") answers[event["id"].get<size_t>()] = event;
    }
  }
  for (Json& answer : answers) {
    if (answer.contains("error")) {
      return Error{ErrorCode::kDriver, answer["error"].get<std::string>()};
    }
    for (const char* key : {"id", "event", "reason"}) answer.erase(key);
  }
  return answers;
}

Json BatchTexts::work() const {
  const BatchCounters counters = batch_.counters();
  Json event;
  event["event"] = "work";
  add_work(counters.work, event);
  event["draft_steps"] = counters.draft_steps;
  event["cache_bytes"] = counters.cache_bytes;
  return event;
}

}  // namespace vkformer::cli
