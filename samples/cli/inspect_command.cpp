// `vkformer inspect`: what a model directory holds, checked without a device. With --memory it
// shows what the model and a session will take of one. With --attention it shows what the heads do.
#include <algorithm>
#include <memory>

#include "attend_heads.h"
#include "command_line.h"
#include "pack_text.h"
#include "vkformer/tasks.h"

namespace vkformer::cli {

namespace {

struct InspectOptions {
  std::string model;
  bool tensors = false;
  bool memory = false;
  SessionSizes sizes;
  std::string inputs;  // path
  HeadsOptions heads;
};

std::string shape_of(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

Json info_json(const ModelInfo& info, bool with_tensors) {
  Json json;
  json["family"] = info.family;
  json["architecture"] = info.architecture;
  json["kind"] = choice_name(info.kind);
  json["source"] = choice_name(info.source);
  json["head"] = choice_name(info.head);
  json["tasks"] = names_of(model_tasks(info));
  json["parameters"] = info.parameters;
  json["width"] = info.width;
  json["encoder_layers"] = info.encoder_layers;
  json["decoder_layers"] = info.decoder_layers;
  json["encoder_heads"] = info.encoder_heads;
  json["decoder_heads"] = info.decoder_heads;
  json["source_vocab"] = info.source_vocab;
  json["target_vocab"] = info.target_vocab;
  json["max_source"] = info.max_source;
  json["max_target"] = info.max_target;
  json["tensor_count"] = info.tensors.size();
  if (!with_tensors) return json;
  json["tensors"] = Json::array();
  for (const TensorInfo& tensor : info.tensors) {
    Json entry;
    entry["name"] = tensor.name;
    entry["dtype"] = dtype_name(tensor.dtype);
    if (!tensor.packing.empty()) entry["packing"] = tensor.packing;
    entry["shape"] = tensor.shape;
    entry["file"] = tensor.file;
    json["tensors"].push_back(std::move(entry));
  }
  return json;
}

std::string stack_text(int64_t layers, int64_t heads) {
  return std::to_string(layers) + " layers, " + std::to_string(heads) + " heads";
}

void print_info(const ModelInfo& info, bool with_tensors) {
  print_line("family        " + info.family + " (" + info.architecture + ")");
  print_line(std::string("reads         ") + choice_name(info.source) + " (" +
             choice_name(info.kind) + ", head: " + choice_name(info.head) + ")");
  std::string tasks;
  for (const std::string& task : names_of(model_tasks(info))) {
    tasks += (tasks.empty() ? "" : ", ") + task;
  }
  print_line("tasks         " + (tasks.empty() ? "none" : tasks));
  print_line("parameters    " + count_text(info.parameters) + " in " +
             std::to_string(info.tensors.size()) + " tensors");
  print_line("width         " + std::to_string(info.width));
  print_line("encoder       " + stack_text(info.encoder_layers, info.encoder_heads));
  print_line("decoder       " + stack_text(info.decoder_layers, info.decoder_heads));
  print_line("vocabulary    " + std::to_string(info.source_vocab) + " source, " +
             std::to_string(info.target_vocab) + " target");
  print_line("positions     " + std::to_string(info.max_source) + " source, " +
             std::to_string(info.max_target) + " target");
  if (!with_tensors) return;
  size_t width = 0;
  for (const TensorInfo& tensor : info.tensors) width = std::max(width, tensor.name.size());
  for (const TensorInfo& tensor : info.tensors) {
    const std::string type = tensor.packing.empty() ? dtype_name(tensor.dtype) : tensor.packing;
    print_line(padded(tensor.name, width + 2) + padded(type, 8) +
               padded(shape_of(tensor.shape), 20) + tensor.file);
  }
}

int run_memory(const CommonOptions& common, const InspectOptions& options) {
  SessionSizes sizes = options.sizes;
  if (!options.inputs.empty()) {
    Result<TensorMap> inputs = read_tensor_file(options.inputs);
    if (!inputs) return report(inputs.error());
    sizes.inputs = std::move(*inputs);
  }
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Result<MemoryNeeds> needs =
      memory_needs(*device, ModelSource::directory(options.model), options.heads.load, sizes);
  if (!needs) return report(needs.error());
  const std::pair<const char*, uint64_t> parts[] = {
      {"weights", needs->weights}, {"arena", needs->arena},     {"cache", needs->cache},
      {"tensors", needs->tensors}, {"staging", needs->staging}, {"total", needs->total}};
  if (common.json) {
    Json json;
    json["model"] = options.model;
    json["device"] = device->info().name;
    if (options.inputs.empty()) {
      json["batch"] = options.sizes.batch;
      json["tokens"] = options.sizes.tokens;
    } else {
      json["inputs"] = options.inputs;
    }
    json["new_tokens"] = options.sizes.new_tokens;
    json["beams"] = options.sizes.beams;
    for (const auto& [name, bytes] : parts) json[std::string(name) + "_bytes"] = bytes;
    json["arena_bound_bytes"] = needs->arena_bound;
    print_json(json);
    return kExitOk;
  }
  for (const auto& [name, bytes] : parts) {
    print_line(padded(name, 14) + fixed(static_cast<double>(bytes) / (1 << 20), 2) + " MiB");
  }
  return kExitOk;
}

int run_inspect(const CommonOptions& common, const InspectOptions& options) {
  const HeadsOptions& heads = options.heads;
  if (heads.asked) return run_heads(common, options.model, heads);
  if (!heads.inputs.empty() || !heads.picture.empty() || !heads.ids.empty()) {
    return report_usage("inspect looks at inputs only with --attention, or --memory --inputs.");
  }
  if (options.memory) return run_memory(common, options);
  const Result<ModelInfo> info = inspect_model(options.model);
  if (!info) return report(info.error());
  std::optional<PackInfo> pack;
  if (is_pack(options.model)) {
    Result<PackInfo> read = read_pack_info(options.model);
    if (!read) return report(read.error());
    pack = std::move(*read);
  }
  if (common.json) {
    Json json = info_json(*info, options.tensors);
    if (pack) json["pack"] = pack_json(*pack);
    print_json(json);
  } else {
    print_info(*info, options.tensors);
    if (pack) print_pack(*pack);
  }
  return kExitOk;
}

}  // namespace

void add_inspect_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Read and check a model directory or a GGUF file; needs a device only for --memory and "
      "--attention.");
  const auto options = std::make_shared<InspectOptions>();
  add_model_argument(*command, line, options->model);
  command->add_flag("--tensors", options->tensors, "list every tensor");
  CLI::Option* memory = command->add_flag("--memory", options->memory,
                                          "device memory that the model and one session will take");
  CLI::Option* inputs =
      add_file_option(*command, "--inputs", options->inputs,
                      "safetensors file, as of run; its tensors' sizes count, not what they hold")
          ->needs(memory);
  command->add_option("--batch", options->sizes.batch, "inputs at once")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(inputs)
      ->needs(memory);
  command->add_option("--tokens", options->sizes.tokens, "tokens of each input")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(inputs)
      ->needs(memory);
  command
      ->add_option("--new-tokens", options->sizes.new_tokens,
                   "tokens to generate, or frames of a second pass (vits); 0: one pass")
      ->check(CLI::Range(0, 1 << 20))
      ->needs(memory);
  command->add_option("--beams", options->sizes.beams, "beams per input, up to 16")
      ->check(CLI::Range(1, kMostBeams))
      ->needs(memory);
  add_cache_option(*command, options->sizes.cache);
  add_heads_options(*command, options->heads);
  add_model_options(*command, options->heads.load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer inspect models/g2p-en\n"
               "  vkformer inspect models/g2p-en --tensors --json\n"
               "  vkformer inspect models/g2p-en --memory --tokens 20 --new-tokens 30\n"
               "  vkformer inspect models/g2p-en --attention attention entropy\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_inspect(line.common, *options); };
  });
}

}  // namespace vkformer::cli
