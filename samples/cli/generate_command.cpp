// `vkformer generate`: texts in, generated texts out, in the order of the inputs.
#include <algorithm>
#include <memory>
#include <optional>

#include "command_line.h"
#include "text_inputs.h"
#include "vkformer/session.h"

namespace vkformer::cli {

namespace {

// Batches read, sorted by length and generated together. More would waste less on padding, fewer
// would print the first result sooner.
constexpr size_t kBatchesPerWindow = 16;

struct GenerateCommandOptions {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
  ModelOptions load;
  size_t batch = 32;
  bool truncate = false;
  std::optional<int> beams, max_new_tokens, min_new_tokens, return_sequences;
  std::optional<double> length_penalty;
  std::optional<std::string> early_stopping;
};

struct Item {
  TextInput input;
  std::vector<int64_t> ids;       // empty: nothing to generate from
  std::vector<Hypothesis> found;  // best first
};

// Everything a run needs, opened once.
struct Generator {
  Tokenizer tokenizer;
  Model model;
  Session session;
  GenerateOptions settings;
};

GenerateOptions settings_of(const Session& session, const GenerateCommandOptions& options) {
  GenerateOptions settings = session.generation_defaults();
  settings.beams = options.beams.value_or(settings.beams);
  settings.max_new_tokens = options.max_new_tokens.value_or(settings.max_new_tokens);
  settings.min_new_tokens = options.min_new_tokens.value_or(settings.min_new_tokens);
  settings.return_sequences = options.return_sequences.value_or(settings.return_sequences);
  settings.length_penalty = options.length_penalty.value_or(settings.length_penalty);
  settings.early_stopping = options.early_stopping.value_or(settings.early_stopping);
  return settings;
}

Result<std::vector<Item>> encode_items(const Generator& generator, std::vector<TextInput> inputs,
                                       LongInput long_input) {
  const int64_t limit = generator.model.info().max_source;
  std::vector<Item> items;
  items.reserve(inputs.size());
  for (TextInput& input : inputs) {
    Item item{std::move(input), {}, {}};
    if (!item.input.text.empty()) {
      Result<Encoding> encoding = encode_input(generator.tokenizer, item.input, limit, long_input);
      if (!encoding) return encoding.error();
      item.ids = wide_ids(encoding->ids);
    }
    items.push_back(std::move(item));
  }
  return items;
}

// Indices of the items that have tokens, short ones first, so that a batch has little padding.
std::vector<size_t> by_length(const std::vector<Item>& items) {
  std::vector<size_t> order;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].ids.empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return items[a].ids.size() < items[b].ids.size(); });
  return order;
}

Status generate_items(Generator& generator, std::vector<Item>& items, size_t batch) {
  const std::vector<size_t> order = by_length(items);
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    const size_t end = std::min(order.size(), begin + batch);
    std::vector<std::vector<int64_t>> rows;
    for (size_t i = begin; i < end; ++i) rows.push_back(items[order[i]].ids);
    Result<Generation> generation = generator.session.generate(rows, generator.settings);
    if (!generation) {
      return generation.error().with_context("[" + items[order[begin]].input.origin + "] and " +
                                             std::to_string(end - begin - 1) +
                                             " others in its batch");
    }
    for (size_t i = begin; i < end; ++i) {
      items[order[i]].found = std::move((*generation)[i - begin]);
    }
  }
  return {};
}

Result<Json> hypothesis_json(const Generator& generator, const Hypothesis& hypothesis) {
  const Result<std::string> text = decode_text(generator.tokenizer, hypothesis.ids);
  if (!text) return text.error();
  Json json;
  json["text"] = *text;
  json["ids"] = Json::array();
  for (const int64_t id : hypothesis.ids) {
    if (id != generator.settings.pad) json["ids"].push_back(id);
  }
  json["score"] = hypothesis.score;
  return json;
}

Status print_item_json(const Generator& generator, const Item& item) {
  Json json;
  json["input"] = item.input.text;
  Json sequences = Json::array();
  for (const Hypothesis& hypothesis : item.found) {
    Result<Json> entry = hypothesis_json(generator, hypothesis);
    if (!entry) return entry.error();
    sequences.push_back(std::move(*entry));
  }
  if (sequences.empty()) {
    json["text"] = "";
    json["ids"] = Json::array();
    json["score"] = nullptr;
  } else {
    json.update(sequences.front());
  }
  if (generator.settings.return_sequences > 1) json["sequences"] = std::move(sequences);
  print_json(json);
  return {};
}

Status print_item_text(const Generator& generator, const Item& item) {
  std::string line = item.input.text;
  if (item.found.empty()) line += '\t';
  for (const Hypothesis& hypothesis : item.found) {
    const Result<std::string> text = decode_text(generator.tokenizer, hypothesis.ids);
    if (!text) return text.error();
    line += '\t' + *text;
  }
  print_line(line);
  return {};
}

Result<Generator> open_generator(const CommonOptions& common, const GenerateCommandOptions& options,
                                 int& exit_code) {
  exit_code = kExitFailed;
  Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer) return tokenizer.error();
  const Result<Device> device = open_device(common);
  if (!device) {
    exit_code = kExitNoDevice;
    return device.error();
  }
  Result<Model> model = load_model(common, *device, options.model, options.load);
  if (!model) return model.error();
  Result<Session> session = Session::create(*model);
  if (!session) return session.error();
  GenerateOptions settings = settings_of(*session, options);
  return Generator{std::move(*tokenizer), std::move(*model), std::move(*session),
                   std::move(settings)};
}

Status generate_all(const CommonOptions& common, const GenerateCommandOptions& options,
                    InputReader& reader, Generator& generator) {
  const LongInput long_input = options.truncate ? LongInput::kTruncate : LongInput::kError;
  Progress progress("generating", common.progress());
  int64_t done = 0;
  while (true) {
    Result<std::vector<TextInput>> inputs = reader.next(options.batch * kBatchesPerWindow);
    if (!inputs) return inputs.error();
    if (inputs->empty()) return {};
    Result<std::vector<Item>> items = encode_items(generator, std::move(*inputs), long_input);
    if (!items) return items.error();
    const Status generated = generate_items(generator, *items, options.batch);
    if (!generated) return generated;
    progress.hide();
    for (const Item& item : *items) {
      const Status printed =
          common.json ? print_item_json(generator, item) : print_item_text(generator, item);
      if (!printed) return printed;
    }
    done += static_cast<int64_t>(items->size());
    progress.set(done);
  }
}

int run_generate(const CommonOptions& common, const GenerateCommandOptions& options) {
  if (options.texts.empty() == options.file.empty()) {
    return report_usage("[generate] takes either TEXT arguments or --file, and got " +
                        std::string(options.file.empty() ? "neither." : "both."));
  }
  Result<InputReader> reader = InputReader::open(options.texts, options.file);
  if (!reader) return report(reader.error());
  int exit_code = kExitFailed;
  Result<Generator> generator = open_generator(common, options, exit_code);
  if (!generator) {
    return exit_code == kExitNoDevice ? report_device(generator.error())
                                      : report(generator.error());
  }
  const Status done = generate_all(common, options, *reader, *generator);
  return done ? kExitOk : report(done.error());
}

void add_search_options(CLI::App& command, GenerateCommandOptions& options) {
  const char* group = "Search (defaults: generation_config.json of the model)";
  command.add_option("--beams", options.beams, "beams per input; 1 is greedy")
      ->check(CLI::Range(1, 64))
      ->group(group);
  command.add_option("--max-new-tokens", options.max_new_tokens, "tokens to generate at most")
      ->check(CLI::Range(1, 1 << 20))
      ->group(group);
  command.add_option("--min-new-tokens", options.min_new_tokens, "tokens before the end token")
      ->check(CLI::Range(0, 1 << 20))
      ->group(group);
  command
      .add_option("--length-penalty", options.length_penalty,
                  "exponent of the length that a beam's score is divided by")
      ->group(group);
  command.add_option("--early-stopping", options.early_stopping, "when beam search may stop")
      ->check(CLI::IsMember({"false", "true", "never"}))
      ->group(group);
  command
      .add_option("--return-sequences", options.return_sequences,
                  "best sequences per input, at most --beams")
      ->check(CLI::Range(1, 64))
      ->group(group);
}

}  // namespace

void add_generate_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "generate", "Generate text from text: one line `input<TAB>text` per input, in order.");
  const auto options = std::make_shared<GenerateCommandOptions>();
  command->add_option("MODEL", options->model, "model directory")->required();
  command->add_option("TEXT", options->texts, "inputs, each argument one");
  command->add_option("--file", options->file, "inputs, one a line; - is stdin");
  command->add_option("--batch", options->batch, "inputs generated together")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--truncate", options->truncate, "cut inputs that the model cannot take");
  add_search_options(*command, *options);
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer generate models/g2p-en attention is all you need\n"
               "  vkformer generate models/g2p-en --file words.txt --batch 64 --beams 4 --json\n"
               "  echo hello | vkformer generate models/g2p-en --file -\n"
               "  vkformer generate models/g2p-en read --beams 4 --return-sequences 4\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_generate(line.common, *options); };
  });
}

}  // namespace vkformer::cli
