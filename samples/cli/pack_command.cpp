// `vkformer pack`: a model in one file.
#include <memory>

#include "command_line.h"
#include "pack_text.h"
#include "vkformer/model_pack.h"

namespace vkformer::cli {

namespace {

struct PackCommandOptions {
  std::string model;
  std::string target;
  PackOptions settings;
};

int run_pack(const CommonOptions& common, const PackCommandOptions& options) {
  const Result<PackInfo> info = [&] {
    const Progress progress("packing " + options.model, common.progress());
    return pack_model(options.model, options.target, options.settings);
  }();
  if (!info) return report(info.error());
  if (common.json) {
    Json json;
    json["path"] = options.target;
    json.update(pack_json(*info));
    print_json(json);
    return kExitOk;
  }
  print_line(std::to_string(info->files.size()) + " files, " + std::to_string(info->size) +
             " bytes, SHA-256 " + info->sha256 + " in " + options.target);
  return kExitOk;
}

}  // namespace

void add_pack_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "pack", "Write a model as one file that loads from an archive, too; needs no device.");
  const auto options = std::make_shared<PackCommandOptions>();
  add_model_argument(*command, line, options->model);
  add_file_option(*command, "OUT", options->target, "file to write")->required();
  add_choice<WeightFormat>(
      *command, "--weights", options->settings.weights,
      "format of matrices, as `vkformer quantize` writes them; else as they are",
      {"q8", "q4", "q4m", "bf16", "f16"});
  add_adapter_option(*command, options->settings.adapters);
  command->add_flag("--device-layout", options->settings.device_layout,
                    "store weights as GPUs read them: loading is faster, other formats and "
                    "adapters are refused");
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer pack models/g2p-en /tmp/g2p.vkfpack\n"
               "  vkformer pack models/g2p-en /tmp/g2p-q8.vkfpack --weights q8\n"
               "  vkformer inspect /tmp/g2p.vkfpack\n"
               "  vkformer generate /tmp/g2p.vkfpack attention\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_pack(line.common, *options); };
  });
}

}  // namespace vkformer::cli
