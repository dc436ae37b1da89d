// `vkformer rerank`: queries in, documents in the order of their scores out.
#include "files.h"
#include "readable.h"
#include "task_command.h"
#include "vkformer/rerank.h"

namespace vkformer::cli {

namespace {

struct RerankCommandOptions {
  TaskCommandOptions task;
  std::vector<std::string> documents;
  std::string documents_file;
  std::string score = "model";
  std::string instruction;
  int top = 0;
};

RerankOptions rank_settings(const RerankCommandOptions& options) {
  RerankOptions settings;
  settings.top = options.top;
  settings.instruction = options.instruction;
  if (options.score == "logit") settings.score = RerankOptions::Score::kLogit;
  if (options.score == "probability") settings.score = RerankOptions::Score::kProbability;
  return settings;
}

// The documents of one input: its own, or those of the command.
Result<std::vector<std::string>> documents_of(const Json& input,
                                              const RerankCommandOptions& options) {
  if (!input.contains("documents")) {
    if (!options.documents.empty()) return options.documents;
    return Error{ErrorCode::kInvalidArgument,
                 "[documents] are missing; give them beside the query, or for all with --document "
                 "or --documents."};
  }
  const Json& list = input["documents"];
  std::vector<std::string> documents;
  for (const Json& document : list) {
    if (!list.is_array() || !document.is_string()) {
      return Error{ErrorCode::kInvalidArgument, "[documents] must be a list of texts."};
    }
    documents.push_back(document.get<std::string>());
  }
  return documents;
}

Result<Json> rank_one(Reranker& reranker, const Json& input, const RerankCommandOptions& options) {
  const Result<std::string> query = text_field(input, "query");
  if (!query) return query.error();
  const Result<std::vector<std::string>> documents = documents_of(input, options);
  if (!documents) return documents.error();
  const auto ranking = reranker.rank(*query, *documents, rank_settings(options));
  if (!ranking) return ranking.error();
  Json fields = Json::object();
  fields["ranking"] = Json::array();
  for (const RankedDocument& one : *ranking) {
    Json entry;
    entry["index"] = one.index;
    entry["score"] = one.score;
    entry["document"] = (*documents)[one.index];
    fields["ranking"].push_back(std::move(entry));
  }
  return fields;
}

Status read_documents(RerankCommandOptions& options) {
  if (options.documents_file.empty()) return {};
  Result<InputReader> reader = InputReader::open({}, options.documents_file);
  if (!reader) return reader.error();
  while (true) {
    Result<std::vector<TextInput>> lines = reader->next(1024);
    if (!lines) return lines.error();
    if (lines->empty()) return {};
    for (TextInput& line : *lines) options.documents.push_back(std::move(line.text));
  }
}

int run_rerank(const CommonOptions& common, RerankCommandOptions options) {
  if (const Status read = read_documents(options); !read) return report(read.error());
  return run_task_command(
      common, options.task,
      {.command = "rerank",
       .plain_key = "query",
       .left_out = "documents",
       .readable = readable_ranking},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<Reranker> loaded = Reranker::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto reranker = std::make_shared<Reranker>(std::move(*loaded));
        return AnswerInputs(
            [reranker, &options](const std::vector<Json>& inputs) -> Result<std::vector<Json>> {
              std::vector<Json> answers;
              for (const Json& input : inputs) {
                Result<Json> fields = rank_one(*reranker, input, options);
                if (!fields) return fields.error();
                answers.push_back(std::move(*fields));
              }
              return answers;
            });
      });
}

}  // namespace

void add_rerank_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "rerank", "Sort documents by how well they fit a query: one JSON object a query, in order.");
  const auto options = std::make_shared<RerankCommandOptions>();
  add_task_options(*command, options->task, line, "QUERY");
  add_truncate_option(*command, options->task);
  CLI::Option* texts = command
                           ->add_option("--document", options->documents,
                                        "a document of queries that have none; "
                                        "may be repeated")
                           ->allow_extra_args(false);
  add_file_option(*command, "--documents", options->documents_file, "the same, a file's lines")
      ->excludes(texts);
  command->add_option("--top", options->top, "the best documents of each query; 0: all")
      ->check(CLI::Range(0, 1 << 20));
  command
      ->add_option(
          "--score", options->score,
          "what documents are scored by; model: what the model asks for, else the probability")
      ->check(CLI::IsMember({"model", "logit", "probability"}));
  command->add_option("--instruction", options->instruction,
                      "what a language model looks for, in words; default: documents that answer "
                      "the query of a web search");
  add_examples(*command,
               "  vkformer rerank DIR \"how do plants eat\" --documents passages.txt --top 3\n"
               "  vkformer rerank DIR \"a query\" --document \"one text\" --document \"another\" "
               "--json\n"
               "  vkformer rerank DIR --input queries.jsonl --output rankings.jsonl --resume\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_rerank(line.common, *options); };
  });
}

}  // namespace vkformer::cli
