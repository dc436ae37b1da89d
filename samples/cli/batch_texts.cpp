#include "batch_texts.h"

#include <algorithm>
#include <utility>

#include "files.h"
#include "model_path.h"
#include "request_fields.h"
#include "task_command.h"
#include "text_inputs.h"

namespace vkformer::cli {

namespace {

constexpr int kUsualNewTokens = 256;
constexpr int64_t kUsualCapacity = 1024;  // as BatchOptions has it
constexpr const char* kBatch = "Batch";
constexpr const char* kDrafts = "Draft tokens (they change the number of steps, never the text)";

void add_work(const BatchWork& work, Json& event) {
  event["steps"] = work.steps;
  event["prompt_tokens"] = work.prompt_tokens;
  event["reused_tokens"] = work.reused_tokens;
  event["new_tokens"] = work.new_tokens;
  event["draft_tokens"] = work.draft_tokens;
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

void add_draft_options(CLI::App& command, CommandLine& line, BatchFlags& flags) {
  CLI::Option* draft = add_folder_option(
      command, "--draft", flags.draft,
      "directory of a smaller model with the same vocabulary that proposes draft tokens");
  add_model_check(*draft->group(kDrafts), line, flags.draft, resolve_model_path);
  CLI::Option* lookup =
      command.add_option("--prompt-lookup", flags.batch.lookup,
                         "draft what followed the last tokens earlier in the text; compares this "
                         "many of them at most");
  add_old_name(command, "--lookup",
               *lookup->default_str("")->check(CLI::Range(1, 64))->group(kDrafts));
  command
      .add_option("--capacity", flags.batch.capacity,
                  "tokens of a sequence, prompt included; 0: up to 1,024")
      ->check(CLI::Range(0, 1 << 20))
      ->group(kBatch);
  CLI::Option* most = command.add_option("--draft-tokens", flags.batch.draft_tokens,
                                         "draft tokens of a sequence in a step, at most");
  add_old_name(command, "--guesses", *most->check(CLI::Range(1, 64))->group(kDrafts));
}

void add_batch_options(CLI::App& command, BatchFlags& flags) {
  BatchOptions& b = flags.batch;
  const auto add = [&](const char* name, const char* old_name, int& value, const char* what) {
    CLI::Option* option =
        command.add_option(name, value, what)->check(CLI::Range(0, 1 << 20))->group(kBatch);
    if (*old_name != 0) add_old_name(command, old_name, *option);
  };
  add("--slots", "--rows", b.rows, "sequences that are generated together");
  add("--step-tokens", "", b.step_tokens, "tokens of a step, at least --slots");
  add("--source-tokens", "--source", b.source,
      "tokens of an encoder's input; 0: the model's, at most 512");
  add("--max-queue", "--waiting", b.waiting, "requests in the queue at most");
  add("--max-queue-per-client", "--waiting-of-client", b.waiting_of_client,
      "requests of one client in the queue; 0: no limit");
  add("--max-slots-per-client", "--running-of-client", b.running_of_client,
      "slots of one client; 0: no limit");
  command.add_option("--max-pictures", flags.pictures.count, "pictures of a request at most")
      ->check(CLI::Range(0, 4096))
      ->group(kBatch);
  command
      .add_option("--max-picture-bytes", flags.pictures.bytes,
                  "bytes of the picture files of a request together, at most")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 29))
      ->group(kBatch);
  command.add_option("--max-picture-pixels", flags.pictures.pixels, "pixels of a picture, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 26))
      ->group(kBatch);
  add_old_name(command, "--forget",
               *command
                    .add_flag("--no-prefix-cache", flags.forget,
                              "compute every prompt in full, whatever the cache holds")
                    ->group(kBatch));
  CLI::Option* context =
      command
          .add_option(
              "--context", b.context,
              "keys in the cache of a sequence, its sinks included; the oldest others are dropped")
          ->group(kBatch);
  command.add_option("--sinks", b.sinks, "first keys of --context, which are never dropped")
      ->needs(context)
      ->group(kBatch);
}

Result<BatchTexts> BatchTexts::open(const CommonOptions& common, const Device& device,
                                    const BatchFlags& flags) {
  const Result<Model> model = load_model(common, device, flags.model, flags.load);
  if (!model) return model.error();
  BatchOptions options = flags.batch;
  const int64_t positions = model->info().max_target;
  if (options.capacity == 0 && flags.room > kUsualCapacity) {
    const bool ends = !options.context.has_value();
    options.capacity = static_cast<int>(ends ? std::min(flags.room, positions) : flags.room);
  }
  options.prefix_reuse = !flags.forget;
  if (!flags.draft.empty()) {
    ModelOptions plain = flags.load;
    plain.request_adapters.clear();
    const Result<Model> draft = load_model(common, device, flags.draft, plain);
    if (!draft) return draft.error();
    options.draft = *draft;
  }
  Result<GenerationBatch> batch = GenerationBatch::create(*model, options);
  if (!batch) return batch.error();
  std::shared_ptr<const Tokenizer> tokenizer;
  if (Result<Tokenizer> loaded = Tokenizer::load(flags.model)) {
    tokenizer = std::make_shared<const Tokenizer>(std::move(*loaded));
  } else if (loaded.error().code != ErrorCode::kNotFound) {
    return loaded.error();
  }
  const int64_t capacity =
      options.capacity > 0 ? options.capacity : std::min(positions, kUsualCapacity);
  BatchTexts texts(std::move(*batch), std::move(tokenizer), capacity);
  texts.limits_ = flags.pictures;
  texts.encoder_ = model->info().kind == ModelKind::kEncoderDecoder;
  texts.describes_ = texts.encoder_ && model->info().source == SourceKind::kPictures;
  if (const Status opened = texts.open_chat(*model, flags.model); !opened) return opened.error();
  texts.positions_ = positions;
  texts.most_waiting_ = options.waiting;
  texts.vocab_ = model->info().target_vocab;
  // A session that runs nothing costs nothing.
  if (const Result<Session> session = Session::create(*model); session)
    texts.beams_ = session->generation_defaults().beams;
  return texts;
}

Status BatchTexts::open_chat(const Model& model, const std::string& directory) {
  const ModelSource source = ModelSource::directory(directory);
  if (describes_) images_.emplace(ImagePromptReader::load(model, source));
  if (encoder_ || tokenizer_ == nullptr) return {};
  Result<ChatTemplate> found = ChatTemplate::load(source);
  // A template that cannot be read is the trouble of those who use it.
  if (found || found.error().code != ErrorCode::kNotFound) template_.emplace(std::move(found));
  if (!model.info().reads_images) return {};
  images_.emplace(ImagePromptReader::load(model, source));
  if (!*images_) return {};
  Result<PicturePrompts> prompts = PicturePrompts::open((*images_)->placeholder(), directory);
  if (!prompts) return prompts.error();
  prompts_.emplace(std::move(*prompts));
  return {};
}

Result<ImagePromptInputs> BatchTexts::encoded(const std::string& text,
                                              SpecialTokens special_tokens) const {
  EncodeOptions options;
  options.special_tokens = special_tokens;
  const Result<Encoding> encoding = tokenizer_->encode(text, options);
  if (!encoding) return encoding.error();
  return ImagePromptInputs{encoding->ids, {}};
}

// As `generate --picture` reads it: a text without placeholders is what a user says.
Result<ImagePromptInputs> BatchTexts::prompt_with_pictures(const std::string& text,
                                                           const Json& urls) const {
  if (!images_) {
    return Error{ErrorCode::kUnsupported,
                 "[pictures] this model reads no images in its prompts; give a text alone."};
  }
  if (!*images_) return images_->error();
  RequestPictures pictures(limits_);
  if (const Status added = pictures.add_all(urls, "pictures"); !added) return added.error();
  std::vector<const Picture*> shown;
  for (const Picture& picture : pictures.all()) shown.push_back(&picture);
  const Result<PromptWithPictures> prompt = prompts_->prompt(text, std::move(shown));
  if (!prompt) return prompt.error();
  return (*images_)->read(*prompt);
}

// As `chat` reads them.
Result<ImagePromptInputs> BatchTexts::prompt_of_messages(const Json& given) const {
  if (!template_) {
    return bad_request("messages",
                       "need a chat template and a tokenizer.json beside the model, a decoder; "
                       "there is none, so give [text] instead");
  }
  if (!*template_) return template_->error();
  if (images_ && !*images_) return images_->error();
  RequestPictures pictures(limits_);
  const Result<Json> messages =
      read_messages(given, images_ ? MessageContent::kParts : MessageContent::kText, pictures);
  if (!messages) return messages.error();
  Result<std::string> text = (*template_)->render_json(json_text(*messages));
  if (!text) {
    return Error{ErrorCode::kInvalidArgument, text.error().with_context("messages").message};
  }
  if (!images_) return encoded(*text, SpecialTokens::kExclude);
  PromptWithPictures prompt{std::move(*text), {}};
  for (const Picture& picture : pictures.all()) prompt.pictures.push_back(&picture);
  return (*images_)->read(prompt);
}

// As `generate --picture` reads it: one picture, and a text that its description begins with.
Result<ImagePromptInputs> BatchTexts::prompt_to_describe(const Json& fields) const {
  if (!*images_) return images_->error();
  const bool said = fields.contains("messages");
  if (fields.contains("ids") || said == fields.contains("pictures") ||
      (said && fields.contains("text"))) {
    return bad_request("pictures",
                       "must be given, a list of one data URL, or else [messages] with it, because "
                       "this model describes a picture; [text] may go with [pictures]");
  }
  RequestPictures pictures(limits_);
  Result<std::string> text = std::string();
  if (said) {
    text = read_described(fields["messages"], pictures);
  } else {
    const Json begins = fields.value("text", Json(""));
    if (!begins.is_string()) return bad_request("text", "must be a text");
    text = begins.get<std::string>();
    if (const Status added = pictures.add_all(fields["pictures"], "pictures"); !added)
      return added.error();
  }
  if (!text) return text.error();
  PromptWithPictures prompt{std::move(*text), {}};
  for (const Picture& picture : pictures.all()) prompt.pictures.push_back(&picture);
  return (*images_)->read(prompt);
}

Result<ImagePromptInputs> BatchTexts::prompt_of(const Json& fields) const {
  if (describes_) return prompt_to_describe(fields);
  const int given = (fields.contains("ids") ? 1 : 0) + (fields.contains("text") ? 1 : 0) +
                    (fields.contains("messages") ? 1 : 0);
  if (given != 1) {
    return bad_request("text", "or [ids] or [messages] must be given, one of the three");
  }
  if (fields.contains("pictures") && !fields.contains("text")) {
    return bad_request("pictures",
                       "go with [text]; in [messages] a picture is a part, and [ids] have none");
  }
  if (fields.contains("messages")) return prompt_of_messages(fields["messages"]);
  if (fields.contains("ids")) {
    const Json& ids = fields["ids"];
    const bool whole = ids.is_array() && std::all_of(ids.begin(), ids.end(), [](const Json& id) {
                         return id.is_number_integer();
                       });
    if (!whole) return bad_request("ids", "must be a list of token ids");
    return ImagePromptInputs{ids.get<std::vector<TokenId>>(), {}};
  }
  if (!fields["text"].is_string()) return bad_request("text", "must be a text");
  if (tokenizer_ == nullptr) {
    return bad_request("text",
                       "needs a tokenizer beside the model; there is none, so give "
                       "[ids] instead");
  }
  const std::string text = fields["text"].get<std::string>();
  if (fields.contains("pictures")) return prompt_with_pictures(text, fields["pictures"]);
  return encoded(text, SpecialTokens::kInclude);
}

size_t BatchTexts::begun(const std::vector<TokenId>& prompt) const {
  if (!encoder_) return prompt.size();
  const size_t start = std::max<size_t>(1, batch_.generation_defaults().decoder_prompt.size());
  return start + (describes_ ? prompt.size() : 0);
}

Result<BatchTexts::Line> BatchTexts::line_behind(const std::vector<TokenId>& prompt,
                                                 StopStrings stops) const {
  Line line{.stops = std::move(stops)};
  if (tokenizer_ == nullptr) return line;
  line.stream = tokenizer_->decode_stream();
  if (encoder_ && !describes_) return line;
  // After a prompt, a text begins with the space that it would lose at the start of a line.
  for (const TokenId id : prompt) {
    const Result<std::string> before = line.stream->push(id);
    if (!before) return before.error();
    if (describes_) line.piece += *before;
  }
  return line;
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
      Result<GrammarVocabulary> made = GrammarVocabulary::create(*tokenizer_, vocab_, o.eos);
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
  if (const Status known = check_fields(fields); !known) return known.error();
  Result<ImagePromptInputs> prompt = prompt_of(fields);
  if (!prompt) return prompt.error();
  request.prompt = std::move(prompt->ids);
  request.inputs = std::move(prompt->inputs);
  GenerateOptions& o = request.options;
  o.max_new_tokens = usual_tokens(begun(request.prompt));
  if (const Status read = read_settings(fields, o); !read) return read.error();
  if (const Status read = read_words(fields, tokenizer_.get(), o.penalties); !read)
    return read.error();
  if (const Status read = read_adapters(fields, o.adapters); !read) return read.error();
  if (const Status read = read_grammar(fields, o); !read) return read.error();
  if (fields.contains("client")) {
    if (!fields["client"].is_string()) return bad_request("client", "must be a text");
    request.client = fields["client"].get<std::string>();
  }
  const Result<std::vector<std::string>> stops = texts_of(fields, "stop", tokenizer_.get());
  if (!stops) return stops.error();
  auto story = std::make_shared<Story>(Story{.id = fields["id"], .lines = {}, .error = {}});
  if (fields.contains("log_probabilities")) {
    const Json& wanted = fields["log_probabilities"];
    if (!wanted.is_boolean()) return bad_request("log_probabilities", "must be true or false");
    story->log_probabilities = wanted.get<bool>();
  }
  for (int sequence = 0; sequence < o.return_sequences; ++sequence) {
    Result<Line> line = line_behind(request.prompt, StopStrings(*stops));
    if (!line) return line.error();
    story->lines.push_back(std::move(*line));
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

bool BatchTexts::has_room(const Json& fields) const {
  const int64_t sequences = fields.value("return_sequences", int64_t{1});
  return batch_.counters().waiting + sequences <= most_waiting_;
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
  if (log_probabilities) {
    line.log_probabilities.push_back(short_float(static_cast<float>(token.log_probability)));
  }
  if (!line.stream) return TokenVerdict::kGoOn;
  const Result<std::string> piece = line.stream->push(token.id);
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
      if (story->log_probabilities) event["log_probabilities"] = line.log_probabilities;
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
  return static_cast<int>(std::clamp<int64_t>(room, 0, own > 0 ? own : kUsualNewTokens));
}

// What generate's texts have where nobody says: not less because a row is small.
int64_t BatchTexts::wanted_tokens(const std::vector<TokenId>& prompt) const {
  const int own = batch_.generation_defaults().max_new_tokens;
  const int64_t room = positions_ - static_cast<int64_t>(begun(prompt));
  return std::clamp<int64_t>(room, 0, own > 0 ? own : kUsualNewTokens);
}

Status BatchTexts::submit_as(size_t id, Json fields) {
  fields["id"] = id;
  if (!fields.contains("max_new_tokens")) {
    const Result<ImagePromptInputs> prompt = prompt_of(fields);
    if (!prompt) return prompt.error();
    fields["max_new_tokens"] = wanted_tokens(prompt->ids);
  }
  return submit(fields);
}

void BatchTexts::abandon() {
  for (const auto& [number, story] : stories_) (void)batch_.cancel(number);
  // An error is of the device, so that there is nothing left to wait for.
  while (!idle() && batch_.step()) continue;
  stories_.clear();
}

Result<std::vector<std::vector<Json>>> BatchTexts::answer(const std::vector<Json>& requests,
                                                          const OnPiece& on_piece) {
  auto answers = run_requests(requests, on_piece);
  if (!answers) abandon();
  return answers;
}

Result<std::vector<std::vector<Json>>> BatchTexts::run_requests(const std::vector<Json>& requests,
                                                                const OnPiece& on_piece) {
  std::vector<std::vector<Json>> answers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    answers[i].resize(requests[i].value("return_sequences", size_t{1}));
  size_t submitted = 0;
  while (submitted < requests.size() || !idle()) {
    while (submitted < requests.size()) {
      const Status taken = submit_as(submitted, requests[submitted]);
      if (!taken && taken.error().code == ErrorCode::kQueueFull && !idle()) break;
      if (!taken) return taken.error();
      ++submitted;
    }
    const Result<std::vector<Json>> events = step();
    if (!events) return events.error();
    for (Json event : *events) {
      if (event.contains("error")) {
        return Error{ErrorCode::kInvalidArgument, event["error"].get<std::string>()};
      }
      const Json id = event["id"];
      if (on_piece && on_piece(event) == TokenVerdict::kEnd && event["event"] == "text") {
        if (const Status ended = cancel(id); !ended) return ended.error();
      }
      if (event["event"] != "end") continue;
      Json& answer = answers[id.get<size_t>()][event.value("sequence", size_t{0})];
      for (const char* key : {"id", "event", "reason", "sequence"}) event.erase(key);
      answer = std::move(event);
    }
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
