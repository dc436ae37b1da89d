// Operators, matrix products and encoder stacks at the sizes of real models, over the public API.
//
//   vkformer_bench [--device=<as `vkformer devices` has it>] [--benchmark_... flags]
//
// --benchmark_format=json and --benchmark_out=<file> write JSON. Times are the device's own where
// it has timestamps; one iteration is the median of several runs.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "vkformer/benchmark.h"
#include "vkformer/device.h"
#include "vkformer/operators.h"

namespace {

using namespace vkformer;

constexpr int kIterations = 3;
constexpr int kRuns = 7;  // of an iteration

// Inputs are uniform in [-1, 1); `ids` are below `limit`.
struct InputRow {
  const char* name;
  Shape shape;
  int64_t limit = 0;  // 0: floats
};

struct OperatorRow {
  const char* model;  // whose sizes these are
  const char* name;
  const char* attributes;
  std::vector<InputRow> inputs;
};

std::vector<OperatorRow> operator_rows() {
  const Shape vit = {1, 145, 768}, vit_up = {1, 145, 3072}, vit_heads = {1, 12, 145, 64};
  const Shape marian_step = {6, 59514}, marian = {32, 40, 512};
  const Shape llama = {1, 512, 4096}, llama_heads = {1, 32, 128, 128},
              llama_keys = {1, 8, 128, 128};
  return {
      {"vit-b32-384", "layer_norm", "{}", {{"X", vit}, {"weight", {768}}, {"bias", {768}}}},
      {"vit-b32-384", "activation", R"({"kind": "gelu"})", {{"X", vit_up}}},
      {"vit-b32-384", "attention", "{}", {{"Q", vit_heads}, {"K", vit_heads}, {"V", vit_heads}}},
      {"vit-b32-384", "softmax", "{}", {{"X", {1, 12, 145, 145}}}},
      {"marian", "embedding", "{}", {{"ids", {32, 40}, 32000}, {"table", {32000, 512}}}},
      {"marian", "layer_norm", "{}", {{"X", marian}, {"weight", {512}}, {"residual", marian}}},
      {"marian", "log_softmax", "{}", {{"X", marian_step}}},
      {"marian", "argmax", "{}", {{"X", marian_step}}},
      {"marian", "top_k", R"({"k": 12})", {{"X", marian_step}}},
      {"llama-8b", "rms_norm", "{}", {{"X", llama}, {"weight", {4096}}}},
      {"llama-8b", "gated_activation", R"({"kind": "silu"})", {{"X", {1, 512, 28672}}}},
      {"llama-8b",
       "attention",
       R"({"causal": true})",
       {{"Q", llama_heads}, {"K", llama_keys}, {"V", llama_keys}}},
  };
}

struct GemmRow {
  const char* model;
  int64_t m, n, k;
};

constexpr GemmRow kGemmRows[] = {
    {"square", 1024, 1024, 1024},         {"vit-b32-384/qkv", 145, 2304, 768},
    {"vit-b32-384/out", 145, 768, 768},   {"vit-b32-384/up", 145, 3072, 768},
    {"vit-b32-384/down", 145, 768, 3072}, {"marian/up", 1280, 2048, 512},
    {"marian/head", 6, 59514, 512},       {"decode/square", 1, 1024, 1024},
    {"decode/up", 1, 14336, 4096},
};

struct EncoderRow {
  const char* model;
  EncoderBenchmark sizes;
};

const EncoderRow kEncoderRows[] = {
    {"vit-b32-384", {}},
    {"marian-encoder", {.tokens = 40, .layers = 6, .width = 512, .heads = 8, .ffn = 2048}},
    {"minilm-l6", {.tokens = 128, .layers = 6, .width = 384, .heads = 12, .ffn = 1536}},
};

TensorMap make_inputs(const std::vector<InputRow>& rows) {
  std::mt19937 engine(1);
  TensorMap inputs;
  for (const InputRow& row : rows) {
    const auto count = static_cast<size_t>(element_count(row.shape));
    if (row.limit > 0) {
      std::uniform_int_distribution<int64_t> id(0, row.limit - 1);
      std::vector<int64_t> values(count);
      for (int64_t& value : values) value = id(engine);
      inputs.emplace(row.name, Tensor::from_ints(row.shape, values));
      continue;
    }
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(engine);
    inputs.emplace(row.name, Tensor::from_floats(row.shape, values));
  }
  return inputs;
}

void run_operator_row(benchmark::State& state, const Device& device, const OperatorRow& row) {
  const OperatorCall call{row.name, row.attributes, make_inputs(row.inputs)};
  OperatorOptions options;
  options.repeats = kRuns;
  for (auto iteration : state) {
    const Result<OperatorResult> result = run_operator(device, call, options);
    if (!result) return state.SkipWithError(result.error().message.c_str());
    state.SetIterationTime(result->milliseconds * 1e-3);
  }
}

void run_gemm_row(benchmark::State& state, const Device& device, const GemmRow& row,
                  const std::string& weights) {
  GemmBenchmark options;
  options.m = row.m;
  options.n = row.n;
  options.k = row.k;
  options.weights = weights;
  options.repeats = kRuns;
  GemmTime last;
  for (auto iteration : state) {
    Result<GemmTime> time = benchmark_gemm(device, options);
    if (!time) return state.SkipWithError(time.error().message.c_str());
    last = std::move(*time);
    state.SetIterationTime(last.ms_median * 1e-3);
  }
  state.counters["gflops"] = last.gflops;
  state.SetLabel(last.kernel + " " + last.hash);
}

void run_encoder_row(benchmark::State& state, const Device& device, const EncoderRow& row) {
  EncoderTime last;
  for (auto iteration : state) {
    Result<EncoderTime> time = benchmark_encoder(device, row.sizes);
    if (!time) return state.SkipWithError(time.error().message.c_str());
    last = std::move(*time);
    state.SetIterationTime(last.ms_median * 1e-3);
  }
  state.counters["gflops"] = last.gflops;
  state.counters["dispatches"] = last.dispatches;
  state.SetLabel(last.hash);
}

// The number of iterations is fixed: what an iteration costs besides the measured time (upload,
// recording) would make the library's own choice run for minutes.
template <class Function>
void add(const std::string& name, Function function) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(kIterations);
}

void add_all(const Device& device) {
  for (const OperatorRow& row : operator_rows()) {
    add(std::string(row.name) + "/" + row.model,
        [&device, row](benchmark::State& state) { run_operator_row(state, device, row); });
  }
  for (const GemmRow& row : kGemmRows) {
    for (const char* weights : {"f32", "f16"}) {
      add(std::string("gemm/") + row.model + "/" + weights,
          [&device, row, weights](benchmark::State& state) {
            run_gemm_row(state, device, row, weights);
          });
    }
  }
  for (const EncoderRow& row : kEncoderRows) {
    add(std::string("encoder/") + row.model,
        [&device, &row](benchmark::State& state) { run_encoder_row(state, device, row); });
  }
}

// What is left of the command line once the library has taken its own flags.
bool read_device(int argc, char** argv, DeviceOptions& options) {
  const std::string flag = "--device=";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind(flag, 0) != 0) {
      std::fprintf(stderr, "[%s] is not known; use %s<device> or a --benchmark_ flag.\n",
                   argument.c_str(), flag.c_str());
      return false;
    }
    options.device = argument.substr(flag.size());
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  DeviceOptions options;
  if (!read_device(argc, argv, options)) return 2;
  const Result<Device> device = Device::create(options);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 3;
  }
  const DeviceInfo info = device->info();
  benchmark::AddCustomContext("device", info.name);
  benchmark::AddCustomContext("driver", info.driver);
  benchmark::AddCustomContext("tier", device->tier());
  add_all(*device);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
