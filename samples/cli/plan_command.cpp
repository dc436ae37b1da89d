// `vkformer plan`: what a pass of a model does on the device, in text.
#include <memory>

#include "cluster_file.h"
#include "command_line.h"

namespace vkformer::cli {

namespace {

struct PlanCommandOptions {
  std::string model;
  ModelOptions load;
  PlanOptions plan;
  bool has_target = false;
  std::string cluster;  // a file
};

// No device is opened.
int run_cluster_plan(const CommonOptions& common, const PlanCommandOptions& options) {
  Result<ClusterOptions> cluster = read_cluster_file(options.cluster);
  if (!cluster) return report(cluster.error());
  cluster->weights = options.load.weights;
  const Result<ClusterPlan> plan = plan_cluster(ModelSource::directory(options.model), *cluster);
  if (!plan) return report(plan.error());
  if (common.json) {
    print_json(cluster_json(*plan));
  } else {
    for (const std::string& line : cluster_lines(*plan)) print_line(line);
  }
  return kExitOk;
}

int run_plan(const CommonOptions& common, PlanCommandOptions options) {
  if (!options.cluster.empty()) return run_cluster_plan(common, options);
  if (!options.has_target) options.plan.target = options.plan.source;
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Result<Model> model = load_model(common, *device, options.model, options.load);
  if (!model) return report(model.error());
  const Result<std::string> text = model->plan_text(options.plan);
  if (!text) return report(text.error());
  if (common.json) {
    Json json;
    json["model"] = options.model;
    json["device"] = device->info().name;
    json["tier"] = choice_name(device->tier());
    json["pass"] = choice_name(options.plan.pass);
    json["batch"] = options.plan.batch;
    json["source"] = options.plan.source;
    json["target"] = options.plan.target;
    json["beams"] = options.plan.beams;
    json["weight_bytes"] = model->weight_bytes();
    json["plan"] = *text;
    print_json(json);
  } else {
    std::string_view view = *text;
    while (!view.empty() && view.back() == '\n') view.remove_suffix(1);
    print_line(view);
  }
  return kExitOk;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "plan", "Print the plan of a pass: tensors, memory, dispatches, barriers, costs.");
  const auto options = std::make_shared<PlanCommandOptions>();
  add_model_argument(*command, line, options->model);
  command
      ->add_option("--tokens", options->plan.source,
                   "source tokens, where the model reads tokens; default 32")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--batch", options->plan.batch, "inputs at once")
      ->check(CLI::Range(1, 65536));
  CLI::Option* target = command->add_option("--target", options->plan.target,
                                            "tokens of the decoder; as many as --tokens");
  target->check(CLI::Range(1, 1 << 20));
  command->add_option("--beams", options->plan.beams, "beams per input, up to 16")
      ->check(CLI::Range(1, kMostBeams));
  add_choice<PassKind>(*command, "--pass", options->plan.pass,
                       "forward, or prompt and step: the two passes of a generation");
  add_file_option(*command, "--cluster", options->cluster,
                  "estimate the model on the devices and links that this JSON file describes; of "
                  "the model config.json is enough");
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer plan models/g2p-en --tokens 32\n"
               "  vkformer plan models/g2p-en --tokens 32 --pass step --batch 64 --beams 4\n"
               "  vkformer plan DIR --cluster samples/clusters/h100_nodes.json --weights f16\n");
  command->callback([&line, options, target] {
    options->has_target = target->count() > 0;
    line.run = [&line, options] { return run_plan(line.common, *options); };
  });
}

}  // namespace vkformer::cli
