// What the commands for tasks share: inputs in, answers as JSON lines out, in batches, resumable,
// shared with other processes.
#pragma once

#include "command_line.h"
#include "task_records.h"
#include "vkformer/tasks.h"

namespace vkformer::cli {

struct TaskCommandOptions {
  std::string model;
  std::vector<std::string> arguments;
  std::string input;   // file, or "-" for stdin
  std::string output;  // file; empty: stdout
  std::string format = "auto";
  int batch = 32;
  bool truncate = false;
  bool resume = false;
  bool shared = false;          // with other processes, by the folder of a SharedJob
  int window = 0;               // inputs that a process of these takes at once; 0: by their number
  CLI::App* command = nullptr;  // whose options these are
  bool keep_going = false;
  bool progress = false;
  bool nan_check = false;
  ModelOptions load;
  CacheFormat cache = CacheFormat::kF32;  // of a generation
};

// How a command's lines look.
struct TaskFormat {
  const char* command;
  const char* plain_key = "text";  // what a plain line or argument is called
  const char* renamed = nullptr;   // what plain_key is called in the output, if not the same
  const char* left_out = nullptr;  // field that the output does not repeat
  // Prints plain text instead of JSON lines, given the output's fields; null: never.
  std::function<std::string(const Json&)> plain = nullptr;
  // The same for a terminal alone: lines under the input's own text, which a single input's do
  // without.
  std::function<std::string(const Json&)> readable = nullptr;
};

// Gives for each input the fields of its answer.
using AnswerInputs = std::function<Result<std::vector<Json>>(const std::vector<Json>& inputs)>;
// Loads the model and gives the function that answers.
using OpenTask = std::function<Result<AnswerInputs>(const Device& device, const ModelSource& source,
                                                    const TaskOptions& options)>;

// MODEL, the inputs (called `name`), --input, --output and the rest of TaskCommandOptions, with the
// options of model, output and device.
void add_task_options(CLI::App& command, TaskCommandOptions& options, CommandLine& line,
                      const char* name);
// Options of a command whose texts may be too long.
void add_truncate_option(CLI::App& command, TaskCommandOptions& options);
// --beams, --max-new-tokens; with `all` also the rest of the search.
void add_short_search_options(CLI::App& command, std::optional<int>& beams,
                              std::optional<int>& max_new_tokens);
void add_search_options(CLI::App& command, TextOptions& options);

int run_task_command(const CommonOptions& common, const TaskCommandOptions& options,
                     const TaskFormat& format, const OpenTask& open);

// The field `key` of every input.
Result<std::vector<std::string>> text_fields(const std::vector<Json>& inputs, const char* key);
// The picture that each input's field "picture" names.
Result<std::vector<Picture>> picture_fields(const std::vector<Json>& inputs);
// A float as the shortest decimal number that stands for it.
double short_float(float value);
Json labels_json(const std::vector<LabelScore>& labels);

}  // namespace vkformer::cli
