// `vkformer bench`: its subcommands, and the table of all of them.
#include <memory>

#include "bench.h"

namespace vkformer::cli {

namespace {

constexpr const char* kModel = "models/g2p-en";

Json rows_json(const Device& device, const std::vector<BenchRow>& rows) {
  Json json;
  json["device"] = device.info().name;
  json["driver"] = device.info().driver;
  json["tier"] = device.tier();
  json["rows"] = Json::array();
  for (const BenchRow& row : rows) {
    Json entry;
    entry["name"] = row.name;
    entry["value"] = row.value;
    entry["roofline_share"] = row.roofline;
    entry["note"] = row.note;
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

void print_table(const Device& device, const std::vector<BenchRow>& rows) {
  print_line(device.info().name + ", " + device.info().driver + ", tier " + device.tier());
  print_line(padded("what", 42) + padded("measured", 34) + padded("roofline", 10) + "notes");
  for (const BenchRow& row : rows) {
    print_line(padded(row.name, 41) + " " + padded(row.value, 33) + " " + padded(row.roofline, 10) +
               row.note);
  }
}

void add_roofline_rows(const Roofline& roofline, std::vector<BenchRow>& rows) {
  rows.push_back({"multiply-add roofline", fixed(roofline.fma_gflops, 1) + " GFLOP/s", "", ""});
  rows.push_back({"copy roofline", fixed(roofline.copy_gbytes, 1) + " GB/s", "", ""});
  rows.push_back({"empty dispatch", fixed(roofline.dispatch_us, 2) + " us", "", ""});
  rows.push_back({"submit and wait", fixed(roofline.submit_us, 1) + " us", "", ""});
}

void add_decode_rows(const DecodeTime& time, std::vector<BenchRow>& rows) {
  rows.push_back({"decoding, CPU of the calling thread",
                  fixed(time.cpu_us_per_token, 1) + " us per token", "", "batch 1"});
  rows.push_back(
      {"decoding", fixed(time.tokens_per_second, 0) + " tokens/s", "", "batch 1, greedy"});
  rows.push_back({"start to first token, cold", fixed(time.start_cold_ms, 0) + " ms", "",
                  "empty pipeline cache"});
  rows.push_back({"start to first token, warm", fixed(time.start_warm_ms, 0) + " ms", "", ""});
}

int run_bench_all(const CommonOptions& common, const DecodeOptions& decode) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  std::vector<BenchRow> rows;
  {
    const Progress progress("measuring", common.progress());
    const Result<Roofline> roofline = measure_roofline(*device);
    if (!roofline) return report(roofline.error());
    add_roofline_rows(*roofline, rows);
    const Status products = add_gemm_rows(*device, *roofline, rows);
    if (!products) return report(products.error());
    const Result<DecodeTime> time = measure_decode(common, *device, decode);
    if (!time) return report(time.error());
    add_decode_rows(*time, rows);
  }
  if (common.json) {
    print_json(rows_json(*device, rows));
  } else {
    print_table(*device, rows);
  }
  return kExitOk;
}

CLI::App* add_bench(CLI::App& bench, CommandLine& line, const char* name, const char* text) {
  CLI::App* command = bench.add_subcommand(name, text);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  return command;
}

void add_bench_gemm(CLI::App& bench, CommandLine& line) {
  CLI::App* command = add_bench(bench, line, "gemm", "One matrix product y (m,n) = x (m,k) w.");
  const auto shape = std::make_shared<GemmBenchmark>();
  command->add_option("--m", shape->m, "rows")->check(CLI::Range(1, 65536));
  command->add_option("--n", shape->n, "output features")->check(CLI::Range(1, 65536));
  command->add_option("--k", shape->k, "input features")->check(CLI::Range(1, 65536));
  command->add_option("--dtype", shape->weights, "how weights are stored")
      ->check(CLI::IsMember({"f32", "f16"}));
  command->add_option("--precision", shape->precision, "arithmetic; sums are f32 in both")
      ->check(CLI::IsMember({"f32", "f16"}));
  command->add_option("--repeats", shape->repeats, "runs")->check(CLI::Range(1, 1000));
  add_examples(*command, "  vkformer bench gemm --m 145 --n 3072 --k 768 --dtype f32 --json\n");
  command->callback([&line, shape] {
    line.run = [&line, shape] { return run_bench_gemm(line.common, *shape); };
  });
}

void add_bench_encoder(CLI::App& bench, CommandLine& line) {
  CLI::App* command =
      add_bench(bench, line, "encoder", "A pre-norm encoder stack, by default of ViT-B/32 sizes.");
  const auto shape = std::make_shared<EncoderBenchmark>();
  command->add_option("--tokens", shape->tokens, "tokens")->check(CLI::Range(1, 65536));
  command->add_option("--layers", shape->layers, "layers")->check(CLI::Range(1, 256));
  command->add_option("--width", shape->width, "width")->check(CLI::Range(1, 65536));
  command->add_option("--heads", shape->heads, "heads")->check(CLI::Range(1, 1024));
  command->add_option("--ffn", shape->ffn, "feed-forward width")->check(CLI::Range(1, 65536));
  command->add_option("--repeats", shape->repeats, "runs")->check(CLI::Range(1, 1000));
  add_examples(*command, "  vkformer bench encoder --tokens 145 --json\n");
  command->callback([&line, shape] {
    line.run = [&line, shape] { return run_bench_encoder(line.common, *shape); };
  });
}

std::shared_ptr<DecodeOptions> add_decode_options(CLI::App& command) {
  auto options = std::make_shared<DecodeOptions>();
  options->model = kModel;
  options->texts = {"attention", "is", "all", "you", "need"};
  command.add_option("--seconds", options->seconds, "time to measure")->check(CLI::Range(1, 600));
  add_model_options(command, options->load);
  return options;
}

void add_bench_decode(CLI::App& bench, CommandLine& line) {
  CLI::App* command = add_bench(bench, line, "decode",
                                "Decoding at batch 1: CPU time, speed, time to the first token.");
  const auto options = add_decode_options(*command);
  command->add_option("MODEL", options->model, "model directory")->required();
  command->add_option("TEXT", options->texts, "inputs; some English words if not given");
  command->add_flag("--start-only", options->start_only,
                    "generate one token and print the milliseconds since the process began");
  add_examples(*command,
               "  vkformer bench decode models/g2p-en\n"
               "  vkformer bench decode models/g2p-en --json --device lavapipe\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_bench_decode(line.common, *options); };
  });
}

void add_bench_all(CLI::App& bench, CommandLine& line) {
  CLI::App* command =
      add_bench(bench, line, "all", "Everything, as a table, beside OpenBLAS where it is found.");
  const auto options = add_decode_options(*command);
  command->add_option("MODEL", options->model, "model directory, models/g2p-en if not given");
  add_examples(*command, "  OPENBLAS_CORETYPE=Haswell vkformer bench all\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_bench_all(line.common, *options); };
  });
}

}  // namespace

void add_bench_command(CLI::App& app, CommandLine& line) {
  CLI::App* bench = app.add_subcommand("bench", "Measure the device, matrix products and models.");
  bench->require_subcommand(1);
  add_examples(*bench,
               "  vkformer bench all\n"
               "  vkformer bench gemm --m 145 --n 3072 --k 768 --dtype f32 --json\n"
               "  vkformer bench decode models/g2p-en\n");
  add_bench_gemm(*bench, line);
  add_bench_encoder(*bench, line);
  add_bench_decode(*bench, line);
  add_bench_all(*bench, line);
  CLI::App* roofline =
      add_bench(*bench, line, "roofline", "What the device can do at best, measured.");
  add_examples(*roofline, "  vkformer bench roofline --json\n");
  roofline->callback([&line] { line.run = [&line] { return run_bench_roofline(line.common); }; });
}

}  // namespace vkformer::cli
