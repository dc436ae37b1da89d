// `vkformer tokenize`: token ids of texts, and back.
#include <memory>

#include "command_line.h"
#include "model_path.h"
#include "text_inputs.h"

namespace vkformer::cli {

namespace {

struct TokenizeOptions {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
};

constexpr size_t kWindow = 256;  // inputs

Status print_encoding(const Tokenizer& tokenizer, const TextInput& input, bool as_json) {
  const Result<Encoding> encoding = encode_input(tokenizer, input, 0, LongInput::kError);
  if (!encoding) return encoding.error();
  if (!as_json) {
    std::string line = input.text + '\t';
    for (size_t i = 0; i < encoding->ids.size(); ++i) {
      line += (i ? " " : "") + std::to_string(encoding->ids[i]);
    }
    print_line(line);
    return {};
  }
  const Result<std::string> decoded = tokenizer.decode(encoding->ids);
  if (!decoded) return decoded.error();
  Json json;
  json["input"] = input.text;
  json["ids"] = encoding->ids;
  json["tokens"] = encoding->tokens;
  json["offsets"] = Json::array();
  for (const TextRange& range : encoding->offsets) {
    json["offsets"].push_back({range.begin, range.end});
  }
  json["type_ids"] = encoding->type_ids;
  json["decoded"] = *decoded;
  print_json(json);
  return {};
}

int run_tokenize(const CommonOptions& common, TokenizeOptions options) {
  if (options.texts.empty() && options.file.empty() && piped_input()) options.file = "-";
  if (options.texts.empty() == options.file.empty()) {
    return report_usage("[tokenize] takes TEXT arguments, --file or a pipe, and got " +
                        std::string(options.file.empty() ? "none." : "both texts and --file."));
  }
  Result<InputReader> reader = InputReader::open(options.texts, options.file);
  if (!reader) return report(reader.error());
  const Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer) return report(tokenizer.error());
  Progress progress("tokenizing", common.progress());
  int64_t done = 0;
  while (true) {
    const Result<std::vector<TextInput>> inputs = reader->next(kWindow);
    if (!inputs) return report(inputs.error());
    if (inputs->empty()) return kExitOk;
    progress.hide();
    for (const TextInput& input : *inputs) {
      const Status printed = print_encoding(*tokenizer, input, common.json);
      if (!printed) return report(printed.error());
    }
    done += static_cast<int64_t>(inputs->size());
    progress.set(done);
  }
}

}  // namespace

void add_tokenize_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "tokenize", "Turn texts into token ids with the model's tokenizer.json; needs no device.");
  const auto options = std::make_shared<TokenizeOptions>();
  CLI::Option* model = command->add_option(
      "MODEL", options->model, "model directory, GGUF file, OWNER/NAME, or a tokenizer.json");
  add_model_check(*model->required(), line, options->model, resolve_tokenizer_path);
  command->add_option("TEXT", options->texts, "inputs, each argument one");
  add_file_option(*command, "--file", options->file, "inputs, one a line; - is stdin");
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer tokenize models/g2p-en attention\n"
               "  vkformer tokenize models/g2p-en --file words.txt --json\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_tokenize(line.common, *options); };
  });
}

}  // namespace vkformer::cli
