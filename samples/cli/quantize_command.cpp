// `vkformer quantize`: writes a model directory whose matrices take less room.
#include <memory>

#include "command_line.h"
#include "vkformer/quantise.h"

namespace vkformer::cli {

namespace {

struct QuantizeOptions {
  std::string model;
  std::string target;
  QuantiseOptions settings;
};

std::string megabytes(uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / 1e6, 2) + " MB";
}

int run_quantize(const CommonOptions& common, const QuantizeOptions& options) {
  const Result<QuantiseReport> done =
      quantise_model(options.model, options.target, options.settings);
  if (!done) return report(done.error());
  if (common.json) {
    Json json;
    json["weights"] = choice_name(options.settings.weights);
    json["tensors"] = done->tensors;
    json["matrices"] = done->matrices;
    json["bytes_before"] = done->bytes_before;
    json["bytes_after"] = done->bytes_after;
    print_json(json);
    return kExitOk;
  }
  print_line(std::to_string(done->matrices) + " of " + std::to_string(done->tensors) +
             " tensors in " + choice_name(options.settings.weights) + ": " +
             megabytes(done->bytes_before) + " became " + megabytes(done->bytes_after) + " in " +
             options.target);
  return kExitOk;
}

}  // namespace

void add_quantize_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "quantize", "Write a model directory whose matrices take less room; needs no device.");
  const auto options = std::make_shared<QuantizeOptions>();
  add_model_argument(*command, line, options->model);
  add_folder_option(*command, "OUT", options->target,
                    "directory to write, made where it is missing")
      ->required();
  add_choice<WeightFormat>(*command, "--weights", options->settings.weights, "format of matrices",
                           {"q8", "q4", "q4m", "bf16", "f16"});
  add_adapter_option(*command, options->settings.adapters);
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer quantize models/g2p-en /tmp/g2p-q8\n"
               "  vkformer quantize models/g2p-en /tmp/g2p-q4 --weights q4\n"
               "  vkformer generate /tmp/g2p-q4 attention\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_quantize(line.common, *options); };
  });
}

}  // namespace vkformer::cli
