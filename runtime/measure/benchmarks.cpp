#include "measure/benchmarks.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "measure/benchmark_inputs.h"
#include "measure/wake.h"
#include "ops/attention.h"
#include "ops/layer_norm.h"
#include "ops/matmul_dots.h"
#include "recording/dot_proof.h"

namespace vkformer {
namespace {

// Sizes whose products stay far from overflow; what the device can hold is checked on the plan.
constexpr int64_t kMostSize = 1 << 20;
constexpr int64_t kMostLayers = 1000;
constexpr int64_t kMostRepeats = 1000000;

Status check_gemm(const GemmBenchmark& o) {
  VKF_CHECK(check_benchmark_size("gemm", "m", o.m, kMostSize));
  VKF_CHECK(check_benchmark_size("gemm", "n", o.n, kMostSize));
  VKF_CHECK(check_benchmark_size("gemm", "k", o.k, kMostSize));
  VKF_CHECK(check_benchmark_size("gemm", "repeats", o.repeats, kMostRepeats));
  const auto format = matrix_format_of(o.weights);
  if (!format) {
    return invalid_argument(message({"[gemm] The option weights is '", choice_name(o.weights),
                                     "', but must be f32, f16, bf16, q8, q4 or q4m."}));
  }
  if (o.precision != Precision::kInt8 || has_integer_products(*format)) return {};
  return invalid_argument(
      message({"[gemm] The precision 'int8' multiplies quantized weights, and "
               "the option weights is '",
               choice_name(o.weights), "'. Choose q8 or another one of them."}));
}

Status check_encoder(const EncoderBenchmark& o) {
  VKF_CHECK(check_benchmark_size("encoder", "tokens", o.tokens, kMostSize));
  VKF_CHECK(check_benchmark_size("encoder", "layers", o.layers, kMostLayers));
  VKF_CHECK(check_benchmark_size("encoder", "width", o.width, kMostSize));
  VKF_CHECK(check_benchmark_size("encoder", "heads", o.heads, kMostSize));
  VKF_CHECK(check_benchmark_size("encoder", "ffn", o.ffn, kMostSize));
  VKF_CHECK(check_benchmark_size("encoder", "repeats", o.repeats, kMostRepeats));
  if (o.width % o.heads == 0 && o.width / o.heads <= kMaxHeadWidth) return {};
  return invalid_argument(
      message({"[encoder] The width ", o.width, " must be a multiple of the ", o.heads,
               " heads, and a head at most ", kMaxHeadWidth, " wide."}));
}

AttentionAttrs encoder_attention(const EncoderBenchmark& o) {
  AttentionAttrs attrs;
  const auto d = static_cast<uint32_t>(o.width);
  attrs.heads = attrs.kv_heads = static_cast<uint32_t>(o.heads);
  attrs.queries = attrs.keys = static_cast<uint32_t>(o.tokens);
  attrs.head_width = attrs.value_width = d / attrs.heads;
  attrs.q = merged_rows(attrs.queries, 3 * d, 0, attrs.head_width);
  attrs.k = merged_rows(attrs.keys, 3 * d, d, attrs.head_width);
  attrs.v = merged_rows(attrs.keys, 3 * d, 2 * d, attrs.head_width);
  attrs.y = merged_rows(attrs.queries, d, 0, attrs.head_width);
  attrs.y_shape = {o.tokens, o.width};
  return attrs;
}

// x -> the layer's output, in place of x (T, D): h = x + attention(norm(x)), h + ffn(norm(h)).
Status add_layer(BenchmarkInputs& in, const EncoderBenchmark& o, const AttentionAttrs& attention,
                 const std::string& name, TensorId& x) {
  constexpr auto kBias = BenchmarkInputs::Bias::kYes;
  Graph& g = in.graph();
  g.set_scope(name);
  const auto linear = [&](const char* part, int64_t k, int64_t n, TensorId from,
                          LinearAttrs attrs) {
    return add_linear(g, from, in.linear(name + part, k, n, MatrixFormat::kF32, kBias), attrs);
  };
  const auto norm = [&](const char* part, TensorId from) {
    return add_layer_norm(g, {.x = from, .gain_bias = in.norm(name + part, o.width)}, {});
  };
  VKF_ASSIGN(const TensorId attended, norm(".self.norm", x));
  VKF_ASSIGN(const TensorId qkv, linear(".self.qkv", o.width, 3 * o.width, attended, {}));
  VKF_ASSIGN(const TensorId heads, add_attention(g, {.q = qkv, .kv = qkv}, attention));
  VKF_ASSIGN(x, linear(".self.out", o.width, o.width, heads, {.residual = x}));
  VKF_ASSIGN(const TensorId fed, norm(".ffn.norm", x));
  VKF_ASSIGN(const TensorId up,
             linear(".ffn.up", o.width, o.ffn, fed, {.activation = ActivationKind::kGelu}));
  VKF_ASSIGN(x, linear(".ffn.down", o.ffn, o.width, up, {.residual = x}));
  return {};
}

Result<TensorId> build_encoder(BenchmarkInputs& in, const EncoderBenchmark& o) {
  TensorId x = in.uniform("input", o.tokens, o.width);
  const AttentionAttrs attention = encoder_attention(o);
  for (int64_t i = 0; i < o.layers; ++i) {
    VKF_CHECK(add_layer(in, o, attention, "encoder." + std::to_string(i), x));
  }
  in.graph().set_scope("encoder");
  VKF_ASSIGN(
      const TensorId y,
      add_layer_norm(in.graph(), {.x = x, .gain_bias = in.norm("encoder.norm", o.width)}, {}));
  in.name_output(y, "output");
  return y;
}

// Of the products and of attention's two, q k and p v.
double encoder_operations(const EncoderBenchmark& o) {
  const auto t = static_cast<double>(o.tokens), d = static_cast<double>(o.width);
  const double weights = d * (4 * d + 2 * static_cast<double>(o.ffn));
  return static_cast<double>(o.layers) * (2 * t * weights + 4 * t * t * d);
}

// Others prepare its rows, or add up parts of its sums.
const Dispatch& most_work(const Plan& plan) {
  return *std::max_element(plan.dispatches.begin(), plan.dispatches.end(),
                           [](const Dispatch& a, const Dispatch& b) { return a.flops < b.flops; });
}

}  // namespace

Result<GemmRun> run_gemm(const std::shared_ptr<VulkanDevice>& device, const GemmBenchmark& o) {
  if (!device) return invalid_argument("[gemm] The device is empty; make a Device first.");
  VKF_CHECK(check_gemm(o));
  BenchmarkInputs inputs;
  const TensorId x = inputs.uniform("input", o.m, o.k);
  const MatrixFormat format = matrix_format_of(o.weights).value();
  const LinearWeight weight = inputs.linear("weight", o.k, o.n, format, BenchmarkInputs::Bias::kNo);
  VKF_ASSIGN(const TensorId y, add_linear(inputs.graph(), x, weight, {}));
  inputs.name_output(y, "output");
  if (o.precision == Precision::kInt8) VKF_CHECK(prove_dots(device));
  VKF_ASSIGN(Plan plan, make_plan(inputs.graph(), device->caps(), o.precision));
  VKF_ASSIGN(TimedPlan timed,
             TimedPlan::create(device, std::move(plan), RecordingInputs::Profile::kOn));
  VKF_CHECK(inputs.upload_to(timed));
  VKF_ASSIGN(const std::vector<RunTime> times, run_awake(device, timed, o.repeats));

  GemmRun run;
  run.time.ms_median = median_time(times, &RunTime::device);
  run.time.ms_min = least_time(times, &RunTime::device);
  const double operations =
      2.0 * static_cast<double>(o.m) * static_cast<double>(o.n) * static_cast<double>(o.k);
  run.time.gflops = operations * 1e-6 / run.time.ms_median;
  run.time.kernel = kernel_info(most_work(timed.plan()).kernel).name;
  const auto count = static_cast<uint64_t>(o.m) * static_cast<uint64_t>(o.n);
  VKF_ASSIGN(run.time.hash, timed.hash(y, count * 4));
  VKF_ASSIGN(run.y, timed.read_floats(y, count));
  return run;
}

Result<EncoderRun> run_encoder(const std::shared_ptr<VulkanDevice>& device,
                               const EncoderBenchmark& o) {
  if (!device) return invalid_argument("[encoder] The device is empty; make a Device first.");
  VKF_CHECK(check_encoder(o));
  BenchmarkInputs inputs;
  VKF_ASSIGN(const TensorId y, build_encoder(inputs, o));
  VKF_ASSIGN(Plan plan, make_plan(inputs.graph(), device->caps(), Precision::kF32));
  VKF_ASSIGN(TimedPlan timed,
             TimedPlan::create(device, std::move(plan), RecordingInputs::Profile::kOff));
  VKF_CHECK(inputs.upload_to(timed));
  VKF_ASSIGN(const std::vector<RunTime> times, run_awake(device, timed, o.repeats));

  EncoderRun run;
  run.time.ms_median = median_time(times, &RunTime::wall);
  run.time.gflop = encoder_operations(o) * 1e-9;
  run.time.gflops = run.time.gflop * 1e3 / run.time.ms_median;
  run.time.dispatches = static_cast<int>(timed.recording().dispatch_count());
  const auto count = static_cast<uint64_t>(o.tokens) * static_cast<uint64_t>(o.width);
  VKF_ASSIGN(run.time.hash, timed.hash(y, count * 4));
  VKF_ASSIGN(run.y, timed.read_floats(y, count));
  return run;
}

}  // namespace vkformer
