// `vkformer generate`: texts in, continuations, translations or summaries out.
#include <algorithm>
#include <cstdio>

#include "batch_texts.h"
#include "choice_options.h"
#include "picture_prompts.h"
#include "task_command.h"
#include "terminal.h"

namespace vkformer::cli {

namespace {

struct GenerateCommandOptions {
  TaskCommandOptions task;
  TextOptions text;
  ChoiceCommandOptions choice;
  BatchFlags drafts;
  std::string stream = "auto";
  bool log_probabilities = false;
  std::optional<std::string> continuation;  // to be scored instead of generating
  std::vector<std::string> pictures;        // files, of every text
};

Result<std::vector<SharedPicture>> load_pictures(const std::vector<std::string>& paths) {
  std::vector<SharedPicture> pictures;
  for (const std::string& path : paths) {
    Result<SharedPicture> picture = load_named_picture(path);
    if (!picture) return picture.error();
    pictures.push_back(std::move(*picture));
  }
  return pictures;
}

// The files that an input's field "pictures" names: one, or a list.
Result<std::vector<std::string>> picture_paths(const Json& input) {
  const auto found = input.find("pictures");
  if (found == input.end() || found->is_null()) return std::vector<std::string>();
  const Json list = found->is_array() ? *found : Json::array({*found});
  std::vector<std::string> paths;
  for (const Json& path : list) {
    if (!path.is_string()) {
      return Error{ErrorCode::kInvalidArgument,
                   "[pictures] of the input must be the path of a file, or a list of paths."};
    }
    paths.push_back(path.get<std::string>());
  }
  return paths;
}

Json text_fields_of(const GeneratedText& generated, bool log_probabilities) {
  Json json;
  json["text"] = generated.text;
  json["ids"] = generated.ids;
  json["score"] = generated.score;
  if (!log_probabilities) return json;
  json["log_probabilities"] = Json::array();
  for (float value : generated.log_probabilities)
    json["log_probabilities"].push_back(short_float(value));
  return json;
}

// Texts with the pictures of the command line and of each input.
Result<std::vector<std::vector<GeneratedText>>> generate_with_pictures(
    TextGenerator& generator, const std::vector<Json>& inputs,
    const std::vector<std::string>& texts, const GenerateCommandOptions& options) {
  const Result<std::string> placeholder = generator.picture_placeholder();
  if (!placeholder) return placeholder.error();
  const Result<PicturePrompts> writer = PicturePrompts::open(*placeholder, options.task.model);
  if (!writer) return writer.error();
  const Result<std::vector<SharedPicture>> shared = load_pictures(options.pictures);
  if (!shared) return shared.error();
  std::vector<SharedPicture> all;  // stay until the texts are there
  std::vector<PromptWithPictures> prompts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Result<std::vector<std::string>> paths = picture_paths(inputs[i]);
    if (!paths) return paths.error();
    const Result<std::vector<SharedPicture>> more = load_pictures(*paths);
    if (!more) return more.error();
    std::vector<SharedPicture> own = *shared;
    own.insert(own.end(), more->begin(), more->end());
    std::vector<const Picture*> shown;
    for (const SharedPicture& picture : own) shown.push_back(&picture->picture);
    Result<PromptWithPictures> prompt = writer->prompt(options.text.prefix + texts[i], shown);
    if (!prompt) return prompt.error();
    prompts.push_back(std::move(*prompt));
    all.insert(all.end(), own.begin(), own.end());
  }
  TextOptions text = options.text;
  text.prefix.clear();
  return generator.generate_with_pictures(prompts, text);
}

// Whether one of the inputs speaks of pictures.
bool has_pictures(const std::vector<Json>& inputs, const GenerateCommandOptions& options) {
  if (!options.pictures.empty()) return true;
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Json& input) { return input.contains("pictures"); });
}

Result<std::vector<Json>> generate(TextGenerator& generator, const std::vector<Json>& inputs,
                                   const GenerateCommandOptions& options) {
  const Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  const auto generated = has_pictures(inputs, options)
                             ? generate_with_pictures(generator, inputs, *texts, options)
                             : generator.generate(*texts, options.text);
  if (!generated) return generated.error();
  std::vector<Json> answers;
  for (const std::vector<GeneratedText>& best : *generated) {
    Json fields =
        text_fields_of(best.empty() ? GeneratedText{} : best[0], options.log_probabilities);
    if (best.empty()) {
      fields["ids"] = Json::array();
      fields["score"] = nullptr;
    }
    if (options.text.return_sequences.value_or(1) > 1) {
      fields["sequences"] = Json::array();
      for (const GeneratedText& one : best)
        fields["sequences"].push_back(text_fields_of(one, options.log_probabilities));
    }
    answers.push_back(std::move(fields));
  }
  return answers;
}

// What the model thinks of a given continuation of every input.
Result<std::vector<Json>> score(TextGenerator& generator, const std::vector<Json>& inputs,
                                const GenerateCommandOptions& options) {
  const std::string& continuation = *options.continuation;
  if (generator.info().kind != ModelKind::kDecoder) {
    return Error{ErrorCode::kUnsupported,
                 "[continuation] this model translates: what it writes need not be what its "
                 "tokenizer reads; use Session::score with ids."};
  }
  Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  for (std::string& text : *texts) text.insert(0, options.text.prefix);
  const auto scores =
      generator.score(*texts, std::vector<std::string>(texts->size(), continuation));
  if (!scores) return scores.error();
  std::vector<Json> answers;
  for (const std::vector<float>& list : *scores) {
    Json fields = {{"text", continuation}, {"score", 0.0}, {"log_probabilities", Json::array()}};
    double sum = 0;
    for (const float value : list) {
      sum += static_cast<double>(value);
      fields["log_probabilities"].push_back(short_float(value));
    }
    fields["score"] = sum;
    answers.push_back(std::move(fields));
  }
  return answers;
}

// `input<TAB>text`, and what else was found; of a given continuation its score.
std::string plain_line(const Json& line) {
  if (!line.contains("ids")) {
    return line["input"].get<std::string>() + '\t' + json_text(line["score"]);
  }
  std::string text = line["input"].get<std::string>() + '\t' + line["text"].get<std::string>();
  if (!line.contains("sequences")) return text;
  for (size_t i = 1; i < line["sequences"].size(); ++i) {
    text += '\t' + line["sequences"][i]["text"].get<std::string>();
  }
  return text;
}

// Whether the answer is one text on stdout and nothing else.
bool answers_one_text(const CommonOptions& common, const GenerateCommandOptions& options) {
  return options.task.arguments.size() == 1 && options.task.input.empty() &&
         options.task.output.empty() && !common.json && !options.task.nan_check &&
         options.text.return_sequences.value_or(1) == 1;
}

// Whether a text is to be seen while it is written: asked for, or the answer on a terminal.
bool streams(const CommonOptions& common, const GenerateCommandOptions& options) {
  if (options.continuation) return false;
  if (options.stream != "auto") return options.stream == "on";
  return is_terminal(stdout) && answers_one_text(common, options) &&
         options.text.beams.value_or(1) == 1;
}

// Shows a text while it is written, until the user asks to stop.
class TextDisplay {
 public:
  // A continuation reads on from its prompt; into a file goes what was generated.
  explicit TextDisplay(const std::string& prompt) {
    if (is_terminal(stdout)) std::fputs(prompt.c_str(), stdout);
  }

  TokenVerdict show(std::string_view piece) {
    clock.piece();
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
    return interrupt_.raised() ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
  }

  TextClock clock;

 private:
  Interrupt interrupt_;
};

// One text, shown while it is written, with its rate on stderr.
int run_stream(const CommonOptions& common, const GenerateCommandOptions& options) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  TaskOptions task;
  if (options.task.truncate) task.long_text = LongText::kTruncate;
  const std::string& path = options.task.model;
  Result<TextGenerator> generator =
      with_progress(common, path, options.task.load, [&](const ModelOptions& watched) {
        task.model = watched;
        return TextGenerator::load(*device, ModelSource::directory(path), task);
      });
  if (!generator) return report(generator.error());
  const std::string& prompt = options.task.arguments[0];
  TextOptions text = options.text;
  text.beams = text.beams.value_or(1);
  // With pictures a text is mostly asked for, not read on.
  const bool reads_on = generator->info().kind == ModelKind::kDecoder && options.pictures.empty();
  TextDisplay display(reads_on ? prompt : "");
  text.on_text = [&](const TextPiece& piece) { return display.show(piece.text); };
  GenerateCommandOptions shown = options;
  shown.text = text;
  const auto generated =
      options.pictures.empty()
          ? generator->generate({&prompt, 1}, text)
          : generate_with_pictures(*generator, {Json::object()}, {prompt}, shown);
  std::fputs("\n", stdout);
  if (!generated) return report(generated.error());
  const auto& found = (*generated)[0];
  if (!common.quiet) {
    print_message(display.clock.report(found.empty() ? 0 : found[0].ids.size()) + ", seed " +
                  std::to_string(*text.seed));
  }
  return kExitOk;
}

// Whether a model describes pictures, so that a text is what its description begins with.
bool describes_pictures(const std::string& model) {
  const Result<ModelInfo> info = inspect_model(model);
  return info.ok() && info->kind == ModelKind::kEncoderDecoder &&
         info->source == SourceKind::kPictures;
}

// The picture of one input: the command line's or its own.
Result<SharedPicture> described_picture(const Json& input, const GenerateCommandOptions& options) {
  Result<std::vector<std::string>> paths = picture_paths(input);
  if (!paths) return paths.error();
  paths->insert(paths->begin(), options.pictures.begin(), options.pictures.end());
  if (paths->size() == 1) return load_named_picture(paths->front());
  return Error{ErrorCode::kInvalidArgument,
               "[pictures] This model describes one picture at a time, but " +
                   std::to_string(paths->size()) +
                   " were given; give one, or use `vkformer caption` for several."};
}

Result<std::vector<Json>> describe(Captioner& captioner, const std::vector<Json>& inputs,
                                   const GenerateCommandOptions& options) {
  const Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  std::vector<Json> answers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Result<SharedPicture> picture = described_picture(inputs[i], options);
    if (!picture) return picture.error();
    TextOptions text = options.text;
    text.prefix += (*texts)[i];
    const auto found = captioner.caption({&(*picture)->picture, 1}, text);
    if (!found) return found.error();
    answers.push_back({{"text", found->front()}});
  }
  return answers;
}

// Descriptions of pictures, which begin with the texts; without any TEXT, as the model likes.
int run_descriptions(const CommonOptions& common, GenerateCommandOptions& options) {
  if (options.stream == "on" || options.log_probabilities || options.text.return_sequences) {
    return report_usage(
        "[generate] --stream, --log-probabilities and --return-sequences are for models that go on "
        "with a text; this one describes pictures, so leave these away.");
  }
  if (options.task.arguments.empty() && options.task.input.empty()) options.task.arguments = {""};
  return run_task_command(
      common, options.task,
      {.command = "generate",
       .renamed = "input",
       .plain = [](const Json& line) { return line["text"].get<std::string>(); }},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<Captioner> loaded = Captioner::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto captioner = std::make_shared<Captioner>(std::move(*loaded));
        return AnswerInputs([captioner, &options](const std::vector<Json>& inputs) {
          return describe(*captioner, inputs, options);
        });
      });
}

// A request of a batch with the settings of the command line.
Json request_of(const std::string& text, const GenerateCommandOptions& options) {
  const TextOptions& o = options.text;
  Json fields = {{"text", o.prefix + text}};
  const auto add = [&](const char* key, const auto& setting) {
    if (setting) fields[key] = *setting;
  };
  add("max_new_tokens", o.max_new_tokens);
  add("min_new_tokens", o.min_new_tokens);
  add("return_sequences", o.return_sequences);
  add("temperature", o.temperature);
  add("top_k", o.top_k);
  add("top_p", o.top_p);
  add("min_p", o.min_p);
  add("typical_p", o.typical_p);
  add("seed", o.seed);
  add("repetition_penalty", o.repetition_penalty);
  add("presence_penalty", o.presence_penalty);
  add("frequency_penalty", o.frequency_penalty);
  add("no_repeat_ngram", o.no_repeat_ngram);
  if (!o.bad_words.empty()) fields["bad_words"] = o.bad_words;
  for (const TextBias& bias : o.biases) {
    Json& sum = fields["logit_bias"][bias.text];
    sum = bias.bias + (sum.is_null() ? 0.0 : sum.get<double>());
  }
  if (!o.stop.empty()) fields["stop"] = o.stop;
  if (!options.choice.grammar.empty()) fields["grammar"] = options.choice.constraint;
  if (!options.choice.json_schema.empty()) fields["json_schema"] = options.choice.constraint;
  if (options.log_probabilities) fields["log_probabilities"] = true;
  return fields;
}

// Tokens of a prompt or text whose length nobody knows yet, and those that a tokenizer adds, with
// room to spare.
constexpr size_t kUsualLength = 1024;
constexpr int64_t kSpecialTokens = 8;

// Why these options exclude draft tokens; empty: they do not.
std::string draft_error(const GenerateCommandOptions& options) {
  const TextOptions& t = options.text;
  const bool searches = t.beams.value_or(1) != 1 || t.beam_groups.value_or(1) != 1 || t.diversity ||
                        t.contrastive_tokens.value_or(0) != 0;
  const bool translates =
      !t.task.empty() || !t.source_language.empty() || !t.target_language.empty();
  if (!searches && !translates && !options.task.truncate && options.task.cache == CacheFormat::kF32)
    return "";
  return "[generate] --draft and --prompt-lookup propose the tokens that come next, which goes "
         "with "
         "anything but --beams, --beam-groups, --diversity, --contrastive-tokens, --task, "
         "--source-language, --target-language, --truncate and --cache; leave these away.";
}

// The rows of a step have room for the drafts of each.
void fit_batch(GenerateCommandOptions& options) {
  BatchOptions& batch = options.drafts.batch;
  const size_t texts = options.task.arguments.size() *
                       static_cast<size_t>(options.text.return_sequences.value_or(1));
  batch.rows = texts == 0 ? 4 : static_cast<int>(std::min<size_t>(texts, 4));
  batch.step_tokens = std::max(16, batch.rows * (1 + batch.draft_tokens));
  batch.waiting = std::max(batch.waiting, options.text.return_sequences.value_or(1));
  size_t longest = options.task.input.empty() ? 0 : kUsualLength;
  for (const std::string& text : options.task.arguments) longest = std::max(longest, text.size());
  options.drafts.room = static_cast<int64_t>(longest + options.text.prefix.size()) +
                        kSpecialTokens + options.text.max_new_tokens.value_or(kUsualLength);
  batch.context = options.text.context;
  batch.sinks = options.text.sinks.value_or(batch.sinks);
  options.drafts.model = options.task.model;
  options.drafts.load = options.task.load;
}

Result<std::shared_ptr<BatchTexts>> open_drafts(const CommonOptions& common, const Device& device,
                                                const GenerateCommandOptions& options) {
  Result<BatchTexts> opened = BatchTexts::open(common, device, options.drafts);
  if (!opened) return opened.error();
  if (opened->usual_beams() > 1 && !options.text.beams) {
    return Error{ErrorCode::kUnsupported,
                 "[beams] the settings of this model say " + std::to_string(opened->usual_beams()) +
                     " beams, which --draft and --prompt-lookup do not go with; give --beams 1."};
  }
  return std::make_shared<BatchTexts>(std::move(*opened));
}

Result<std::vector<Json>> draft(BatchTexts& texts, const std::vector<Json>& inputs,
                                const GenerateCommandOptions& options) {
  const Result<std::vector<std::string>> prompts = text_fields(inputs, "text");
  if (!prompts) return prompts.error();
  std::vector<Json> requests;
  for (const std::string& prompt : *prompts) requests.push_back(request_of(prompt, options));
  const Result<std::vector<std::vector<Json>>> ends = texts.answer(requests);
  if (!ends) return ends.error();
  std::vector<Json> answers;
  for (const std::vector<Json>& sequences : *ends) {
    Json fields = sequences[0];
    if (sequences.size() > 1) fields["sequences"] = sequences;
    answers.push_back(std::move(fields));
  }
  return answers;
}

// One text with draft tokens, shown while it is written.
int stream_drafts(const CommonOptions& common, const GenerateCommandOptions& options) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const auto texts = open_drafts(common, *device, options);
  if (!texts) return report(texts.error());
  const std::string& prompt = options.task.arguments[0];
  TextDisplay display((*texts)->reads_on() ? prompt : "");
  size_t shown = 0;  // bytes
  const auto ends = (*texts)->answer({request_of(prompt, options)}, [&](const Json& event) {
    // An end tells the whole text.
    const bool all = event["event"] == "end";
    const std::string piece = event["text"].get<std::string>().substr(all ? shown : 0);
    shown += piece.size();
    return display.show(piece);
  });
  std::fputs("\n", stdout);
  if (!ends) return report(ends.error());
  const Json& end = (*ends)[0][0];
  if (!common.quiet) {
    print_message(display.clock.report(end["ids"].size()) + ", " + json_text(end["steps"]) +
                  " steps, " + json_text(end["accepted_tokens"]) + " of " +
                  json_text(end["draft_tokens"]) + " draft tokens right, seed " +
                  std::to_string(*options.text.seed));
  }
  return kExitOk;
}

// Texts through a batch with draft tokens: fewer steps, the same texts.
int run_drafts(const CommonOptions& common, GenerateCommandOptions& options) {
  fit_batch(options);
  if (streams(common, options)) return stream_drafts(common, options);
  return run_task_command(
      common, options.task, {.command = "generate", .renamed = "input", .plain = plain_line},
      [&](const Device& device, const ModelSource&, const TaskOptions&) -> Result<AnswerInputs> {
        const auto texts = open_drafts(common, device, options);
        if (!texts) return texts.error();
        return AnswerInputs([texts = *texts, &options](const std::vector<Json>& inputs) {
          return draft(*texts, inputs, options);
        });
      });
}

bool drafts(const GenerateCommandOptions& options) {
  return !options.drafts.draft.empty() || options.drafts.batch.lookup > 0;
}

// Why these options do not go together; empty: they do.
std::string usage_error(const CommonOptions& common, const GenerateCommandOptions& options) {
  if (options.continuation && (drafts(options) || options.stream == "on")) {
    return "[generate] --continuation generates nothing; leave --stream, --draft and "
           "--prompt-lookup "
           "away.";
  }
  if (options.stream == "on" && !answers_one_text(common, options)) {
    return "[generate] --stream on writes one text to stdout; give one TEXT, without --input, "
           "--output, --json, --nan-check and --return-sequences.";
  }
  if (!options.pictures.empty() && (drafts(options) || options.continuation)) {
    return "[generate] --picture goes with neither --draft, --prompt-lookup nor --continuation, "
           "which "
           "take texts alone; leave these away.";
  }
  if (drafts(options)) return draft_error(options);
  const BatchOptions& batch = options.drafts.batch;
  if (batch.capacity == 0 && batch.draft_tokens == BatchOptions().draft_tokens) return "";
  return "[generate] --draft-tokens and --capacity are settings of --draft and --prompt-lookup; "
         "give one "
         "of "
         "these, too.";
}

// What the first batch will run, as far as that is known before there is a tokenizer.
SessionSizes first_use(const GenerateCommandOptions& options) {
  constexpr int kUsualTokens = 32;
  // Of subwords; what reads letters reads short texts, and few tokens share their kernels.
  constexpr int64_t kBytesPerToken = 4;
  const TaskCommandOptions& task = options.task;
  size_t longest = 0;
  for (const std::string& text : task.arguments) longest = std::max(longest, text.size());
  SessionSizes sizes;
  sizes.batch = std::min<int64_t>(task.batch, static_cast<int64_t>(task.arguments.size()));
  sizes.tokens = std::max<int64_t>(1, static_cast<int64_t>(longest) / kBytesPerToken);
  sizes.new_tokens = options.text.max_new_tokens.value_or(kUsualTokens);
  sizes.beams = options.text.beams.value_or(0);
  sizes.cache = task.cache;
  return sizes;
}

int run_generate(const CommonOptions& common, GenerateCommandOptions& options) {
  const Status choice = finish_choice(options.choice, options.text);
  if (!choice) return report(choice.error());
  const std::string usage = usage_error(common, options);
  if (!usage.empty()) return report_usage(usage);
  if (drafts(options)) return run_drafts(common, options);
  if (!options.pictures.empty() && describes_pictures(options.task.model)) {
    return run_descriptions(common, options);
  }
  // How many tokens pictures become is not known yet.
  if (!options.continuation && options.task.input.empty() && options.pictures.empty())
    options.task.load.first_use = first_use(options);
  if (streams(common, options)) return run_stream(common, options);
  return run_task_command(
      common, options.task, {.command = "generate", .renamed = "input", .plain = plain_line},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<TextGenerator> loaded = TextGenerator::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto generator = std::make_shared<TextGenerator>(std::move(*loaded));
        return AnswerInputs([generator, &options](const std::vector<Json>& inputs) {
          return options.continuation ? score(*generator, inputs, options)
                                      : generate(*generator, inputs, options);
        });
      });
}

}  // namespace

void add_generate_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "generate", "Generate text from text: one line `input<TAB>text` per input, in order.");
  const auto options = std::make_shared<GenerateCommandOptions>();
  add_task_options(*command, options->task, line, "TEXT");
  add_truncate_option(*command, options->task);
  add_search_options(*command, options->text);
  add_choice_options(*command, options->text, options->choice);
  add_cache_option(*command, options->task.cache);
  add_draft_options(*command, line, options->drafts);
  command
      ->add_option("--return-sequences,--num-sequences", options->text.return_sequences,
                   "sequences per input: the best of at most --beams, or this number sampled")
      ->check(CLI::Range(1, 4080));
  command
      ->add_option(
          "--stream", options->stream,
          "write a text while it is generated, its rate to stderr; default auto: one on a terminal")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->expected(0, 1)
      ->default_str("on");
  command->add_flag("--log-probabilities", options->log_probabilities,
                    "with --json: the log-probability of every token, by the model's logits");
  command->add_option("--continuation", options->continuation,
                      "generate nothing: the log-probabilities of this text after every input");
  CLI::Option* context = command->add_option(
      "--context", options->text.context,
      "keys in a decoder's cache, its sinks included; the oldest others are dropped");
  command
      ->add_option("--sinks", options->text.sinks,
                   "first keys of --context, which are never dropped")
      ->needs(context);
  add_file_option(*command, "--picture", options->pictures,
                  "a picture that every TEXT speaks of, for models that read images; may be "
                  "repeated; of models "
                  "that describe one picture, TEXT is what the description begins with")
      ->allow_extra_args(false);
  command->add_option("--prefix", options->text.prefix, "text to put before every input");
  command->add_option("--task", options->text.task,
                      "one of the model's task_specific_params, such as summarization");
  command->add_option("--source-language", options->text.source_language,
                      "of a translation, as the tokenizer names it");
  command->add_option("--target-language", options->text.target_language,
                      "of a translation, as the tokenizer names it");
  add_examples(
      *command,
      "  vkformer generate models/g2p-en attention is all you need\n"
      "  vkformer generate models/g2p-en --file words.txt --batch 64 --beams 4 --json\n"
      "  echo hello | vkformer generate models/g2p-en --file -\n"
      "  vkformer generate models/g2p-en read --beams 4 --return-sequences 4\n"
      "  vkformer generate models/shakespeare ROMEO: --temperature 0.8 --seed 7 --stream on\n"
      "  vkformer generate DIR 'An answer: ' --json-schema schema.json --max-new-tokens 200\n"
      "  vkformer generate DIR --picture cat.jpg 'What is in this picture?'\n"
      "  vkformer generate DIR --task summarization --input in.jsonl --output out.jsonl\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_generate(line.common, *options); };
  });
}

}  // namespace vkformer::cli
