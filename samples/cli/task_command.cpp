#include "task_command.h"

#include <algorithm>
#include <charconv>

#include "files.h"
#include "job_identity.h"
#include "shared_job.h"
#include "terminal.h"

namespace vkformer::cli {

namespace {

// Batches read, sorted by length and answered together. More would waste less on padding, fewer
// would write sooner.
constexpr size_t kBatchesPerWindow = 4;

size_t window_size(const TaskCommandOptions& options) {
  return static_cast<size_t>(options.batch) * kBatchesPerWindow;
}

// What the output repeats of an input.
Json echo_of(const TaskFormat& format, const Json& fields) {
  Json echo = Json::object();
  for (const auto& [key, value] : fields.items()) {
    if (format.left_out != nullptr && key == format.left_out) continue;
    const bool renamed = format.renamed != nullptr && key == format.plain_key;
    echo[renamed ? format.renamed : key] = value;
  }
  return echo;
}

// One run of a command.
class TaskRun {
 public:
  TaskRun(const TaskCommandOptions& options, const TaskFormat& format, AnswerInputs answer)
      : options_(options), format_(format), answer_(std::move(answer)) {}

  enum class Form : uint8_t { kJson, kPlain, kReadable };
  Status run(RecordReader& reader, LineWriter& writer, Progress& progress, Form form);
  // Answers the windows of the job that no other process takes.
  Status run(SharedJob& job, Progress& progress);
  int64_t failed() const { return failed_; }

 private:
  Status skip_answered(RecordReader& reader, const LineWriter& writer);
  // The lines of one window of a job.
  Result<std::string> answer_lines(const SharedJob& job, size_t window);
  Status answer_window(std::vector<TaskRecord>& records, std::vector<Json>& lines);
  // Answers records [begin, end) into their lines; halves them until those that fail are alone.
  Status answer_range(std::vector<TaskRecord*> records, std::vector<Json*> lines);
  // The line as it is printed; `alone`: there is no other input.
  std::string shown(const Json& line, Form form, bool alone) const;
  // Writes the error into the line, or gives it back to stop.
  Status fail(const TaskRecord& record, const Error& error, Json& line);

  const TaskCommandOptions& options_;
  const TaskFormat& format_;
  AnswerInputs answer_;
  int64_t failed_ = 0;
  int64_t done_ = 0;
};

Status TaskRun::fail(const TaskRecord& record, const Error& error, Json& line) {
  const Error located = error.with_context("[" + record.origin + "]");
  const bool fatal = error.code == ErrorCode::kDeviceLost || error.code == ErrorCode::kDriver;
  if (!options_.keep_going || fatal) return located;
  line = echo_of(format_, record.fields);
  line["error"] = located.message;
  ++failed_;
  return {};
}

Status TaskRun::answer_range(std::vector<TaskRecord*> records, std::vector<Json*> lines) {
  if (records.empty()) return {};
  std::vector<Json> inputs;
  for (const TaskRecord* record : records) inputs.push_back(record->fields);
  const Result<std::vector<Json>> answers = answer_(inputs);
  if (answers) {
    for (size_t i = 0; i < records.size(); ++i) {
      *lines[i] = echo_of(format_, inputs[i]);
      for (const auto& [key, value] : (*answers)[i].items()) (*lines[i])[key] = value;
    }
    return {};
  }
  if (records.size() == 1) return fail(*records[0], answers.error(), *lines[0]);
  const auto half = static_cast<std::ptrdiff_t>(records.size() / 2);
  const Status first = answer_range({records.begin(), records.begin() + half},
                                    {lines.begin(), lines.begin() + half});
  if (!first) return first;
  return answer_range({records.begin() + half, records.end()}, {lines.begin() + half, lines.end()});
}

Status TaskRun::answer_window(std::vector<TaskRecord>& records, std::vector<Json>& lines) {
  lines.assign(records.size(), Json());
  std::vector<TaskRecord*> good;
  std::vector<Json*> good_lines;
  for (size_t i = 0; i < records.size(); ++i) {
    if (!records[i].error) {
      good.push_back(&records[i]);
      good_lines.push_back(&lines[i]);
      continue;
    }
    const Status status = fail(records[i], *records[i].error, lines[i]);
    if (!status) return status;
  }
  return answer_range(std::move(good), std::move(good_lines));
}

// Passes over the inputs that the output has answers to; the last one must be the same input.
Status TaskRun::skip_answered(RecordReader& reader, const LineWriter& writer) {
  const int64_t count = writer.kept_lines();
  TaskRecord last;
  while (done_ < count) {
    Result<std::vector<TaskRecord>> records =
        reader.next(static_cast<size_t>(std::min<int64_t>(count - done_, 1024)));
    if (!records) return records.error();
    if (records->empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   "[" + options_.output + "] has " + std::to_string(count) +
                       " lines, but there are only " + std::to_string(done_) +
                       " inputs; it belongs to other inputs, so give another --output."};
    }
    done_ += static_cast<int64_t>(records->size());
    last = std::move(records->back());
  }
  if (count == 0 || last.error) return {};
  const Json line = parse_json(writer.last_kept_line());
  const Json echo = echo_of(format_, last.fields);
  const std::string key = format_.renamed != nullptr ? format_.renamed : format_.plain_key;
  if (!echo.contains(key)) return {};
  if (line.is_object() && line.contains(key) && line[key] == echo[key]) return {};
  return Error{ErrorCode::kInvalidArgument,
               "[" + options_.output + "] line " + std::to_string(count) + " does not answer [" +
                   last.origin + "] (\"" + key +
                   "\" differs); it belongs to other inputs, so give another --output."};
}

std::string TaskRun::shown(const Json& line, Form form, bool alone) const {
  const bool failed = line.contains("error");
  if (form == Form::kJson || (failed && form == Form::kPlain)) return json_text(line);
  if (form == Form::kPlain) return format_.plain(line);
  const char* key = format_.renamed != nullptr ? format_.renamed : format_.plain_key;
  const std::string input =
      line.contains(key) && line[key].is_string() ? line[key].get<std::string>() : json_text(line);
  const std::string heading = colored(input, Color::kBold, stdout) + '\n';
  if (failed) return heading + colored(line["error"].get<std::string>(), Color::kRed, stdout);
  return (alone ? "" : heading) + format_.readable(line);
}

Status TaskRun::run(RecordReader& reader, LineWriter& writer, Progress& progress, Form form) {
  const Status skipped = skip_answered(reader, writer);
  if (!skipped) return skipped;
  while (true) {
    progress.set(done_, reader.total());
    Result<std::vector<TaskRecord>> records = reader.next(window_size(options_));
    if (!records) return records.error();
    if (records->empty()) return {};
    std::vector<Json> lines;
    const Status answered = answer_window(*records, lines);
    if (!answered) return answered;
    progress.hide();
    for (const Json& line : lines) {
      const Status written = writer.write(shown(line, form, reader.total() == 1));
      if (!written) return written;
    }
    const Status flushed = writer.flush();
    if (!flushed) return flushed;
    done_ += static_cast<int64_t>(lines.size());
  }
}

Result<std::string> TaskRun::answer_lines(const SharedJob& job, size_t window) {
  Result<std::string> text = job.read(window);
  if (!text) return text.error();
  RecordReader reader =
      RecordReader::of_lines({std::move(*text), options_.input, job.windows().list[window].line},
                             job.windows().format, format_.plain_key);
  std::string answers;
  while (true) {
    Result<std::vector<TaskRecord>> records = reader.next(window_size(options_));
    if (!records) return records.error();
    if (records->empty()) return answers;
    std::vector<Json> lines;
    const Status answered = answer_window(*records, lines);
    if (!answered) return answered.error();
    for (const Json& line : lines) answers += json_text(line) + '\n';
  }
}

Status TaskRun::run(SharedJob& job, Progress& progress) {
  while (true) {
    const Result<std::optional<size_t>> window = job.next();
    if (!window) return window.error();
    progress.set(job.written_inputs(), job.windows().inputs);
    if (!*window) return {};
    const Result<std::string> lines = answer_lines(job, **window);
    if (!lines) return lines.error();
    if (const Status finished = job.finish(*lines); !finished) return finished;
  }
}

// JSON lines into files; what a command prints is for people where they see it.
TaskRun::Form form_of(const CommonOptions& common, const TaskCommandOptions& options,
                      const TaskFormat& format) {
  if (common.json || !options.output.empty()) return TaskRun::Form::kJson;
  if (format.plain) return TaskRun::Form::kPlain;
  return format.readable && is_terminal(stdout) ? TaskRun::Form::kReadable : TaskRun::Form::kJson;
}

// Without arguments and --input, what comes through a pipe is the input.
void take_piped_input(TaskCommandOptions& options) {
  if (options.arguments.empty() && options.input.empty() && piped_input()) options.input = "-";
}

std::string usage_error(const TaskCommandOptions& options, const TaskFormat& format) {
  const std::string command = "[" + std::string(format.command) + "]";
  if (options.arguments.empty() == options.input.empty()) {
    return command + " takes inputs as arguments, from --input, or from a pipe, and got " +
           (options.input.empty() ? "none." : "both arguments and --input.");
  }
  if (options.resume && options.output.empty()) {
    return command + " --resume continues a file; name it with --output.";
  }
  const bool files = !options.output.empty() && !options.input.empty() && options.input != "-";
  if (options.shared && !files) {
    return command +
           " --shared reads and writes files that all processes see; name them with --input and "
           "--output.";
  }
  if (!options.shared && SharedJob::exists(options.output)) {
    return command + " [" + options.output + "] is the output of the shared job in [" +
           SharedJob::folder_of(options.output) +
           "]; go on with it by --shared, or remove both to begin again.";
  }
  return "";
}

}  // namespace

void add_task_options(CLI::App& command, TaskCommandOptions& options, CommandLine& line,
                      const char* name) {
  add_model_argument(command, line, options.model);
  command.add_option(name, options.arguments, "inputs, each argument one");
  add_file_option(command, "--input,--file", options.input,
                  "inputs, one a line: plain, or JSON objects; - is stdin, as is a pipe "
                  "where there are no inputs");
  add_file_option(command, "--output", options.output, "file for the answers, JSON lines");
  command.add_option("--format", options.format, "what the lines of --input are")
      ->check(CLI::IsMember({"auto", "text", "json"}));
  command.add_option("--batch", options.batch, "inputs that run together")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--resume", options.resume,
                   "go on after the last whole line of an existing --output");
  options.command = &command;
  CLI::Option* shared = command.add_flag(
      "--shared", options.shared,
      "share the inputs with all processes that run this command (mpirun, Slurm, Kubernetes, "
      "shells), by the folder OUTPUT.job; goes on after any kill");
  command
      .add_option("--shared-window", options.window,
                  "inputs that a process takes at once; 0: a thousandth of all")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(shared);
  command.add_flag("--keep-going", options.keep_going,
                   "write an input's error into its line instead of stopping");
  command.add_flag("--progress", options.progress, "progress even if stderr is no terminal");
  command.parse_complete_callback([&line, &options] {
    line.checks.emplace_back([&options] {
      take_piped_input(options);
      return Status();
    });
  });
  add_nan_check(command, options.nan_check);
  add_model_options(command, options.load);
  add_output_options(command, line.common);
  add_device_options(command, line.common);
  add_group_options(command, line.common);
}

void add_truncate_option(CLI::App& command, TaskCommandOptions& options) {
  command.add_flag("--truncate", options.truncate, "cut inputs that the model cannot take");
}

namespace {
constexpr const char* kSearch = "Search (defaults: generation_config.json of the model)";
}

void add_short_search_options(CLI::App& command, std::optional<int>& beams,
                              std::optional<int>& max_new_tokens) {
  command.add_option("--beams", beams, "beams per input, up to 16; 1 is greedy")
      ->check(CLI::Range(1, kMostBeams))
      ->group(kSearch);
  command.add_option("--max-new-tokens", max_new_tokens, "tokens to generate at most")
      ->check(CLI::Range(1, 1 << 20))
      ->group(kSearch);
}

void add_search_options(CLI::App& command, TextOptions& options) {
  add_short_search_options(command, options.beams, options.max_new_tokens);
  command.add_option("--min-new-tokens", options.min_new_tokens, "tokens before the end token")
      ->check(CLI::Range(0, 1 << 20))
      ->group(kSearch);
  command
      .add_option("--length-penalty", options.length_penalty,
                  "exponent of the length that a beam's score is divided by")
      ->group(kSearch);
  add_choice<EarlyStopping>(command, "--early-stopping", options.early_stopping,
                            "when beam search may stop")
      ->group(kSearch);
  command
      .add_option("--beam-groups", options.beam_groups, "groups of beams, each a separate search")
      ->group(kSearch);
  command
      .add_option("--diversity", options.diversity,
                  "penalty of a token for each beam of an earlier group that has chosen it")
      ->group(kSearch);
  command
      .add_option("--contrastive-tokens", options.contrastive_tokens,
                  "contrastive search: the number of the likeliest tokens that it chooses among")
      ->group(kSearch);
  command
      .add_option(
          "--contrast", options.contrast,
          "contrastive search: weight of the similarity to earlier text, 0 to 1 (default 0.6)")
      ->group(kSearch);
}

namespace {

// Before anything is loaded: a model that is not the job's is not worth it.
Result<SharedJob> open_shared_job(const TaskCommandOptions& options) {
  Result<Json> identity = job_identity(*options.command);
  if (!identity) return identity.error();
  return SharedJob::open({.input = options.input,
                          .output = options.output,
                          .lines = {.format = options.format,
                                    .group = static_cast<int64_t>(window_size(options)),
                                    .window = options.window},
                          .identity = std::move(*identity)});
}

// All inputs, by this process alone.
Status answer_alone(TaskRun& run, RecordReader& reader, const TaskCommandOptions& options,
                    TaskRun::Form form, Progress& progress) {
  const auto existing =
      options.resume ? LineWriter::Existing::kContinue : LineWriter::Existing::kReplace;
  Result<LineWriter> writer = LineWriter::open(options.output, existing);
  return writer ? run.run(reader, *writer, progress, form) : writer.error();
}

}  // namespace

int run_task_command(const CommonOptions& common, const TaskCommandOptions& options,
                     const TaskFormat& format, const OpenTask& open) {
  const std::string usage = usage_error(options, format);
  if (!usage.empty()) return report_usage(usage);
  std::optional<SharedJob> job;
  if (options.shared) {
    Result<SharedJob> opened = open_shared_job(options);
    if (!opened) return report(opened.error());
    if (opened->is_finished()) return kExitOk;
    job = std::move(*opened);
  }
  Result<RecordReader> reader =
      RecordReader::open(options.arguments, options.input, options.format, format.plain_key);
  if (!reader) return report(reader.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const auto show = options.progress ? Progress::Show::kAlways : common.progress();
  const auto load = [&](const ModelOptions& watched) {
    TaskOptions task;
    task.model = watched;
    task.batch = options.batch;
    task.session.cache = options.cache;
    if (options.truncate) task.long_text = LongText::kTruncate;
    return open(*device, ModelSource::directory(options.model), task);
  };
  Result<AnswerInputs> answer = with_progress(common, options.model, options.load, load);
  if (!answer) return report(answer.error());
  if (options.nan_check) {
    *answer = [&device, checked = std::move(*answer)](const std::vector<Json>& inputs) {
      return without_nan(*device, [&] { return checked(inputs); });
    };
  }
  TaskRun run(options, format, std::move(*answer));
  Status done;
  {
    Progress progress(format.command, show);
    done = job ? run.run(*job, progress)
               : answer_alone(run, *reader, options, form_of(common, options, format), progress);
  }
  if (!done) return report(done.error());
  if (run.failed() == 0) return kExitOk;
  print_message("[" + std::string(format.command) + "] " + std::to_string(run.failed()) +
                " inputs failed; their lines say why.");
  return kExitFailed;
}

Result<std::vector<std::string>> text_fields(const std::vector<Json>& inputs, const char* key) {
  std::vector<std::string> texts;
  for (const Json& input : inputs) {
    Result<std::string> text = text_field(input, key);
    if (!text) return text.error();
    texts.push_back(std::move(*text));
  }
  return texts;
}

Result<std::vector<Picture>> picture_fields(const std::vector<Json>& inputs) {
  std::vector<Picture> pictures;
  for (const Json& input : inputs) {
    const Result<std::string> path = text_field(input, "picture");
    if (!path) return path.error();
    Result<Picture> picture = Picture::load(*path);
    if (!picture) return picture.error();
    pictures.push_back(std::move(*picture));
  }
  return pictures;
}

double short_float(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double wide = static_cast<double>(value);
  std::from_chars(text, end, wide);
  return wide;
}

Json labels_json(const std::vector<LabelScore>& labels) {
  Json list = Json::array();
  for (const LabelScore& label : labels) {
    Json entry;
    entry["label"] = label.label;
    entry["score"] = label.score;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace vkformer::cli
