// `vkformer case`: runs an acceptance case (one operator, one model or one tokenizer with inputs).
// It writes what the case gives, to be compared with what is expected.
#include "case_command.h"

#include <memory>

#include "command_line.h"
#include "files.h"
#include "vkformer/operators.h"

namespace vkformer::cli {

namespace {

Result<TensorMap> answer_operator_case(const Device& device, const CaseOptions& options) {
  const Result<Json> description = read_json_file(options.path("op.json"));
  if (!description) return description.error();
  Result<OperatorCall> read = operator_of_case(*description);
  if (!read) return read.error();
  OperatorCall& call = *read;
  Result<TensorMap> inputs = read_tensor_file(options.path("inputs.safetensors"));
  if (!inputs) return inputs.error();
  call.inputs = std::move(*inputs);
  OperatorOptions settings;
  settings.precision = options.load.precision;
  const bool stored = options.load.weights == WeightFormat::kAsStored;
  settings.weights = stored ? WeightFormat::kF32 : options.load.weights;
  Result<OperatorResult> result = run_operator(device, call, settings);
  if (!result) return result.error();
  return std::move(result->outputs);
}

int finish_case(const Result<TensorMap>& outputs, const CaseOptions& options) {
  if (!outputs) return report(outputs.error());
  const Status written = write_tensor_file(options.output, *outputs);
  return written ? kExitOk : report(written.error());
}

int run_tokenizer_case(const CaseOptions& options) {
  const Result<Json> answer = answer_tokenizer_case(options);
  if (!answer) return report(answer.error());
  const Status written = write_text_file(options.output, json_text(*answer) + "\n");
  return written ? kExitOk : report(written.error());
}

int run_case(const CommonOptions& common, const CaseOptions& options) {
  const Result<Json> settings = read_json_file(options.path("case.json"));
  if (!settings) return report(settings.error());
  if (file_exists(options.path("inputs.json"))) return run_tokenizer_case(options);
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Progress progress("running " + options.directory, common.progress());
  if (file_exists(options.path("op.json"))) {
    return finish_case(answer_operator_case(*device, options), options);
  }
  CaseOptions own = options;
  const Status grouped = add_group(common, own.load);
  if (!grouped) return report(grouped.error());
  return finish_case(answer_model_case(*device, own, *settings), own);
}

}  // namespace

void add_case_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "case", "Run an acceptance case: an operator, a model or a tokenizer with its inputs.");
  const auto options = std::make_shared<CaseOptions>();
  add_folder_option(*command, "CASE_DIR", options->directory, "folder of the case")->required();
  add_file_option(*command, "--output", options->output,
                  "file to write: safetensors, or JSON for a tokenizer case")
      ->required();
  add_model_options(*command, options->load);
  add_cache_option(*command, options->cache);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_group_options(*command, line.common);
  add_examples(*command,
               "  vkformer case cases/op-gemm-k1 --output actual.safetensors\n"
               "  vkformer case cases/marian-base --output actual.safetensors --tier baseline "
               "--limits android-2022\n"
               "  vkformer case cases/tok-bpe-gpt2 --output actual.json\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_case(line.common, *options); };
  });
}

}  // namespace vkformer::cli
