// `vkformer quantize`: writes a model directory whose matrices take less room.
#include <algorithm>
#include <memory>

#include "command_line.h"
#include "vkformer/quantize.h"

namespace vkformer::cli {

namespace {

struct QuantizeOptions {
  std::string model;
  std::string target;
  std::string weights;  // empty: q8, or q8_0 in a GGUF file
  std::vector<AdapterChoice> adapters;
};

bool names_gguf(const std::string& path) {
  return path.ends_with(".gguf");
}

using Formats = std::vector<std::string>;

Formats formats_of(const std::string& target) {
  if (!names_gguf(target)) return {"q8", "q4", "q4m", "bf16", "f16"};
  return {"q8_0", "q6_k", "q5_k", "q5_1",   "q5_0",   "q4_k",  "q4_1", "q4_0",
          "q3_k", "q2_k", "bf16", "iq4_nl", "iq4_xs", "mxfp4", "f16",  "f32"};
}

Formats all_formats() {
  Formats formats = formats_of("");
  for (const std::string& format : formats_of(".gguf")) {
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
      formats.push_back(format);
    }
  }
  return formats;
}

// A format of the other kind of target is a mistake in the command line.
void check_weights(const QuantizeOptions& options) {
  const Formats formats = formats_of(options.target);
  const bool known = std::find(formats.begin(), formats.end(), options.weights) != formats.end();
  if (options.weights.empty() || known) return;
  std::string names;
  for (const std::string& name : formats) names += (names.empty() ? "" : ", ") + name;
  throw CLI::ValidationError("--weights", "[" + options.weights + "] is no format of [" +
                                              options.target + "], which may have " + names);
}

// Sets `weights` to the name of the format that is used.
Result<QuantizeReport> quantize(const QuantizeOptions& options, std::string& weights) {
  const bool gguf = names_gguf(options.target);
  weights = !options.weights.empty() ? options.weights : gguf ? "q8_0" : "q8";
  const auto format = choice_from_name<WeightFormat>(weights);
  if (!format) return format.error();
  return gguf ? write_gguf(options.model, options.target, {*format, options.adapters})
              : quantize_model(options.model, options.target, {*format, options.adapters});
}

std::string megabytes(uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / 1e6, 2) + " MB";
}

int run_quantize(const CommonOptions& common, const QuantizeOptions& options) {
  std::string weights;
  const Result<QuantizeReport> done = quantize(options, weights);
  if (!done) return report(done.error());
  if (common.json) {
    Json json;
    json["weights"] = weights;
    json["tensors"] = done->tensors;
    json["matrices"] = done->matrices;
    json["bytes_before"] = done->bytes_before;
    json["bytes_after"] = done->bytes_after;
    print_json(json);
    return kExitOk;
  }
  print_line(std::to_string(done->matrices) + " of " + std::to_string(done->tensors) +
             " tensors in " + weights + ": " + megabytes(done->bytes_before) + " became " +
             megabytes(done->bytes_after) + " in " + options.target);
  return kExitOk;
}

}  // namespace

void add_quantize_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "quantize",
      "Write a model directory, or a GGUF file, with smaller weights; needs no device.");
  const auto options = std::make_shared<QuantizeOptions>();
  add_model_argument(*command, line, options->model);
  add_folder_option(*command, "OUT", options->target,
                    "directory to write, made where it is missing; or a file that ends with .gguf")
      ->required();
  command
      ->add_option("--weights", options->weights,
                   "format of matrices: q8, q4, q4m, bf16 or f16; in GGUF f32, f16, bf16 or a type "
                   "of blocks such as q4_k, without it q8_0")
      ->default_str("q8")
      ->check(CLI::IsMember(all_formats()));
  add_adapter_option(*command, options->adapters);
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer quantize models/g2p-en /tmp/g2p-q8\n"
               "  vkformer quantize models/g2p-en /tmp/g2p-q4 --weights q4\n"
               "  vkformer generate /tmp/g2p-q4 attention\n"
               "  vkformer quantize models/llama /tmp/llama.gguf --weights q4_k\n");
  command->callback([&line, options] {
    check_weights(*options);
    line.run = [&line, options] { return run_quantize(line.common, *options); };
  });
}

}  // namespace vkformer::cli
