// `vkformer detect`: pictures in, objects with their boxes out.
#include "files.h"
#include "readable.h"
#include "task_command.h"
#include "vkformer/detect.h"

namespace vkformer::cli {

namespace {

struct DetectCommandOptions {
  TaskCommandOptions task;
  DetectOptions detect;
  std::string draw;  // file to write; empty: none
};

Json objects_json(const std::vector<Detection>& objects) {
  Json fields = Json::object();
  fields["objects"] = Json::array();
  for (const Detection& one : objects) {
    Json entry;
    entry["label"] = one.label;
    entry["score"] = one.score;
    entry["box"] = {one.left, one.top, one.right, one.bottom};
    fields["objects"].push_back(std::move(entry));
  }
  return fields;
}

Result<std::vector<Json>> detect_pictures(ObjectDetector& detector, const std::vector<Json>& inputs,
                                          const DetectCommandOptions& options) {
  const Result<std::vector<Picture>> pictures = picture_fields(inputs);
  if (!pictures) return pictures.error();
  const auto found = detector.detect(*pictures, options.detect);
  if (!found) return found.error();
  if (!options.draw.empty()) {
    const Status drawn =
        write_bytes(options.draw, render_detections_png(pictures->front(), found->front()));
    if (!drawn) return drawn.error();
  }
  std::vector<Json> answers;
  for (const std::vector<Detection>& objects : *found) answers.push_back(objects_json(objects));
  return answers;
}

int run_detect(const CommonOptions& common, const DetectCommandOptions& options) {
  if (!options.draw.empty() &&
      (options.task.arguments.size() != 1 || !options.task.input.empty())) {
    return report_usage("[--draw] is one file, so it takes one picture as an argument.");
  }
  return run_task_command(
      common, options.task,
      {.command = "detect", .plain_key = "picture", .readable = readable_objects},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<ObjectDetector> loaded = ObjectDetector::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto detector = std::make_shared<ObjectDetector>(std::move(*loaded));
        return AnswerInputs([detector, &options](const std::vector<Json>& inputs) {
          return detect_pictures(*detector, inputs, options);
        });
      });
}

}  // namespace

void add_detect_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "detect", "Find objects in pictures: one JSON object a picture, in order.");
  const auto options = std::make_shared<DetectCommandOptions>();
  add_task_options(*command, options->task, line, "PICTURE");
  command->add_option("--threshold", options->detect.threshold, "lowest probability of an object")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--top", options->detect.top, "objects per input, the best ones; 0: all")
      ->check(CLI::Range(0, 1 << 20));
  add_file_option(*command, "--draw", options->draw,
                  "write the picture, one argument, with the boxes drawn on it, as PNG");
  add_examples(*command,
               "  vkformer detect DIR street.jpg\n"
               "  vkformer detect DIR street.jpg --threshold 0.8 --draw found.png\n"
               "  vkformer detect DIR --input pictures.txt --output objects.jsonl --resume\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_detect(line.common, *options); };
  });
}

}  // namespace vkformer::cli
