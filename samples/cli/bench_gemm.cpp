// Matrix products, the encoder stack and the roofline of `vkformer bench`.
#include <algorithm>
#include <chrono>
#include <thread>

#include "bench.h"
#include "openblas.h"

namespace vkformer::cli {

namespace {

constexpr int kRounds = 5;  // of products by turns

Json device_json(const Device& device) {
  const DeviceInfo info = device.info();
  Json json;
  json["device"] = info.name;
  json["driver"] = info.driver;
  json["tier"] = choice_name(device.tier());
  return json;
}

std::string percent(double share) {
  return fixed(share * 100, 1) + "%";
}

std::string shape_name(const GemmBenchmark& shape) {
  return "gemm " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
         std::to_string(shape.k) + " " + choice_name(shape.weights);
}

// By turns, so that both meet the same weather; medians over the rounds.
struct Duel {
  GemmTime ours;  // the last one, with the median of all rounds as its time
  double blas_ms = 0;
};

Result<Duel> duel(const Device& device, const OpenBlas& blas, GemmBenchmark shape) {
  std::vector<double> ours, theirs;
  Duel result;
  shape.repeats = 3;
  blas.product_ms(shape.m, shape.n, shape.k);  // wakes its threads and fills its buffers
  for (int round = 0; round < kRounds; ++round) {
    theirs.push_back(blas.product_ms(shape.m, shape.n, shape.k));
    // OpenBLAS threads spin for a while after a product and would take our time.
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    Result<GemmTime> time = benchmark_gemm(device, shape);
    if (!time) return time.error();
    ours.push_back(time->ms_median);
    result.ours = std::move(*time);
  }
  result.blas_ms = median(theirs);
  result.ours.ms_median = median(ours);
  const double operations = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                            static_cast<double>(shape.k);
  if (result.ours.ms_median > 0) result.ours.gflops = operations / result.ours.ms_median * 1e-6;
  return result;
}

Result<BenchRow> gemm_row(const Device& device, const Roofline& roofline,
                          const std::optional<OpenBlas>& blas, const GemmBenchmark& shape) {
  BenchRow row;
  row.section = "against OpenBLAS";
  row.name = shape_name(shape);
  row.unit = "ms";
  GemmTime time;
  if (blas && shape.weights == WeightFormat::kF32) {
    const Result<Duel> both = duel(device, *blas, shape);
    if (!both) return both.error();
    time = both->ours;
    row.note = fixed(both->blas_ms / time.ms_median, 3) + " of OpenBLAS (" +
               fixed(both->blas_ms, 2) + " ms)";
  } else {
    Result<GemmTime> alone = benchmark_gemm(device, shape);
    if (!alone) return alone.error();
    time = std::move(*alone);
  }
  row.value = time.ms_median;
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  row.flops = 2 * m * n * k;
  row.bytes = 4 * (m * k + m * n) + weight_bits(shape.weights) / 8 * n * k;
  set_roofline_share(roofline, row);
  row.hash = time.hash;
  row.kernels = time.kernel;
  return row;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double gemm_roofline_share(const GemmBenchmark& shape, const GemmTime& time,
                           const Roofline& roofline) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const double bytes = 4 * (m * k + m * n) + weight_bits(shape.weights) / 8 * n * k;
  const double limit = std::min(roofline.fma_gflops, 2 * m * n * k / bytes * roofline.copy_gbytes);
  return limit > 0 ? time.gflops / limit : 0;
}

int run_bench_gemm(const CommonOptions& common, const GemmBenchmark& shape) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Progress progress("measuring", common.progress());
  const Result<Roofline> roofline = measure_roofline(*device);
  if (!roofline) return report(roofline.error());
  const Result<GemmTime> time = benchmark_gemm(*device, shape);
  if (!time) return report(time.error());
  const double share = gemm_roofline_share(shape, *time, *roofline);
  if (!common.json) {
    print_line(shape_name(shape) + ": " + fixed(time->gflops, 1) + " GFLOP/s, median " +
               fixed(time->ms_median, 3) + " ms, " + percent(share) + " of the roofline");
    print_line("kernel " + time->kernel + ", hash " + time->hash + ", on " + device->info().name);
    return kExitOk;
  }
  Json json;
  json["m"] = shape.m;
  json["n"] = shape.n;
  json["k"] = shape.k;
  json["dtype"] = choice_name(shape.weights);
  json["precision"] = choice_name(shape.precision);
  json["gflops"] = time->gflops;
  json["ms_median"] = time->ms_median;
  json["ms_min"] = time->ms_min;
  json["roofline_share"] = share;
  json["roofline_gflops"] = roofline->fma_gflops;
  json.update(device_json(*device));
  json["kernel"] = time->kernel;
  json["hash"] = time->hash;
  print_json(json);
  return kExitOk;
}

int run_bench_encoder(const CommonOptions& common, const EncoderBenchmark& shape) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Progress progress("measuring", common.progress());
  const Result<Roofline> roofline = measure_roofline(*device);
  if (!roofline) return report(roofline.error());
  const Result<EncoderTime> time = benchmark_encoder(*device, shape);
  if (!time) return report(time.error());
  const double share = roofline->fma_gflops > 0 ? time->gflops / roofline->fma_gflops : 0;
  if (!common.json) {
    print_line("encoder, " + std::to_string(shape.tokens) + " tokens, " +
               std::to_string(shape.layers) + " layers, width " + std::to_string(shape.width) +
               ": " + fixed(time->gflops, 1) + " GFLOP/s, median " + fixed(time->ms_median, 1) +
               " ms, " + percent(share) + " of the roofline");
    print_line(std::to_string(time->dispatches) + " dispatches, hash " + time->hash + ", on " +
               device->info().name);
    return kExitOk;
  }
  Json json;
  json["tokens"] = shape.tokens;
  json["layers"] = shape.layers;
  json["width"] = shape.width;
  json["heads"] = shape.heads;
  json["ffn"] = shape.ffn;
  json["gflops"] = time->gflops;
  json["ms_median"] = time->ms_median;
  json["roofline_share"] = share;
  json["dispatches"] = time->dispatches;
  json.update(device_json(*device));
  json["hash"] = time->hash;
  print_json(json);
  return kExitOk;
}

Status add_gemm_rows(const Device& device, const Roofline& roofline, std::vector<BenchRow>& rows) {
  const std::optional<OpenBlas> blas = OpenBlas::open();
  GemmBenchmark square, wide, wide_half, row_vector;
  wide.m = wide_half.m = 145;
  wide.n = wide_half.n = 3072;
  wide.k = wide_half.k = 768;
  wide_half.weights = WeightFormat::kF16;
  row_vector.m = 1;
  for (const GemmBenchmark& shape : {square, wide, wide_half, row_vector}) {
    Result<BenchRow> row = gemm_row(device, roofline, blas, shape);
    if (!row) return row.error();
    rows.push_back(std::move(*row));
  }
  const Result<EncoderTime> encoder = benchmark_encoder(device, {});
  if (!encoder) return encoder.error();
  BenchRow row;
  row.section = "against OpenBLAS";
  row.name = "encoder 145 tokens, 12 layers, width 768";
  row.value = encoder->ms_median;
  row.unit = "ms";
  row.flops = encoder->gflop * 1e9;
  set_roofline_share(roofline, row);
  row.hash = encoder->hash;
  row.note = std::to_string(encoder->dispatches) +
             " dispatches; OpenBLAS: " + (blas ? blas->description() : "not installed");
  rows.push_back(std::move(row));
  return {};
}

}  // namespace vkformer::cli
