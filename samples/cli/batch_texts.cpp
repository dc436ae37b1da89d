#include "batch_texts.h"

#include <algorithm>

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
                                   "no_repeat_ngram"};

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
                              {"no_repeat_ngram", &p.no_repeat_ngram}}) {
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
  return BatchTexts(std::move(*batch), std::move(tokenizer), capacity);
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

Status BatchTexts::submit(const Json& fields) {
  if (!fields.contains("id") || !(fields["id"].is_string() || fields["id"].is_number())) {
    return bad_request("id", "must name the request by a text or a number");
  }
  if (const Status known = check_keys(fields); !known) return known.error();
  for (const auto& [number, story] : stories_) {
    if (story.id == fields["id"]) {
      return bad_request("id", json_text(story.id) + " is a request that has not ended yet");
    }
  }
  BatchRequest request{.options = batch_.generation_defaults()};
  request.options.beams = request.options.return_sequences = 1;
  Result<std::vector<int64_t>> prompt = prompt_of(fields);
  if (!prompt) return prompt.error();
  request.prompt = std::move(*prompt);
  request.options.max_new_tokens = usual_tokens(request.prompt.size());
  if (const Status read = read_settings(fields, request.options); !read) return read.error();
  if (fields.contains("client")) {
    if (!fields["client"].is_string()) return bad_request("client", "must be a text");
    request.client = fields["client"].get<std::string>();
  }
  const Result<uint64_t> number = batch_.submit(request);
  if (!number) return number.error();
  Result<std::optional<DecodeStream>> stream = stream_behind(request.prompt);
  if (!stream) return stream.error();
  stories_.emplace(*number, Story{.id = fields["id"], .stream = std::move(*stream)});
  return {};
}

Status BatchTexts::cancel(const Json& id) {
  for (const auto& [number, story] : stories_) {
    if (story.id == id) return batch_.cancel(number);
  }
  return Error{ErrorCode::kNotFound,
               "[cancel] there is no request " + json_text(id) + " that waits or runs"};
}

Result<std::string> BatchTexts::text_of(Story& story, const BatchUpdate& update) const {
  std::string text;
  if (!story.stream) return text;
  for (const int64_t id : update.tokens) {
    const Result<std::string> piece = story.stream->push(static_cast<int32_t>(id));
    if (!piece) return piece.error();
    text += *piece;
  }
  if (update.state == BatchUpdate::State::kRunning) return text;
  const Result<std::string> rest = story.stream->finish();
  if (!rest) return rest.error();
  return text + *rest;
}

Result<std::vector<Json>> BatchTexts::step() {
  const Result<std::vector<BatchUpdate>> updates = batch_.step();
  if (!updates) return updates.error();
  std::vector<Json> events;
  for (const BatchUpdate& update : *updates) {
    Story& story = stories_.at(update.request);
    const Result<std::string> piece = text_of(story, update);
    if (!piece) return piece.error();
    story.text += *piece;
    story.ids.insert(story.ids.end(), update.tokens.begin(), update.tokens.end());
    Json event;
    event["id"] = story.id;
    if (update.state == BatchUpdate::State::kRunning) {
      event["event"] = "text";
      if (story.stream) event["text"] = *piece;
      event["ids"] = update.tokens;
      events.push_back(std::move(event));
      continue;
    }
    event["event"] = "end";
    event["reason"] = reason_of(update.state);
    if (story.stream) event["text"] = story.text;
    event["ids"] = story.ids;
    event["score"] = update.score;
    add_work(update.work, event);
    if (update.state == BatchUpdate::State::kFailed) event["error"] = update.error.message;
    stories_.erase(update.request);
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
