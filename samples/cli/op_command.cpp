// `vkformer op`: one operator by name, on tensors of a file or on random ones.
#include <charconv>
#include <map>
#include <memory>
#include <random>

#include "command_line.h"
#include "vkformer/benchmark.h"
#include "vkformer/operators.h"

namespace vkformer::cli {

namespace {

struct OpOptions {
  std::string name;
  std::string attributes = "{}";
  std::string inputs;
  std::vector<std::string> random;
  std::string outputs;
  int repeats = 1;
  OperatorOptions settings;
  bool poison = false;
};

// One --random: a name, a shape, and for integers and masks what they may be.
struct RandomInput {
  std::string name;
  std::string kind = "f32";
  Shape shape;
};

Error random_error(const std::string& text) {
  return Error{ErrorCode::kInvalidArgument,
               "[--random] is '" + text +
                   "', but must look like Q=1,8,512,64 or key_mask:mask=1,512 or ids:below100=7."};
}

Result<RandomInput> parse_random(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return random_error(text);
  RandomInput input{.name = text.substr(0, equals)};
  const size_t colon = input.name.find(':');
  if (colon != std::string::npos) {
    input.kind = input.name.substr(colon + 1);
    input.name.resize(colon);
  }
  const char* at = text.data() + equals + 1;
  const char* end = text.data() + text.size();
  while (at < end) {
    int64_t size = 0;
    const auto [next, code] = std::from_chars(at, end, size);
    if (code != std::errc() || size < 0 || (next != end && *next != ',')) return random_error(text);
    input.shape.push_back(size);
    at = next + (next != end ? 1 : 0);
  }
  // No shape of a real tensor comes near; a typing mistake shall not ask for a terabyte.
  int64_t elements = 1;
  for (int64_t size : input.shape) {
    elements = size > 0 && elements > (int64_t{1} << 31) / size ? -1 : elements * size;
    if (elements < 0) return random_error(text);
  }
  return input;
}

// Normally distributed f32; U8 of which about nine in ten are 1; I64 in [0, n).
Result<Tensor> random_tensor(const RandomInput& input, std::mt19937& engine) {
  const auto count = static_cast<size_t>(element_count(input.shape));
  if (input.kind == "f32") {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(engine);
    return Tensor::from_floats(input.shape, values);
  }
  if (input.kind == "mask") {
    Tensor mask = Tensor::zeros(DType::kU8, input.shape);
    std::bernoulli_distribution coin(0.9);
    for (std::byte& value : mask.bytes) value = coin(engine) ? std::byte{1} : std::byte{0};
    return mask;
  }
  int64_t below = 0;
  const std::string prefix = "below";
  const char* end = input.kind.data() + input.kind.size();
  if (input.kind.rfind(prefix, 0) == 0) {
    const auto [next, code] = std::from_chars(input.kind.data() + prefix.size(), end, below);
    if (code != std::errc() || next != end) below = 0;
  }
  if (below < 1) return random_error(input.name + ":" + input.kind);
  std::uniform_int_distribution<int64_t> uniform(0, below - 1);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = uniform(engine);
  return Tensor::from_ints(input.shape, values);
}

Result<TensorMap> gather_inputs(const OpOptions& options) {
  TensorMap inputs;
  if (!options.inputs.empty()) {
    Result<TensorMap> read = read_tensor_file(options.inputs);
    if (!read) return read.error();
    inputs = std::move(*read);
  }
  std::mt19937 engine(1);
  for (const std::string& text : options.random) {
    const Result<RandomInput> input = parse_random(text);
    if (!input) return input.error();
    Result<Tensor> tensor = random_tensor(*input, engine);
    if (!tensor) return tensor.error();
    inputs[input->name] = std::move(*tensor);
  }
  return inputs;
}

void print_result(const OperatorResult& result, bool as_json) {
  if (as_json) {
    Json json;
    json["milliseconds"] = result.milliseconds;
    json["scratch_bytes"] = result.scratch_bytes;
    json["dispatches"] = result.dispatches;
    json["flops"] = result.flops;
    json["bytes"] = result.bytes;
    json["outputs"] = Json::object();
    for (const auto& [name, tensor] : result.outputs) {
      json["outputs"][name] = {{"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}};
    }
    print_json(json);
    return;
  }
  for (const auto& [name, tensor] : result.outputs) {
    print_line(padded(name, 28) + padded(dtype_name(tensor.dtype), 6) + shape_text(tensor.shape));
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "%.3f ms, %d dispatches, %.3g flop, %.3g B moved, %.3g B scratch",
                result.milliseconds, result.dispatches, result.flops, result.bytes,
                static_cast<double>(result.scratch_bytes));
  print_line(text);
}

int list_operators(bool as_json) {
  Json names = operator_names();
  if (as_json) {
    print_json(names);
    return kExitOk;
  }
  for (const std::string& name : operator_names()) print_line(name);
  return kExitOk;
}

int run_op(const CommonOptions& common, const OpOptions& options) {
  if (options.name.empty()) return list_operators(common.json);
  Result<TensorMap> inputs = gather_inputs(options);
  if (!inputs) return report(inputs.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  OperatorOptions settings = options.settings;
  settings.repeats = options.repeats;
  settings.poison = options.poison;
  const OperatorCall call{options.name, options.attributes, std::move(*inputs)};
  const Result<OperatorResult> result = [&]() -> Result<OperatorResult> {
    const Progress progress("running " + options.name, common.progress());
    if (settings.repeats > 1) {  // for their time: pipelines are made first, and the clock is up
      OperatorOptions once = settings;
      once.repeats = 1;
      const Result<OperatorResult> ran = run_operator(*device, call, once);
      if (!ran) return ran.error();
      const Status awake = wake_device(*device);
      if (!awake) return awake.error();
    }
    return run_operator(*device, call, settings);
  }();
  if (!result) return report(result.error());
  if (!options.outputs.empty()) {
    const Status written = write_tensor_file(options.outputs, result->outputs);
    if (!written) return report(written.error());
  }
  if (!common.quiet || common.json) print_result(*result, common.json);
  return kExitOk;
}

}  // namespace

void add_op_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "op", "Run one operator by name on tensors; without a name, list the operators.");
  const auto options = std::make_shared<OpOptions>();
  command->add_option("NAME", options->name, "operator: attention, gemm, layer_norm, ...");
  command->add_option("--attributes", options->attributes, "its attributes, a JSON object");
  add_file_option(*command, "--inputs", options->inputs,
                  "safetensors file with its inputs by name");
  command->add_option("--random", options->random,
                      "a random input by name and shape: Q=1,8,512,64; a mask: "
                      "key_mask:mask=1,512; integers below 100: ids:below100=7");
  add_file_option(*command, "--outputs", options->outputs, "safetensors file to write");
  command
      ->add_option("--repeats", options->repeats,
                   "runs; all must give the same bits; the time is the median")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--poison", options->poison,
                    "fill outputs and temporaries with NaN before each run");
  add_choice<WeightFormat>(*command, "--weights", options->settings.weights, "storage of weights",
                           {"f32", "f16", "bf16", "q8", "q4", "q4m"});
  add_choice<Precision>(*command, "--precision", options->settings.precision,
                        "arithmetic: f32 or f16");
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer op\n"
               "  vkformer op attention --random Q=1,8,512,64 K=1,8,512,64 V=1,8,512,64 "
               "--attributes '{\"causal\": true}' --repeats 5\n"
               "  vkformer op softmax --inputs in.safetensors --outputs out.safetensors\n");
  command->callback(
      [&line, options] { line.run = [&line, options] { return run_op(line.common, *options); }; });
}

}  // namespace vkformer::cli
