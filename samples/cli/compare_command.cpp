// `vkformer compare`: the first layer in which two devices, or two tiers, differ.
#include <memory>

#include "command_line.h"
#include "vkformer/conformance.h"

namespace vkformer::cli {

namespace {

struct CompareCommandOptions {
  std::string model, inputs;
  std::string with_device;
  Tier with_tier = Tier::kMatrix;
  CompareOptions compare;
};

void print_difference(const LayerDifference& found) {
  if (found.op.empty()) {
    print_line("no difference in " + std::to_string(found.tensors) + " tensors, at most " +
               fixed(found.relative, 9) + " of a tensor's largest value");
    return;
  }
  print_line("differs first in " + (found.label.empty() ? found.tensor : found.label) + " (" +
             found.op + "), tensor " + found.tensor + ", element " + std::to_string(found.element) +
             ": by " + fixed(found.difference, 9) + ", " + fixed(found.relative, 9) +
             " of its largest value; " + std::to_string(found.tensors - 1) +
             " tensors before it agree");
}

int run_compare(const CommonOptions& common, CompareCommandOptions& options) {
  const Result<TensorMap> inputs = read_tensor_file(options.inputs);
  if (!inputs) return report(inputs.error());
  const Result<Device> first = open_device(common);
  if (!first) return report_device(first.error());
  CommonOptions other = common;
  if (!options.with_device.empty()) other.device.device = options.with_device;
  other.device.tier = options.with_tier;
  const Result<Device> second = open_device(other);
  if (!second) return report_device(second.error());
  options.compare.second = options.compare.first;
  const Result<LayerDifference> found =
      compare_devices(*first, *second, options.model, *inputs, options.compare);
  if (!found) return report(found.error());
  if (common.json) {
    print_json(Json{{"differs", !found->op.empty()},
                    {"label", found->label},
                    {"op", found->op},
                    {"tensor", found->tensor},
                    {"element", found->element},
                    {"difference", found->difference},
                    {"relative", found->relative},
                    {"tensors", found->tensors}});
  } else {
    print_difference(*found);
  }
  return found->op.empty() ? kExitOk : kExitFailed;
}

}  // namespace

void add_compare_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "compare", "Name the first layer in which two devices, or tiers of one, differ.");
  const auto options = std::make_shared<CompareCommandOptions>();
  add_model_argument(*command, line, options->model);
  add_file_option(*command, "--inputs", options->inputs, "safetensors file with the model's inputs")
      ->required();
  command->add_option("--with-device", options->with_device,
                      "the other device; the same if absent");
  add_tier_option(*command, "--with-tier", options->with_tier, "its tier");
  command
      ->add_option("--relative", options->compare.relative,
                   "smallest difference to report, relative to the tensor's largest value")
      ->check(CLI::Range(0.0, 1.0));
  add_model_options(*command, options->compare.first);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer compare models/g2p-en --inputs in.safetensors --tier baseline\n"
               "  vkformer compare models/g2p-en --inputs in.safetensors --with-device 1\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_compare(line.common, *options); };
  });
}

}  // namespace vkformer::cli
