#include "batch_texts.h"

#include <algorithm>

#include "files.h"
#include "text_inputs.h"

namespace vkformer::cli {

namespace {

constexpr const char* kBatch = "Batch";
constexpr const char* kGuesses = "Guesses (they change the number of steps, never the text)";

Error bad_request(const std::string& key, const std::string& what) {
  return {ErrorCode::kInvalidArgument, "[" + key + "] " + what};
}

Status read_int(const Json& fields, const char* key, int& setting) {
  if (!fields.contains(key)) return {};
  const Json& value = fields[key];
  if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 1 << 20) {
    return bad_request(key, "must be a whole number from 0 to 1,048,576; got " + json_text(value));
  }
  setting = value.get<int>();
  return {};
}

Status check_keys(const Json& fields) {
  static const std::vector<std::string> kKnown = {"id",     "text",           "ids",
                                                  "client", "max_new_tokens", "min_new_tokens"};
  for (const auto& [key, value] : fields.items()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    std::string names;
    for (const std::string& name : kKnown) names += (names.empty() ? "" : ", ") + name;
    return bad_request(key, "is no field of a request; there are " + names);
  }
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
  add("--capacity", b.capacity, "tokens of a row, prompt included; 0: up to 1,024");
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

Result<BatchTexts> BatchTexts::open(const CommonOptions& common, const BatchFlags& flags) {
  const Result<Device> device = open_device(common);
  if (!device) return device.error();
  const Result<Model> model = load_model(common, *device, flags.model, flags.load);
  if (!model) return model.error();
  BatchOptions options = flags.batch;
  if (flags.forget) options.prefix_reuse = BatchOptions::PrefixReuse::kOff;
  if (!flags.draft.empty()) {
    const Result<Model> draft = load_model(common, *device, flags.draft, flags.load);
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
  return BatchTexts(std::move(*batch), std::move(tokenizer));
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
  request.options.max_new_tokens = 0;  // as much as a row holds
  Result<std::vector<int64_t>> prompt = prompt_of(fields);
  if (!prompt) return prompt.error();
  request.prompt = std::move(*prompt);
  for (const Status& read : {read_int(fields, "max_new_tokens", request.options.max_new_tokens),
                             read_int(fields, "min_new_tokens", request.options.min_new_tokens)}) {
    if (!read) return read.error();
  }
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
