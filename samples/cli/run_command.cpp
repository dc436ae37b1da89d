// `vkformer run`: one forward pass, from tensors to tensors.
#include <memory>

#include "command_line.h"
#include "vkformer/session.h"

namespace vkformer::cli {

namespace {

struct RunCommandOptions {
  std::string model;
  std::string inputs;
  std::string outputs;
  ModelOptions load;
  bool attentions = false;
  bool hidden_states = false;
  bool clamp_positions = false;
  bool nan_check = false;
};

void print_outputs(const TensorMap& outputs, bool as_json) {
  Json json = Json::object();
  for (const auto& [name, tensor] : outputs) {
    if (!as_json) {
      print_line(padded(name, 28) + padded(dtype_name(tensor.dtype), 6) + shape_text(tensor.shape));
      continue;
    }
    Json entry;
    entry["dtype"] = dtype_name(tensor.dtype);
    entry["shape"] = tensor.shape;
    json[name] = std::move(entry);
  }
  if (as_json) print_json(json);
}

int run_pass(const CommonOptions& common, const RunCommandOptions& options) {
  const Result<TensorMap> inputs = read_tensor_file(options.inputs);
  if (!inputs) return report(inputs.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  ModelOptions load = options.load;
  load.first_use = SessionSizes{.inputs = *inputs};
  const Result<Model> model = load_model(common, *device, options.model, load);
  if (!model) return report(model.error());
  Result<Session> session = Session::create(*model);
  if (!session) return report(session.error());
  RunOptions taps;
  taps.attentions = options.attentions;
  taps.hidden_states = options.hidden_states;
  if (options.clamp_positions) taps.long_inputs = RunOptions::LongInputs::kClamp;
  const auto run = [&] {
    const Progress progress("running " + options.model, common.progress());
    return session->run(*inputs, taps);
  };
  const Result<TensorMap> outputs = options.nan_check ? without_nan(*device, run) : run();
  if (!outputs) return report(outputs.error());
  const Status written = write_tensor_file(options.outputs, *outputs);
  if (!written) return report(written.error());
  if (!common.quiet || common.json) print_outputs(*outputs, common.json);
  return kExitOk;
}

}  // namespace

void add_run_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("run", "Run one forward pass on the tensors of a safetensors file.");
  const auto options = std::make_shared<RunCommandOptions>();
  add_model_argument(*command, line, options->model);
  add_file_option(*command, "--inputs", options->inputs,
                  "safetensors file with input_ids (B,S), attention_mask (B,S), "
                  "decoder_input_ids (B,T), decoder_attention_mask (B,T)")
      ->required();
  add_file_option(*command, "--outputs", options->outputs, "safetensors file to write")->required();
  command->add_flag("--attentions", options->attentions, "write attention weights too");
  command->add_flag("--hidden-states", options->hidden_states,
                    "write the input of every layer too");
  command->add_flag("--clamp-positions", options->clamp_positions,
                    "tokens beyond the model's last position take that one; else they are refused");
  add_nan_check(*command, options->nan_check);
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_group_options(*command, line.common);
  add_examples(*command,
               "  vkformer run models/g2p-en --inputs in.safetensors --outputs out.safetensors\n"
               "  vkformer run models/g2p-en --inputs in.safetensors --outputs out.safetensors "
               "--attentions\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_pass(line.common, *options); };
  });
}

}  // namespace vkformer::cli
