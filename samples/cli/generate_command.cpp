// `vkformer generate`: texts in, continuations, translations or summaries out.
#include "task_command.h"

namespace vkformer::cli {

namespace {

struct GenerateCommandOptions {
  TaskCommandOptions task;
  TextOptions text;
};

Json text_fields_of(const GeneratedText& generated) {
  Json json;
  json["text"] = generated.text;
  json["ids"] = generated.ids;
  json["score"] = generated.score;
  return json;
}

Result<std::vector<Json>> generate(TextGenerator& generator, const std::vector<Json>& inputs,
                                   const TextOptions& options) {
  const Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  const auto generated = generator.generate(*texts, options);
  if (!generated) return generated.error();
  std::vector<Json> answers;
  for (const std::vector<GeneratedText>& best : *generated) {
    Json fields = text_fields_of(best.empty() ? GeneratedText{} : best[0]);
    if (best.empty()) {
      fields["ids"] = Json::array();
      fields["score"] = nullptr;
    }
    if (options.return_sequences.value_or(1) > 1) {
      fields["sequences"] = Json::array();
      for (const GeneratedText& one : best) fields["sequences"].push_back(text_fields_of(one));
    }
    answers.push_back(std::move(fields));
  }
  return answers;
}

// `input<TAB>text`, and what else was found.
std::string plain_line(const Json& line) {
  std::string text = line["input"].get<std::string>() + '\t' + line["text"].get<std::string>();
  if (!line.contains("sequences")) return text;
  for (size_t i = 1; i < line["sequences"].size(); ++i) {
    text += '\t' + line["sequences"][i]["text"].get<std::string>();
  }
  return text;
}

int run_generate(const CommonOptions& common, const GenerateCommandOptions& options) {
  return run_task_command(
      common, options.task, {.command = "generate", .renamed = "input", .plain = plain_line},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<TextGenerator> loaded = TextGenerator::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto generator = std::make_shared<TextGenerator>(std::move(*loaded));
        return AnswerInputs([generator, &options](const std::vector<Json>& inputs) {
          return generate(*generator, inputs, options.text);
        });
      });
}

}  // namespace

void add_generate_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "generate", "Generate text from text: one line `input<TAB>text` per input, in order.");
  const auto options = std::make_shared<GenerateCommandOptions>();
  add_task_options(*command, options->task, line.common, "TEXT");
  add_truncate_option(*command, options->task);
  add_search_options(*command, options->text);
  add_cache_option(*command, options->task.cache);
  command
      ->add_option("--return-sequences", options->text.return_sequences,
                   "best sequences per input, at most --beams")
      ->check(CLI::Range(1, 64));
  CLI::Option* context = command->add_option(
      "--context", options->text.context,
      "keys that a decoder's cache keeps, its sinks included; the oldest others give way");
  command
      ->add_option("--sinks", options->text.sinks,
                   "first keys of --context that stay for ever (default 4)")
      ->needs(context);
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
      "  vkformer generate DIR --task summarization --input in.jsonl --output out.jsonl\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_generate(line.common, *options); };
  });
}

}  // namespace vkformer::cli
