// `vkformer fill-mask`: texts with mask tokens in, what may stand there out.
#include "readable.h"
#include "task_command.h"

namespace vkformer::cli {

namespace {

struct FillMaskCommandOptions {
  TaskCommandOptions task;
  int top = 5;
};

Json candidates_json(const std::vector<MaskCandidate>& candidates) {
  Json list = Json::array();
  for (const MaskCandidate& candidate : candidates) {
    Json entry;
    entry["token"] = candidate.token;
    entry["token_text"] = candidate.token_text;
    entry["score"] = candidate.score;
    entry["text"] = candidate.text;
    list.push_back(std::move(entry));
  }
  return list;
}

Result<std::vector<Json>> fill(MaskFiller& filler, const std::vector<Json>& inputs, int top) {
  const Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  const auto filled = filler.fill(*texts, top);
  if (!filled) return filled.error();
  std::vector<Json> answers;
  for (const auto& masks : *filled) {
    Json list = Json::array();
    for (const auto& candidates : masks) list.push_back(candidates_json(candidates));
    answers.push_back(Json::object());
    answers.back()["masks"] = std::move(list);
  }
  return answers;
}

int run_fill_mask(const CommonOptions& common, const FillMaskCommandOptions& options) {
  return run_task_command(
      common, options.task, {.command = "fill-mask", .readable = readable_masks},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<MaskFiller> loaded = MaskFiller::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto filler = std::make_shared<MaskFiller>(std::move(*loaded));
        return AnswerInputs([filler, top = options.top](const std::vector<Json>& inputs) {
          return fill(*filler, inputs, top);
        });
      });
}

}  // namespace

void add_fill_mask_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "fill-mask", "Find the likeliest tokens for mask tokens: one JSON object a line, in order.");
  const auto options = std::make_shared<FillMaskCommandOptions>();
  add_task_options(*command, options->task, line, "TEXT");
  add_truncate_option(*command, options->task);
  command->add_option("--top", options->top, "tokens per mask")->check(CLI::Range(1, 1 << 20));
  add_examples(*command, "  vkformer fill-mask DIR \"Paris is the [MASK] of France.\" --top 3\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_fill_mask(line.common, *options); };
  });
}

}  // namespace vkformer::cli
