// `vkformer answer`: questions about a context in, stretches of that context out.
#include "files.h"
#include "readable.h"
#include "task_command.h"

namespace vkformer::cli {

namespace {

struct AnswerCommandOptions {
  TaskCommandOptions task;
  std::string context_file;
  std::optional<std::string> context;
  AnswerOptions answer;
  bool null_answer = false;
};

Json answer_fields(const Answer& answer) {
  Json json;
  json["answer"] = answer.text;
  json["score"] = answer.score;
  json["begin"] = answer.range.begin;
  json["end"] = answer.range.end;
  return json;
}

Result<std::vector<Json>> answer(Answerer& answerer, const std::vector<Json>& inputs,
                                 const AnswerCommandOptions& options) {
  std::vector<Question> questions;
  for (const Json& input : inputs) {
    Result<std::string> question = text_field(input, "question");
    if (!question) return question.error();
    Result<std::optional<std::string>> own = optional_text_field(input, "context");
    if (!own) return own.error();
    if (!*own && !options.context) {
      return Error{ErrorCode::kInvalidArgument,
                   "[context] is missing; give it beside the question, or for all with --context."};
    }
    questions.push_back({std::move(*question), *own ? **own : *options.context});
  }
  const auto found = answerer.answer(questions, options.answer);
  if (!found) return found.error();
  std::vector<Json> answers;
  for (const std::vector<Answer>& best : *found) {
    Json fields = answer_fields(best.empty() ? Answer{} : best[0]);
    if (options.answer.top > 1) {
      fields["answers"] = Json::array();
      for (const Answer& one : best) fields["answers"].push_back(answer_fields(one));
    }
    answers.push_back(std::move(fields));
  }
  return answers;
}

int run_answer(const CommonOptions& common, AnswerCommandOptions options) {
  if (!options.context_file.empty()) {
    const Result<std::string> context = read_text_file(options.context_file);
    if (!context) return report(context.error());
    options.context = *context;
  }
  options.answer.allow_no_answer = options.null_answer;
  return run_task_command(
      common, options.task,
      {.command = "answer",
       .plain_key = "question",
       .left_out = "context",
       .readable = readable_answers},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<Answerer> loaded = Answerer::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto answerer = std::make_shared<Answerer>(std::move(*loaded));
        return AnswerInputs([answerer, &options](const std::vector<Json>& inputs) {
          return answer(*answerer, inputs, options);
        });
      });
}

}  // namespace

void add_answer_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "answer", "Answer questions from a context: one JSON object a line, in order.");
  const auto options = std::make_shared<AnswerCommandOptions>();
  add_task_options(*command, options->task, line, "QUESTION");
  CLI::Option* text =
      command->add_option("--context", options->context, "the context of inputs that have none");
  add_file_option(*command, "--context-file", options->context_file, "the same, from a file")
      ->excludes(text);
  command->add_option("--top", options->answer.top, "answers per question")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--max-answer-tokens", options->answer.max_answer_tokens,
                   "tokens of an answer at most")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--window", options->answer.window,
                   "tokens read at a time; 0: 384, or the model's limit")
      ->check(CLI::Range(0, 1 << 20));
  command
      ->add_option("--overlap", options->answer.overlap,
                   "tokens by which windows overlap; -1: 128, or half a window")
      ->default_str("")
      ->check(CLI::Range(-1, 1 << 20));
  command->add_flag("--null-answer", options->null_answer,
                    "an empty answer where the model finds none");
  add_examples(*command,
               "  vkformer answer DIR \"Who was it?\" --context-file story.txt\n"
               "  vkformer answer DIR --input questions.jsonl --output answers.jsonl --resume\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_answer(line.common, *options); };
  });
}

}  // namespace vkformer::cli
