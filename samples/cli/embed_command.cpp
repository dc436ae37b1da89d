// `vkformer embed`: texts in, one vector each out.
#include "readable.h"
#include "task_command.h"
#include "vkformer/embed.h"

namespace vkformer::cli {

namespace {

struct EmbedCommandOptions {
  TaskCommandOptions task;
  std::string pooling = "model";
  bool normalize = false;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_name;
  int dimensions = 0;
  std::string values = "float";
};

EmbedOptions settings_of(const EmbedCommandOptions& options) {
  EmbedOptions settings;
  if (options.pooling == "mean") settings.pooling = Pooling::kMean;
  if (options.pooling == "first") settings.pooling = Pooling::kFirst;
  if (options.pooling == "last") settings.pooling = Pooling::kLast;
  if (options.normalize) settings.length = EmbedOptions::Length::kUnit;
  settings.prompt = options.prompt;
  settings.prompt_name = options.prompt_name;
  settings.dimensions = options.dimensions;
  if (options.values == "int8") settings.values = VectorValues::kInt8;
  if (options.values == "binary") settings.values = VectorValues::kBinary;
  return settings;
}

Result<std::vector<Json>> embed(Embedder& embedder, const std::vector<Json>& inputs,
                                const EmbedOptions& settings) {
  const Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  const Result<Tensor> vectors = embedder.embed(*texts, settings);
  if (!vectors) return vectors.error();
  const auto width = static_cast<size_t>(vectors->shape[1]);
  std::vector<Json> answers(inputs.size());
  if (vectors->dtype != DType::kF32) {
    const Result<std::vector<int64_t>> integers = vectors->to_ints();
    if (!integers) return integers.error();
    for (size_t i = 0; i < integers->size(); ++i) {
      answers[i / width]["embedding"].push_back((*integers)[i]);
    }
    return answers;
  }
  const Result<std::vector<float>> values = vectors->to_floats();
  if (!values) return values.error();
  for (size_t i = 0; i < values->size(); ++i) {
    answers[i / width]["embedding"].push_back(short_float((*values)[i]));
  }
  return answers;
}

int run_embed(const CommonOptions& common, const EmbedCommandOptions& options) {
  const EmbedOptions settings = settings_of(options);
  return run_task_command(
      common, options.task, {.command = "embed", .readable = readable_vectors()},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<Embedder> loaded = Embedder::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto embedder = std::make_shared<Embedder>(std::move(*loaded));
        return AnswerInputs([embedder, settings](const std::vector<Json>& inputs) {
          return embed(*embedder, inputs, settings);
        });
      });
}

}  // namespace

void add_embed_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("embed", "Turn texts into vectors: one JSON object a line, in order.");
  const auto options = std::make_shared<EmbedCommandOptions>();
  add_task_options(*command, options->task, line, "TEXT");
  add_truncate_option(*command, options->task);
  command
      ->add_option("--pooling", options->pooling,
                   "how states become one vector; model: as its files say, else mean")
      ->check(CLI::IsMember({"model", "mean", "first", "last"}));
  CLI::Option* prompt =
      command->add_option("--prompt", options->prompt, "text that precedes every text");
  command
      ->add_option("--prompt-name", options->prompt_name,
                   "the model's prompt of that name (config_sentence_transformers.json)")
      ->excludes(prompt);
  command->add_flag("--normalize", options->normalize, "divide vectors by their length");
  command
      ->add_option("--dimensions", options->dimensions,
                   "the first values of each vector, of a model that is trained for it; 0: all")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--values", options->values,
                   "what a vector's values are; int8: multiples of its largest magnitude / 127; "
                   "binary: signs, eight a byte, the first in its highest bit")
      ->check(CLI::IsMember({"float", "int8", "binary"}));
  add_examples(*command,
               "  vkformer embed DIR \"a first text\" \"and another\"\n"
               "  vkformer embed DIR --input texts.txt --output vectors.jsonl --resume\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_embed(line.common, *options); };
  });
}

}  // namespace vkformer::cli
