// The parsed command line: options that commands share, and one registration function per command.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "output.h"
#include "progress.h"
#include "vkformer/choices.h"
#include "vkformer/device.h"
#include "vkformer/model.h"
#include "vkformer/result.h"

namespace vkformer::cli {

// Most beams of a search (GenerateOptions::beams).
inline constexpr int kMostBeams = 16;

// Options that every command has.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  bool validation = false;
  bool tuned = false;
  DeviceOptions device;
  // Of --devices and --shares: who holds a model together; less than two: one device does.
  std::vector<std::string> devices;
  std::vector<double> shares;
  std::optional<int> prompt_part;  // of --prompt-part, tokens
  GroupSplit split = GroupSplit::kLayers;

  Progress::Show progress() const {
    return quiet ? Progress::Show::kNever : Progress::Show::kIfTerminal;
  }
};

// What CLI11 fills in. `run` is the chosen command, ready to be called once all
// `checks` have passed.
struct CommandLine {
  CommonOptions common;
  std::function<int()> run;
  // What is looked at first, in this order, of the chosen command's arguments; empty: nothing.
  std::vector<std::function<Status()>> checks;
};

// Adds the argument MODEL: a model directory, a GGUF file, or the name of a hub's model. Once the
// command runs, a name has become its folder in the cache.
CLI::Option* add_model_argument(CLI::App& command, CommandLine& line, std::string& model);
// Adds an option or argument whose value is the path of a file, or of a folder.
template <class Value>
CLI::Option* add_file_option(CLI::App& command, const std::string& name, Value& value,
                             const std::string& help) {
  return command.add_option(name, value, help)->type_name("FILE");
}
template <class Value>
CLI::Option* add_folder_option(CLI::App& command, const std::string& name, Value& value,
                               const std::string& help) {
  return command.add_option(name, value, help)->type_name("DIR");
}
// Has the value of an option or argument checked before the command runs.
void add_check(CLI::Option& option, CommandLine& line, Status (*check)(const std::string& value));
// The same for the path of a model that is stored in `model`, which the check may replace.
void add_model_check(CLI::Option& option, CommandLine& line, std::string& model,
                     Status (*check)(std::string& model));

// Adds --json and --quiet.
void add_output_options(CLI::App& command, CommonOptions& common);
// All names of a choice.
template <class Choice>
std::vector<std::string> names_of() {
  const auto names = choice_names<Choice>();
  return {names.begin(), names.end()};
}

// The names of several values.
template <class Choice>
std::vector<std::string> names_of(const std::vector<Choice>& values) {
  std::vector<std::string> names;
  for (const Choice value : values) names.emplace_back(choice_name(value));
  return names;
}

// Adds an option that takes one of `names` and stores the choice that it names in `value`, a Choice
// or an optional one. A name that is no choice's leaves the default.
template <class Choice, class Value>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, Value& value,
                        const std::string& help,
                        const std::vector<std::string>& names = names_of<Choice>()) {
  const auto store = [&value](const std::string& name) {
    if (const Result<Choice> found = choice_from_name<Choice>(name)) value = *found;
  };
  CLI::Option* option =
      command.add_option_function<std::string>(flag, store, help)->check(CLI::IsMember(names));
  // An optional one has the default that the model's files say.
  if constexpr (std::is_same_v<Choice, Value>) option->default_str(choice_name(value));
  return option;
}

// Adds --device, --tier, --limits, --validation, --cache-dir and --tuned.
void add_device_options(CLI::App& command, CommonOptions& common);
// Adds --devices and --shares, to commands that load their model by load_model or with_progress.
void add_group_options(CLI::App& command, CommonOptions& common);
// Adds --weights, --precision and --adapter.
void add_model_options(CLI::App& command, ModelOptions& options);
// Adds --adapter, which may be repeated.
void add_adapter_option(CLI::App& command, std::vector<AdapterChoice>& adapters);
// Adds --request-adapter, which may be repeated.
void add_request_adapter_option(CLI::App& command, std::vector<RequestAdapter>& adapters);
// Adds --cache: how a generation stores keys and values.
void add_cache_option(CLI::App& command, CacheFormat& cache);
// Adds an option for a tier, which also takes "best": no limit.
CLI::Option* add_tier_option(CLI::App& command, const std::string& flag, Tier& tier,
                             const std::string& help);
// The old name of an option or a flag, for one release. It does the same, is in no help, and says
// its new name on stderr.
void add_old_name(CLI::App& command, const std::string& old_name, CLI::Option& option);
// Text under a command's options: its examples, one a line.
void add_examples(CLI::App& command, const std::string& examples);

// Adds --nan-check, where this build can look into passes.
void add_nan_check(CLI::App& command, bool& wanted);
// Runs `work`, one dispatch at a time; an error names the first operator that wrote a NaN.
Status run_nan_check(const Device& device, const std::function<Status()>& work);
// The Result that `work` gives, or that error.
template <class Work>
std::invoke_result_t<Work> without_nan(const Device& device, const Work& work) {
  std::optional<std::invoke_result_t<Work>> result;
  const Status clean = run_nan_check(device, [&]() -> Status {
    result = work();
    return *result ? Status{} : result->error();
  });
  if (!clean) return clean.error();
  return std::move(*result);
}

// What --device names. Without it, each of several processes (ranks.h) takes one of its machine's
// devices of the best kind. A device is opened to learn which kind that is.
std::string device_of_rank(const CommonOptions& common);
// The first of --devices, or --device.
Result<Device> open_device(const CommonOptions& common);
// Has the options load onto the devices of --devices, where it was given, or onto those of all
// processes of mpirun. Says which of them has what.
Status add_group(const CommonOptions& common, ModelOptions& options);
// What a command does while it loads a model. It shows a progress bar over the bytes of its
// weights, then one over the kernels that the driver compiles, where it is known which. `load` gets
// options that move it.
template <class Load>
auto with_progress(const CommonOptions& common, const std::string& model, ModelOptions options,
                   const Load& load) -> std::invoke_result_t<Load, const ModelOptions&> {
  const Status grouped = add_group(common, options);
  if (!grouped) return grouped.error();
  Progress progress("loading " + model, common.progress(), Progress::Unit::kBytes);
  options.progress = [&progress, uploaded = false](const LoadProgress& loaded) mutable {
    if (loaded.total_pipelines > 0) {
      progress.set(static_cast<int64_t>(loaded.made_pipelines),
                   static_cast<int64_t>(loaded.total_pipelines));
    } else if (loaded.loaded_bytes < loaded.total_bytes) {
      progress.set(static_cast<int64_t>(loaded.loaded_bytes),
                   static_cast<int64_t>(loaded.total_bytes));
    } else if (!std::exchange(uploaded, true)) {
      progress.start("compiling kernels", Progress::Unit::kPieces);
    }
    return true;
  };
  return load(options);
}
// Loads with a progress bar.
Result<Model> load_model(const CommonOptions& common, const Device& device,
                         const std::string& directory, const ModelOptions& options);

void add_answer_command(CLI::App& app, CommandLine& line);
void add_attend_command(CLI::App& app, CommandLine& line);
void add_bench_command(CLI::App& app, CommandLine& line);
void add_caption_command(CLI::App& app, CommandLine& line);
void add_case_command(CLI::App& app, CommandLine& line);
void add_chat_command(CLI::App& app, CommandLine& line);
void add_classify_command(CLI::App& app, CommandLine& line);
void add_completion_command(CLI::App& app, CommandLine& line);
void add_compare_command(CLI::App& app, CommandLine& line);
void add_conformance_command(CLI::App& app, CommandLine& line);
void add_devices_command(CLI::App& app, CommandLine& line);
void add_doctor_command(CLI::App& app, CommandLine& line);
void add_embed_command(CLI::App& app, CommandLine& line);
void add_families_command(CLI::App& app, CommandLine& line);
void add_fingerprint_command(CLI::App& app, CommandLine& line);
void add_fill_mask_command(CLI::App& app, CommandLine& line);
void add_generate_command(CLI::App& app, CommandLine& line);
void add_help_command(CLI::App& app, CommandLine& line);
void add_inspect_command(CLI::App& app, CommandLine& line);
void add_man_command(CLI::App& app, CommandLine& line);
void add_op_command(CLI::App& app, CommandLine& line);
void add_pack_command(CLI::App& app, CommandLine& line);
void add_plan_command(CLI::App& app, CommandLine& line);
void add_profile_command(CLI::App& app, CommandLine& line);
void add_pull_command(CLI::App& app, CommandLine& line);
void add_quantize_command(CLI::App& app, CommandLine& line);
void add_rerank_command(CLI::App& app, CommandLine& line);
void add_depth_command(CLI::App& app, CommandLine& line);
void add_speak_command(CLI::App& app, CommandLine& line);
void add_detect_command(CLI::App& app, CommandLine& line);
void add_run_command(CLI::App& app, CommandLine& line);
void add_segment_command(CLI::App& app, CommandLine& line);
void add_serve_command(CLI::App& app, CommandLine& line);
void add_tokenize_command(CLI::App& app, CommandLine& line);
void add_transcribe_command(CLI::App& app, CommandLine& line);
void add_tune_command(CLI::App& app, CommandLine& line);
void add_verify_command(CLI::App& app, CommandLine& line);

}  // namespace vkformer::cli
